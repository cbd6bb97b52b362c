"""Admission: a reply that matches its task is folded; any other is dropped with a reason."""

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
    """What a node was asked for in a round, and so what its reply must be.

    ``num_examples`` is what each participant joined with. ``weighted`` says that participants are
    weighted by it. ``individual_width`` is that of the task.
    """

    server_round: int
    widths: Mapping[str, float]
    num_examples: Mapping[str, int]
    layouts: Layouts
    individual_width: float | None = None
    weighted: bool = False

    def of(self, names: Iterable[str]) -> "Awaited":
        """Return the part of this that is about ``names``, in their order."""
        return replace(self, widths={name: self.widths[name] for name in names})

    def weights(self, trained: Iterable[Trained]) -> dict[float, int]:
        """Return the weight that each width must have in the sum of the ``trained``."""
        weights: dict[float, int] = {}
        for line in trained:
            weight = self.num_examples[line.name] if self.weighted else 1
            weights[line.width] = weights.get(line.width, 0) + weight
        return weights


def decode_asked(content: RecordDict, awaited: Awaited) -> RoundPart:
    """Decode a node's part of a round; raises WireError unless it is what was asked for."""
    part = decode_round_part(content, awaited.layouts, awaited.individual_width)
    check_asked(part, awaited)
    return part


def check_asked(part: RoundPart, awaited: Awaited) -> None:
    """Raise WireError unless ``part`` is what was asked for."""
    if part.server_round != awaited.server_round:
        raise WireError(f"the reply is to round {part.server_round}, not {awaited.server_round}")
    names = [line.name for line in part.trained] + list(part.refused)
    if sorted(names) != sorted(awaited.widths):
        raise WireError("the reply is about other participants than those in the task")
    for line in part.trained:
        _check_line(line, awaited)
    if part.partial.weights != awaited.weights(part.trained):
        raise WireError("the weight of a participant in the sum is not the agreed one")


def _check_line(line: Trained, awaited: Awaited) -> None:
    if line.width != awaited.widths[line.name]:
        raise WireError(f"{line.name} trained at another width than it was asked to")
    if line.num_examples != (joined := awaited.num_examples[line.name]):
        raise WireError(
            f"{line.name} reports {line.num_examples} examples, but joined with {joined}"
        )
    if not all(math.isfinite(value) for value in vars(line).values() if isinstance(value, float)):
        raise WireError(f"the loss of {line.name} is not a finite number")


@dataclass
class Collected:
    """The replies of a round: their sum, who was trained, and the individual sub-models.

    ``asked`` maps everybody that was sent a model to its width. ``refused`` are the participants
    that could not be trained or whose reply could not be used, with reasons. ``missing`` are those
    without a reply, with reasons. ``surplus`` are those with more than one reply; only the first
    was used.
    """

    running: RunningSum
    trained: list[Trained] = field(default_factory=list)
    individual: dict[str, Params] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    surplus: dict[str, str] = field(default_factory=dict)
    asked: Mapping[str, float] = field(default_factory=dict)

    @property
    def total(self) -> MaskedSum:
        """The sum over all trained participants."""
        return self.running.total

    def fold(self, part: RoundPart) -> None:
        """Add a node's part; on overflow add nothing and raise AggregationError."""
        self.running.merge(part.partial)
        self.trained.extend(part.trained)
        self.individual.update(part.individual)


@dataclass(frozen=True)
class NormLimit:
    """Refuses updates whose norm is more than ``ratio`` times the median of their round.

    ``received`` are the parameters that all participants started from. A node that hosts several
    participants is judged by their mean, because it sends nothing else.
    """

    ratio: float
    received: Params

    def refuse(self, parts: list[RoundPart]) -> tuple[list[RoundPart], dict[str, str]]:
        """Return the parts within the limit, and the reasons for refusing the others."""
        norms = [self._norm(part) for part in parts]
        most = self.ratio * median(norms) if norms else 0.0
        kept: list[RoundPart] = []
        refused: dict[str, str] = {}
        for part, norm in zip(parts, norms, strict=True):
            if norm <= most:
                kept.append(part)
                continue
            reason = f"its update has norm {norm:.4g}, above the limit of this round, {most:.4g}"
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
    """Return the replies of a round, folded into one sum as they arrive.

    A reply is freed once it is folded, unless there is a ``limit``, which must compare them all.
    ``awaited`` is what each node was asked for; ``sender`` returns the node of a reply.
    """
    asked = {name: width for part in awaited.values() for name, width in part.widths.items()}
    collected = Collected(RunningSum(layouts), asked=asked)
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
        del part  # free it before the next one is read
    return collected


def _usable(
    replies: Iterable[Message],
    waiting: dict[int, Awaited],
    sender: Callable[[Message], int],
    collected: Collected,
) -> Iterator[RoundPart]:
    """Yield the usable replies; note refused and missing ones in ``collected``."""
    for reply in replies:
        asked = waiting.pop(sender(reply))
        if reply.has_error():  # from Flower: the node is offline, or its process died
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
