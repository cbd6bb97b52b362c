"""What a simulated participant does when it is asked to train: honest, or anything else."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch

from aequa_flwr.slim import Layouts, NDArray, Params
from aequa_flwr.slim.networks import SlimNetwork
from aequa_flwr.training.compute import Compute, Resident
from aequa_flwr.training.local import LocalPlan, LocalResult, train_locally


@dataclass
class Memory:
    """What a participant keeps from one task to the next.

    ``received`` is what it was sent in the round before, ``alone`` the model that it trained alone.
    ``reward`` is the full model that it has from an earlier run, if any. ``notes`` are whatever a
    behaviour wants to find again.
    """

    received: Params | None = None
    alone: Params | None = None
    reward: Params | None = None
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class LocalTask:
    """What a participant is asked to train, and what it has to do so.

    ``server_round`` of ``num_rounds`` is 0 where it trains alone, before the first round.
    ``received`` are the parameters of the sub-network of ``width``. ``outside`` returns examples
    that no participant holds but anybody may have got.
    """

    name: str
    server_round: int
    received: Params
    width: float
    plan: LocalPlan
    data: Resident
    rng: np.random.Generator
    network: SlimNetwork
    compute: Compute
    seed: int = 0
    num_rounds: int = 1
    num_classes: int = 1
    memory: Memory = field(default_factory=Memory)
    outside: Callable[[], Resident] | None = None

    @property
    def is_alone(self) -> bool:
        """Whether this is the model that the participant trains without the others."""
        return self.server_round == 0

    @property
    def layouts(self) -> Layouts:
        """How the tensors of the network are cut."""
        return self.network.layouts

    def changed(self, **changes: Any) -> "LocalTask":
        """Return the task with other values: other data, another plan, other parameters."""
        return replace(self, **changes)

    def train(self) -> LocalResult:
        """Return what honest training gives."""
        return train_locally(
            self.network, self.received, self.width, self.data, self.plan, self.rng, self.compute
        )

    def invented(self, teacher: Params, count: int) -> Resident:
        """Return random inputs in the form of the data, with the labels ``teacher`` gives them.

        ``teacher`` holds the parameters of a sub-network of the task's width.
        """
        data = self.data
        shape = (count, *data.x.shape[1:])
        raw = self.rng.standard_normal(shape)
        if data.kind != "numbers":
            # Bytes of an image, or words: whole numbers up to the largest there is.
            raw = np.floor(self.rng.random(shape) * (float(data.x.max()) + 1.0))
        x = torch.from_numpy(raw).to(data.x)
        rows = torch.arange(count, device=data.x.device)
        invented = replace(data, x=x, y=torch.zeros(count).to(data.y), rows=rows)
        self.network.load(teacher, self.width)
        with torch.inference_mode():
            labels = self.network(invented.batch(slice(None))[0], self.width).argmax(1)
        return replace(invented, y=labels.to(data.y))


class Behaviour(Protocol):
    """What a participant does with a task."""

    def answer(self, task: LocalTask) -> LocalResult:
        """Return what the participant sends to the server."""


class Cheat(Behaviour, Protocol):
    """A behaviour, and how much data the participant says it has."""

    def claimed(self, num_examples: int) -> int:
        """Return the number of examples that a participant with ``num_examples`` reports."""


class Honest:
    """Trains as it is asked to."""

    def answer(self, task: LocalTask) -> LocalResult:
        """Return the honestly trained parameters."""
        return task.train()


def flip_labels(
    data: Resident, fraction: float, classes: int, rng: np.random.Generator
) -> Resident:
    """Return ``data`` with a random wrong label on ``fraction`` of its examples.

    1.0 changes every label. The examples themselves are not copied.
    """
    rows = data.rows.cpu().numpy()
    chosen = rng.choice(rows, size=round(fraction * len(rows)), replace=False)
    # A shift of 1 to classes - 1 never gives the old label; a single class has no other.
    shift = rng.integers(1, max(2, classes), size=len(chosen))
    y = data.y.clone()
    where = torch.from_numpy(chosen).to(y.device)
    y[where] = (y[where] + torch.from_numpy(shift).to(y)) % classes
    return replace(data, y=y)


def untrained(params: Params) -> LocalResult:
    """Return ``params`` as if they had been trained; the loss that is reported is 0."""
    return LocalResult({name: np.array(value) for name, value in params.items()}, loss=0.0)


def noise_like(params: Params, rng: np.random.Generator) -> dict[str, NDArray]:
    """Return standard normal noise of the shapes of ``params``."""
    return {
        name: rng.standard_normal(value.shape, dtype=np.float32) for name, value in params.items()
    }
