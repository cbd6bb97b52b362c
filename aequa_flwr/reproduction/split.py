"""Other ways to look at the rewards of a run: another objective, and what each could have kept."""

from collections.abc import Callable
from dataclasses import replace

from aequa_flwr.allocation import OBJECTIVES, allocate
from aequa_flwr.reproduction.runs import Measure
from aequa_flwr.results import Measures, Rewarded, RunRecord, measure_fairness


def allocated_again(record: RunRecord, objective: str) -> RunRecord:
    """Return ``record`` as if its rewards had been allocated with ``objective``.

    Its measures are None if the run knows no standalone accuracies, or no accuracies of levels.
    """
    people, curve = record.participants, record.curve
    alone = [p.standalone_accuracy for p in people if p.standalone_accuracy is not None]
    accuracies = [point.accuracy for point in curve if point.accuracy is not None]
    if not (people and curve) or len(alone) < len(people) or len(accuracies) < len(curve):
        return replace(record, measures=None, held_out=None)
    levels = allocate(alone, accuracies, objective=objective).index
    rewards = [curve[level] for level in levels]
    held_out = [p.held_out.standalone_accuracy if p.held_out else None for p in people]
    return replace(
        record,
        participants=tuple(
            replace(p, width=reward.width, reward_accuracy=reward.accuracy)
            for p, reward in zip(people, rewards, strict=True)
        ),
        measures=_measured([reward.accuracy for reward in rewards], alone),
        held_out=_measured([reward.held_out_accuracy for reward in rewards], held_out),
    )


def kept(record: RunRecord) -> Measures:
    """Return the measures of the best models that participants were ever sent."""
    people = record.participants
    return _measured([p.exposed_accuracy for p in people], [p.standalone_accuracy for p in people])


def _measured(accuracies: list[float | None], alone: list[float | None] | list[float]) -> Measures:
    pairs = zip(accuracies, alone, strict=True)
    return measure_fairness(None, [Rewarded(0.0, 1.0, accuracy, mine) for accuracy, mine in pairs])


def _measure(
    key: str, name: str, read: Callable[[Measures], float | None], of: str
) -> Callable[[str], Measure]:
    """Return the measure for any objective; ``of`` says which measures of a record it reads."""

    def for_objective(objective: str) -> Measure:
        def read_record(record: RunRecord) -> float | None:
            measures = getattr(allocated_again(record, objective), of)
            return None if measures is None else read(measures)

        is_gain = key == "mcg"
        return Measure(
            f"{objective}-{key}",
            f"{objective}: {name}",
            read_record,
            100 if is_gain else 1,
            2 if is_gain else 3,
        )

    return for_objective


_EACH = (
    _measure("pearson", "Pearson", lambda m: m.standalone_pearson, "measures"),
    _measure("held-out", "held-out", lambda m: m.standalone_pearson, "held_out"),
    _measure("mcg", "MCG", lambda m: m.mcg, "measures"),
)
# Pearson on validation and on held-out data, and the mean gain, of each objective.
OBJECTIVE_MEASURES = tuple(make(objective) for objective in OBJECTIVES for make in _EACH)


def _best_level(record: RunRecord) -> float | None:
    known = [point.accuracy for point in record.curve if point.accuracy is not None]
    if known:
        return max(known)
    return None if record.measures is None else record.measures.accuracy


KEPT_PEARSON = Measure(
    "kept-pearson", "Pearson, kept", lambda record: kept(record).standalone_pearson, 1, 3
)
KEPT_MEASURES = (
    Measure("best-level", "Best level", _best_level),
    KEPT_PEARSON,
    Measure("kept-mcg", "MCG, kept", lambda record: kept(record).mcg),
    Measure("kept-cgs", "CGS, kept", lambda record: kept(record).cgs),
    Measure(
        "worst-leak",
        "Worst leak",
        lambda record: None if record.exposed is None else record.exposed.worst_leak,
    ),
)
# The approaches of the comparison, as the page calls them.
WAYS = {
    "aequa-earned": "Aequa, earned",
    "aequa+standalone": "Aequa, Algorithm 2",
    "aequa": "Aequa, post-training",
    "iafl": "IAFL",
    "cgsv": "CGSV",
}
