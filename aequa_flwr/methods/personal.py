"""Methods that give everybody a full model of its own; the models live on the server."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from aequa_flwr.slim.subnet import NDArray, Params


@dataclass(frozen=True, eq=False)
class PersonalRound:
    """What the server knows after a round in which everybody trained a model of its own.

    ``models`` are what the present received, in the order of their names, and ``absent`` the
    models of all others; ``server`` is the server's own model before the round. ``updates`` maps
    each tensor to the updates (trained - received) of the present, stacked along a new first
    axis. ``before`` and ``contributions`` are everybody's, before and after the round, as far as
    anything is known. ``switchable`` are the tensors of BatchNorm.
    """

    server_round: int
    seed: int
    server: Params
    models: Mapping[str, Params]
    updates: Mapping[str, NDArray]
    num_examples: Mapping[str, int]
    before: Mapping[str, float]
    contributions: Mapping[str, float]
    switchable: frozenset[str] = frozenset()
    absent: Mapping[str, Params] = field(default_factory=dict)

    def moved(self, model: Params, steps: Mapping[str, npt.NDArray[np.floating]]) -> Params:
        """Return ``model`` plus ``steps``, which may leave tensors out."""
        return {
            name: (value + steps[name]).astype(np.float32) if name in steps else value
            for name, value in model.items()
        }

    def own_statistics(self, index: int) -> dict[str, NDArray]:
        """Return participant ``index``'s own update of BatchNorm, which is never mixed.

        Running variances of models that have drifted apart, moved by each other's differences,
        become negative.
        """
        return {name: self.updates[name][index] for name in self.switchable if name in self.updates}


@dataclass(frozen=True, eq=False)
class Shared:
    """The server's model after a round, and those of all whose model changed."""

    server: Params
    models: Mapping[str, Params]


@dataclass(frozen=True)
class Personal:
    """How everybody comes to a model of its own.

    ``together`` False trains everybody alone and nothing else. ``share`` moves the models after
    each round; None leaves one model for all while training, the mean. With ``tuned`` everybody
    trains that one once more at the end and keeps the result to itself.
    """

    together: bool = True
    share: Callable[[PersonalRound], Shared] | None = None
    tuned: bool = False
