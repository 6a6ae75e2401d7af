"""The optimisers: Muon for matrices, AdamW for the head and for vectors, under one schedule.

Muon moves every direction of a matrix equally far, which a short training profits from most. The head's rows are
tokens of very different frequency, and vectors have no directions to even out: both stay with AdamW.
"""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from peagle_cli.train.model import TrainableDrafter
from peagle_cli.train.settings import Settings

WARM_UP = 20
"""Steps until the learning rates are reached."""
MAX_NORM = 1.0
"""What the gradient of head and vectors together is clipped to. Muon's steps do not depend on the gradient's size."""


class Optimiser:
    """Both optimisers, their rates scaled by one factor per step."""

    def __init__(self, drafter: TrainableDrafter, settings: Settings) -> None:
        named = dict(drafter.named_parameters())
        self._names: dict[Tensor, str] = {parameter: name for name, parameter in named.items()}
        matrices = [p for name, p in named.items() if p.dim() == 2 and name != "lm_head"]
        vectors = [p for p in named.values() if p.dim() == 1]
        self._clipped: list[nn.Parameter] = [drafter.lm_head, *vectors]
        self._muon = torch.optim.Muon(
            matrices, lr=settings.matrix_rate, weight_decay=0.0, adjust_lr_fn="match_rms_adamw"
        )
        self._adam = torch.optim.AdamW(
            [
                {"params": [drafter.lm_head], "lr": settings.head_rate},
                {"params": vectors, "lr": settings.vector_rate},
            ],
            betas=(0.9, 0.95),
            weight_decay=0.0,
        )
        self._rates = [[group["lr"] for group in optimiser.param_groups] for optimiser in self._both]

    @property
    def _both(self) -> tuple[torch.optim.Optimizer, torch.optim.Optimizer]:
        return self._muon, self._adam

    def step(self, factor: float) -> None:
        """Move by the gradients, at `factor` times the learning rates, and forget them."""
        nn.utils.clip_grad_norm_(self._clipped, MAX_NORM)
        for optimiser, rates in zip(self._both, self._rates, strict=True):
            for group, rate in zip(optimiser.param_groups, rates, strict=True):
                group["lr"] = rate * factor
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)

    def state(self) -> Iterator[tuple[str, Tensor]]:
        """What has to be kept to go on later, as named tensors."""
        for optimiser in self._both:
            for parameter, state in optimiser.state.items():
                for key, value in state.items():
                    yield f"{self._names[parameter]}:{key}", value

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back what `state` gave."""
        for optimiser in self._both:
            for group in optimiser.param_groups:
                for parameter in group["params"]:
                    prefix = self._names[parameter] + ":"
                    optimiser.state[parameter] = {
                        # AdamW's step count stays on the CPU; all else goes where its parameter is.
                        key.removeprefix(prefix): value if value.dim() == 0 else value.to(parameter.device)
                        for key, value in tensors.items()
                        if key.startswith(prefix)
                    }


def rate_factor(step: int, progress: float, decay: float) -> float:
    """The schedule: up over the first steps, constant, then linearly to zero over the last `decay` of the run.

    `progress` goes from 0 to 1.
    """
    return min(1.0, (step + 1) / WARM_UP) * min(1.0, max(0.0, 1 - progress) / decay if decay else 1.0)
