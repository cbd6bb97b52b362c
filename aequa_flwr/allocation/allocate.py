"""Fair allocation: contributions and the levels' accuracies to one level per participant."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aequa_flwr.allocation.annealing import anneal
from aequa_flwr.allocation.exact import sweep
from aequa_flwr.allocation.headroom import headroom
from aequa_flwr.allocation.line import along_line
from aequa_flwr.allocation.objective import Floats, Objective, mean_over_variance
from aequa_flwr.seeding import rng_for

SOLVERS = ("exact", "annealing")
OBJECTIVES = ("even", "proportional")
# Beside fractions, a number of at least this looks like percent: no level of accuracy is as low as
# 5 %.
_PERCENT = 5.0
# Squares and quotients of numbers in this range stay finite.
_LARGEST, _SMALLEST_EPSILON = 1e100, 1e-100


@dataclass(frozen=True, eq=False)
class Allocation:
    """Who gets which level; one entry per participant, in the order of the contributions.

    ``index`` points into the levels as they were given. ``gain`` is the level's accuracy minus the
    contribution, in the unit of both. ``feasible`` is False for a participant whose contribution is
    above every level; its gain is negative. ``cost`` is the objective over the feasible
    participants, inf if there are none; along a line, the mean squared distance from it.
    """

    index: npt.NDArray[np.int64]
    gain: Floats
    cost: float
    feasible: npt.NDArray[np.bool_]


def allocate(
    contributions: npt.ArrayLike,
    levels: npt.ArrayLike,
    *,
    epsilon: float = 1e-6,
    solver: str = "exact",
    objective: str | Objective = "even",
    seed: int = 0,
) -> Allocation:
    """Choose a level for every participant, so that rewards follow contributions.

    The largest contributor gets the most accurate level (Lemma 3 of the paper). Nobody gets a level
    below its contribution, and equal contributions get the same level. A participant above every
    level gets the most accurate one and does not influence the others.

    Args:
        contributions: One number per participant.
        levels: The accuracy of every width, narrowest first, in the unit of the contributions. It
            need not rise with the width: among levels of equal accuracy the narrowest is taken.
        epsilon: A variance. Spreads of the gains far below its square root count as none. The
            default, for fractions in [0, 1], is (0.001)^2. A tenth of a percentage point is what
            one example in a thousand is worth, and the smallest spread that the paper reports.
            Towards 0 the mean gain hardly counts, towards infinity everybody gets the most accurate
            level.
        solver: "exact", or "annealing" as in the paper. A line needs no search: both give the same.
        objective: "even" makes the gains ``u_i = a_i - c_i`` high and even (equation 3 of the
            paper). "proportional" does the same where the levels go low enough for even gains
            (``headroom``). Where they do not, it gives everybody the level nearest to a straight
            line through the largest contributor (``line.targets``). Or a cost of the mean and the
            variance of the gains, instead of equation 3: the docstring of ``exact.sweep`` says for
            which costs the exact solver finds the minimum.
        seed: Used by "annealing" only.

    Raises:
        ValueError: An argument is not valid. The text says what to change.
    """
    if solver not in SOLVERS:
        raise ValueError(f"solver must be one of {', '.join(SOLVERS)}, not {solver!r}")
    if isinstance(objective, str) and objective not in OBJECTIVES:
        raise ValueError(f"objective must be one of {', '.join(OBJECTIVES)}, not {objective!r}")
    if not _SMALLEST_EPSILON <= epsilon <= _LARGEST:
        raise ValueError(f"epsilon must be a positive number, 1e-100 to 1e100, not {epsilon}")
    given = _numbers("contributions", contributions)
    accuracies = _numbers("levels", levels)
    _check_units(given, accuracies)
    # np.unique reports the first, hence narrowest, of equal levels.
    ladder, narrowest = np.unique(accuracies, return_index=True)
    feasible = given <= ladder[-1]
    position = np.full(len(given), len(ladder) - 1, dtype=np.int64)
    cost = np.inf
    if feasible.any():
        inside = given[feasible]
        if objective == "proportional" and not _all_can_gain_alike(inside, ladder):
            position[feasible], cost = along_line(inside, ladder)
        else:
            of_gains = mean_over_variance if isinstance(objective, str) else objective
            if solver == "exact":
                position[feasible] = sweep(inside, ladder, epsilon, of_gains)
            else:
                rng = rng_for(seed, "allocation")
                position[feasible] = anneal(inside, ladder, epsilon, of_gains, rng)
            # From scratch, by NumPy's two-pass variance; the solvers' own sums stay inside them.
            gain = ladder[position[feasible]] - inside
            cost = of_gains(float(gain.mean()), float(gain.var()), epsilon)
    index = narrowest[position]
    return Allocation(index, accuracies[index] - given, cost, feasible)


def _all_can_gain_alike(contributions: Floats, levels: Floats) -> bool:
    room = headroom((contributions.min(), contributions.max()), (levels[0], levels[-1]))
    return room is not None and room.is_enough


def _check_units(contributions: Floats, accuracies: Floats) -> None:
    """Raise ValueError if one looks like fractions and the other like percent.

    Numbers look like percent only if all do: a contribution may well be above every level.
    """
    for one, other, names in (
        (contributions, accuracies, ("contributions", "levels")),
        (accuracies, contributions, ("levels", "contributions")),
    ):
        if one.min() > 1 and one.max() >= _PERCENT and other.min() >= 0 and 0 < other.max() <= 1:
            raise ValueError(
                f"{names[0]} go up to {one.max():g} and {names[1]} to {other.max():g}: one looks "
                "like percent and the other like fractions; give both in the same unit"
            )


def _numbers(name: str, values: npt.ArrayLike) -> Floats:
    """Return ``values`` as a flat float array, or say why they cannot be that."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a flat list of numbers: {error}") from error
    if array.ndim != 1:
        raise ValueError(f"{name} must be a flat list of numbers, not of shape {array.shape}")
    if not array.size:
        raise ValueError(f"{name} must hold at least one number")
    # Written so that it also refuses NaN, for which every comparison is false.
    wrong = np.flatnonzero(~(np.abs(array) <= _LARGEST))
    if wrong.size:
        raise ValueError(
            f"{name} must be finite and at most 1e100 in size, but entry {wrong[0]} is "
            f"{array[wrong[0]]}"
        )
    return array
