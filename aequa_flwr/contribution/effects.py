"""What an update changes in the model's answers, and which part of it is the participant's own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from aequa_flwr.contribution.estimator import Effects, Floats
from aequa_flwr.slim import Layouts, Params, extract, is_switchable

# What is left of an update below this share of its length is rounding.
_ROUNDING = 1e-3
# Directions that add less than this share of their length to the others are no new ones.
_DEPENDENT = 1e-6


@dataclass(frozen=True, eq=False)
class Probe:
    """A few examples of the server that no participant knows, to watch the model's answers to.

    ``answers`` returns the outputs (V, C) of the sub-network of a width with these parameters.
    ``labels`` (V,) are the classes of the examples.
    """

    answers: Callable[[Params, float], Floats]
    labels: npt.NDArray[np.int64]


def effects_of(
    probe: Probe,
    layouts: Layouts,
    trained: Sequence[tuple[Params, Params, float]],
    earlier: Sequence[Params],
) -> Effects:
    """Return the effects of the updates of participants.

    ``trained`` holds for each of them the full model it started from, the sub-model it returned,
    and its width. ``earlier`` are the server's models of the rounds before, the last one first.
    """
    starts: dict[tuple[int, float], _Start] = {}
    rows = []
    for model, returned, width in trained:
        key = (id(model), width)
        if key not in starts:
            starts[key] = _Start(probe, layouts, model, width, earlier)
        rows.append(starts[key].effect(returned))
    before, change, innovation = (np.stack(column) for column in zip(*rows, strict=True))
    return Effects(before, change, innovation, probe.labels)


class _Start:
    """The sub-network that some participants received, and the directions that are not their own.

    Those are the federation's last steps, which can be repeated without any data, and the weights
    themselves, which can be shrunk without any.
    """

    def __init__(
        self, probe: Probe, layouts: Layouts, model: Params, width: float, earlier: Sequence[Params]
    ) -> None:
        self._probe, self._width = probe, width
        self._start = extract(model, layouts, width)
        # BatchNorm moves without gradients.
        self._names = [name for name in self._start if not is_switchable(layouts[name])]
        self._before = probe.answers(self._start, width)
        models = [self._flat(extract(one, layouts, width)) for one in earlier]
        chain = [self._flat(self._start), *models]
        steps = [later - before for later, before in pairwise(chain)]
        self._known = _orthonormal([chain[0], *steps])

    def effect(self, returned: Params) -> tuple[Floats, Floats, Floats]:
        """Return the answers before, their change, and the change by what is new, (V, C) each."""
        sent = {name: returned.get(name, value) for name, value in self._start.items()}
        change = self._probe.answers(sent, self._width) - self._before
        update = self._flat(sent) - self._flat(self._start)
        own = update - self._known @ (self._known.T @ update)
        if np.linalg.norm(own) <= _ROUNDING * np.linalg.norm(update):
            return self._before, change, np.zeros_like(change)
        moved = self._probe.answers(self._moved(own), self._width) - self._before
        return self._before, change, moved

    def _flat(self, params: Params) -> Floats:
        return np.concatenate([params[name].ravel() for name in self._names], dtype=np.float64)

    def _moved(self, step: Floats) -> Params:
        moved, place = dict(self._start), 0
        for name in self._names:
            value = self._start[name]
            part = step[place : place + value.size].reshape(value.shape)
            moved[name] = (value + part).astype(np.float32)
            place += value.size
        return moved


def _orthonormal(directions: Sequence[Floats]) -> Floats:
    """Return an orthonormal basis (D, k) of the ``directions``; those that are 0 add nothing."""
    basis: list[Floats] = []
    for direction in directions:
        rest = direction.copy()
        for _ in range(2):  # once more, because rounding leaves a little after the first time
            for one in basis:
                rest -= (one @ rest) * one
        length = np.linalg.norm(rest)
        if length > _DEPENDENT * np.linalg.norm(direction):
            basis.append(rest / length)
    return np.stack(basis, axis=1) if basis else np.zeros((len(directions[0]), 0))
