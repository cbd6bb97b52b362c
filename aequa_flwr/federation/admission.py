"""Admission: a reply counts if it is what was asked for; anything else is named and dropped."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np
from flwr.app import Message, RecordDict

from aequa_flwr.aggregation import AggregationError, MaskedSum, RoundPart, RunningSum, Trained
from aequa_flwr.federation.codec import decode_round_part
from aequa_flwr.federation.exchange import reason_of
from aequa_flwr.federation.reading import WireError
from aequa_flwr.slim import Layouts, Params


@dataclass(frozen=True)
class Awaited:
    """What a node was asked for in a round, and so what its answer must be.

    ``widths`` and ``num_examples`` are of each participant, the latter as it joined; ``weighted``
    says that it counts as much as it has examples. ``individual_width`` is as in the task.
    """

    server_round: int
    widths: Mapping[str, float]
    num_examples: Mapping[str, int]
    layouts: Layouts
    individual_width: float | None = None
    weighted: bool = False

    def of(self, names: Iterable[str]) -> "Awaited":
        """Return the same for ``names`` only, in their order."""
        return replace(self, widths={name: self.widths[name] for name in names})

    def weights(self, trained: Iterable[Trained]) -> dict[float, int]:
        """Return the weight that each width must have in the sum of those who were trained."""
        weights: dict[float, int] = {}
        for line in trained:
            weight = self.num_examples[line.name] if self.weighted else 1
            weights[line.width] = weights.get(line.width, 0) + weight
        return weights


def decode_asked(content: RecordDict, awaited: Awaited) -> RoundPart:
    """Decode a node's part of a round; raises WireError for whatever nobody asked for."""
    part = decode_round_part(content, awaited.layouts, awaited.individual_width)
    check_asked(part, awaited)
    return part


def check_asked(part: RoundPart, awaited: Awaited) -> None:
    """Raise WireError unless ``part`` is the answer to what was asked."""
    if part.server_round != awaited.server_round:
        raise WireError(f"the reply is to round {part.server_round}, not {awaited.server_round}")
    names = [line.name for line in part.trained] + list(part.refused)
    if sorted(names) != sorted(awaited.widths):
        raise WireError("the reply is not about the participants that were asked for")
    for line in part.trained:
        _check_line(line, awaited)
    if part.partial.weights != awaited.weights(part.trained):
        raise WireError("a participant counts as more, or less, than was agreed")


def _check_line(line: Trained, awaited: Awaited) -> None:
    if line.width != awaited.widths[line.name]:
        raise WireError(f"{line.name} trained another width than it was asked for")
    if line.num_examples != (joined := awaited.num_examples[line.name]):
        raise WireError(
            f"{line.name} says that it has {line.num_examples} examples, and joined with {joined}"
        )
    if not all(math.isfinite(value) for value in vars(line).values() if isinstance(value, float)):
        raise WireError(f"the loss of {line.name} is not a finite number")


@dataclass
class Collected:
    """What a round brought: the sum, who was trained, everybody's individual sub-model.

    ``refused`` are those whose reply could not be used, or who could not be trained, and why;
    ``missing`` those of whom nothing came, and why. ``surplus`` are those of whom more came than
    was asked for; the rest of it was dropped.
    """

    running: RunningSum
    trained: list[Trained] = field(default_factory=list)
    individual: dict[str, Params] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    surplus: dict[str, str] = field(default_factory=dict)

    @property
    def total(self) -> MaskedSum:
        """The sum of everybody that was trained."""
        return self.running.total

    def fold(self, part: RoundPart) -> None:
        """Add a node's part; raises AggregationError, and nothing is added, on overflow."""
        self.running.merge(part.partial)
        self.trained.extend(part.trained)
        self.individual.update(part.individual)


@dataclass(frozen=True)
class NormLimit:
    """Refuses updates that are longer than ``ratio`` times the median of their round.

    ``received`` are the parameters that everybody started from. A node of several participants is
    judged by their mean, which is all that it sends.
    """

    ratio: float
    received: Params

    def refuse(self, parts: list[RoundPart]) -> tuple[list[RoundPart], dict[str, str]]:
        """Return the parts within the limit, and why the others are not."""
        norms = [self._norm(part) for part in parts]
        most = self.ratio * median(norms) if norms else 0.0
        kept: list[RoundPart] = []
        refused: dict[str, str] = {}
        for part, norm in zip(parts, norms, strict=True):
            if norm <= most:
                kept.append(part)
                continue
            reason = f"its update has norm {norm:.4g}, and the limit of this round is {most:.4g}"
            refused |= dict.fromkeys((line.name for line in part.trained), reason)
        return kept, refused

    def _norm(self, part: RoundPart) -> float:
        mean = part.partial.mean(self.received)
        squares = (
            float(np.square(value - self.received[name], dtype=np.float64).sum())
            for name, value in mean.items()
        )
        return float(np.sqrt(sum(squares)))


def collect(
    replies: Iterable[Message],
    awaited: Mapping[int, Awaited],
    layouts: Layouts,
    sender: Callable[[Message], int],
    limit: NormLimit | None = None,
) -> Collected:
    """Fold replies as they come; each is dropped once folded, unless a ``limit`` compares them.

    ``awaited`` says what each node was asked for, and ``sender`` which node a reply is from.
    """
    collected = Collected(RunningSum(layouts))
    parts = _usable(replies, dict(awaited), sender, collected)
    if limit is not None:
        kept, too_long = limit.refuse([part for part in parts if part.trained])
        collected.refused |= too_long
        parts = iter(kept)
    for part in parts:
        try:
            collected.fold(part)
        except AggregationError as error:
            collected.refused |= dict.fromkeys((line.name for line in part.trained), str(error))
        del part  # or it would stay while the next one is read
    return collected


def _usable(
    replies: Iterable[Message],
    waiting: dict[int, Awaited],
    sender: Callable[[Message], int],
    collected: Collected,
) -> Iterator[RoundPart]:
    """Yield what can be used; who sent anything else, or nothing, is noted in ``collected``."""
    for reply in replies:
        asked = waiting.pop(sender(reply))
        if reply.has_error():  # Flower's word for it: the node is away, or its process died
            collected.missing |= dict.fromkeys(asked.widths, reason_of(reply))
            continue
        try:
            part = decode_asked(reply.content, asked)
        except WireError as error:
            collected.refused |= dict.fromkeys(asked.widths, str(error))
            continue
        collected.refused |= part.refused
        del reply
        yield part
        del part
    for asked in waiting.values():
        collected.missing |= dict.fromkeys(asked.widths, "no reply in time")
