"""What a cheating participant sends in a round, instead of training on its data.

A behaviour sees what a client sees: what it received, its own data and what it remembers. Each is a
small class with one idea. `combining` puts them together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aequa_flwr.seeding import rng_for
from aequa_flwr.slim import NDArray, Params, embed, extract, is_switchable
from aequa_flwr.training import (
    LocalResult,
    LocalTask,
    Resident,
    flip_labels,
    noise_like,
    untrained,
)

_TINY = 1e-12
# Models that a participant averages.
_MOST_SEEN = 5


@dataclass(frozen=True)
class SendsBack:
    """Returns what it received: an update of zeros."""

    def answer(self, task: LocalTask) -> LocalResult:
        """Return the received parameters."""
        return untrained(task.received)


@dataclass(frozen=True)
class Noise:
    """Returns what it received, with normal noise of standard ``deviation`` on every value."""

    deviation: float

    def answer(self, task: LocalTask) -> LocalResult:
        """Return the received parameters with noise."""
        noise = noise_like(task.received, task.rng)
        scale = np.float32(self.deviation)
        return untrained({k: v + scale * noise[k] for k, v in task.received.items()})


@dataclass(frozen=True)
class NoiseAsLong:
    """Returns noise as long as the federation's last step, the best guess at an honest update.

    With ``same`` it is the same noise in every round.
    """

    same: bool = False

    def answer(self, task: LocalTask) -> LocalResult:
        """Return the received parameters with noise; without it in the first round."""
        step = last_step(task)
        fresh = noise_like(task.received, task.rng)
        noise = cut(task.memory.notes.setdefault("noise", fresh), task) if self.same else fresh
        return untrained(moved(task, noise, length(step) / max(length(noise), _TINY)))


@dataclass(frozen=True)
class Replays:
    """Sends the federation's last step once more, ``times`` as long.

    ``noise`` adds noise of this share of its length. ``share`` replays only this share of the
    entries, the same in every round.
    """

    times: float = 1.0
    noise: float = 0.0
    share: float = 1.0

    def answer(self, task: LocalTask) -> LocalResult:
        """Return the received parameters plus the last step; without it in the first round."""
        step = last_step(task)
        if self.share < 1.0:
            drawn = {k: task.rng.random(v.shape) < self.share for k, v in task.received.items()}
            mask = cut(task.memory.notes.setdefault("mask", drawn), task)
            step = {k: v * mask[k] for k, v in step.items()}
        if self.noise:
            noise = noise_like(task.received, task.rng)
            scale = np.float32(self.noise * length(step) / max(length(noise), _TINY))
            step = {k: v + scale * noise[k] for k, v in step.items()}
        return untrained(moved(task, step, self.times))


@dataclass(frozen=True)
class Scales:
    """Trains honestly and sends ``factor`` times its update; a negative factor does harm."""

    factor: float

    def answer(self, task: LocalTask) -> LocalResult:
        """Return the received parameters plus the scaled update."""
        result = task.train()
        return replace(result, params=moved(task, update_of(task, result), self.factor))


@dataclass(frozen=True)
class TrainsNarrowest:
    """Trains only the narrowest sub-network, which is what most estimators look at."""

    def answer(self, task: LocalTask) -> LocalResult:
        """Return the received parameters with a trained narrowest sub-network inside."""
        width = narrowest(task)
        inner = extract(task.received, task.layouts, width)
        result = task.changed(received=inner, width=width).train()
        # A prefix of a prefix: the layouts of the full tensors cut both.
        return replace(result, params=embed(result.params, task.layouts, width, task.received))


@dataclass(frozen=True)
class PoisonsOutside:
    """Trains honestly, and sends the opposite of its update outside the narrowest sub-network."""

    factor: float = -3.0

    def answer(self, task: LocalTask) -> LocalResult:
        """Return honest parameters inside the narrowest sub-network and harmful ones outside."""
        width = narrowest(task)
        result = task.train()
        harm = moved(task, update_of(task, result), self.factor)
        inner = extract(result.params, task.layouts, width)
        return replace(result, params=embed(inner, task.layouts, width, harm))


@dataclass(frozen=True)
class FlipsLabels:
    """Trains on data of which ``fraction`` have a wrong label, always the same ones."""

    fraction: float = 1.0

    def answer(self, task: LocalTask) -> LocalResult:
        """Return the parameters trained on the flipped labels."""
        notes = task.memory.notes
        if "flipped" not in notes:
            notes["flipped"] = _flipped(task, self.fraction)
        return task.changed(data=notes["flipped"]).train()


@dataclass(frozen=True)
class DecaysWeights:
    """Shrinks what it received by ``rate`` and does nothing else."""

    rate: float = 0.02

    def answer(self, task: LocalTask) -> LocalResult:
        """Return the received parameters times ``1 - rate``."""
        return untrained(moved(task, task.received, -self.rate))


@dataclass(frozen=True)
class TowardsOwn:
    """Replays, and adds a small step towards the model that it once trained alone."""

    step: float = 0.05

    def answer(self, task: LocalTask) -> LocalResult:
        """Return the received parameters plus the last step and ``step`` of the way to its own."""
        towards = last_step(task)
        if task.memory.alone is not None:
            own = extract(task.memory.alone, task.layouts, task.width)
            step = np.float32(self.step)
            towards = {k: v + step * (own[k] - task.received[k]) for k, v in towards.items()}
        return untrained(moved(task, towards, 1.0))


@dataclass(frozen=True)
class Distils:
    """Trains on noise, towards the average of the models it was sent: no data, but honest steps."""

    examples: int = 100

    def answer(self, task: LocalTask) -> LocalResult:
        """Return the received parameters, trained on noise with the average's own answers."""
        notes = task.memory.notes
        seen: list[Params] = notes.setdefault("seen", [])
        seen.append(task.received)
        del seen[:-_MOST_SEEN]
        average = {k: np.mean([cut(m, task)[k] for m in seen], axis=0) for k in task.received}
        return task.changed(data=task.invented(average, self.examples)).train()


def _flipped(task: LocalTask, fraction: float) -> Resident:
    rng = rng_for(task.seed, "flipped labels", task.name)
    return flip_labels(task.data, fraction, task.num_classes, rng)


def narrowest(task: LocalTask) -> float:
    """Return the narrowest width that the participant may be asked to train."""
    return min(task.width, task.plan.p_min or task.width)


def last_step(task: LocalTask) -> dict[str, NDArray]:
    """Return how what it received has changed since the round before; zeros in the first one.

    Where it received less then, the rest counts as unchanged.
    """
    step = {name: np.zeros_like(value) for name, value in task.received.items()}
    for name, before in (task.memory.received or {}).items():
        both = tuple(map(slice, np.minimum(before.shape, step[name].shape)))
        step[name][both] = task.received[name][both] - before[both]
    return step


def cut(params: Mapping[str, Any], task: LocalTask) -> dict[str, Any]:
    """Return ``params`` of another round in the shapes of this one; what is missing is 0."""
    fitting = {}
    for name, value in task.received.items():
        fitting[name] = np.zeros(value.shape, params[name].dtype)
        both = tuple(map(slice, np.minimum(params[name].shape, value.shape)))
        fitting[name][both] = params[name][both]
    return fitting


def update_of(task: LocalTask, result: LocalResult) -> dict[str, NDArray]:
    """Return what training changed."""
    return {name: value - task.received[name] for name, value in result.params.items()}


def moved(task: LocalTask, step: Params, times: float) -> dict[str, NDArray]:
    """Return what was received plus ``times`` the ``step``.

    BatchNorm stays as it was received: a running variance that is moved may become negative.
    """
    scale = np.float32(times)
    return {
        name: value.copy() if is_switchable(task.layouts[name]) else value + scale * step[name]
        for name, value in task.received.items()
    }


def length(step: Params) -> float:
    """Return the Euclidean norm over all tensors."""
    return float(np.sqrt(sum(float(np.sum(np.square(v, dtype=np.float64))) for v in step.values())))
