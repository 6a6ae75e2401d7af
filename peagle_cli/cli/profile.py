"""`peagle profile`: what steps cost on this machine, as JSON that `peagle compare --simulate` reads."""

import contextlib
import sys

from peagle_cli.cli.loading import loading_shown
from peagle_cli.cli.options import Device, Drafters, Dtype, Model
from peagle_cli.engine.protocol import EngineSpec
from peagle_cli.models.progress import Progress
from peagle_cli.text import json_document


def profile(model: Model = None, drafter: Drafters = None, dtype: Dtype = None, device: Device = None) -> None:
    """Measure what steps cost on this machine, and print it as JSON.

    It takes a minute or two, in which the machine should have nothing else to do. With `peagle compare --simulate FILE`
    someone else can see what their drafters would do here.
    """
    from peagle_cli.engine.open import open_engine
    from peagle_cli.engine.profiling import Profiler

    with loading_shown() as on_progress:
        engine = open_engine(EngineSpec(model, tuple(drafter or ()), device, dtype), on_progress)
        with contextlib.closing(engine):
            measured = Profiler(
                engine, lambda share: on_progress(Progress("Measuring", round(100 * share), 100))
            ).measure()
    sys.stdout.write(json_document(measured))
