"""Collect a round: replies become one sum; what cannot be used touches nothing and is named."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median

import numpy as np
from flwr.app import Message

from aequa_flwr.aggregation import AggregationError, MaskedSum, RoundPart, RunningSum, Trained
from aequa_flwr.exchange import reason_of
from aequa_flwr.slim.subnet import Params
from aequa_flwr.slim.width import Layouts
from aequa_flwr.wire import Awaited, WireError, decode_round_part


@dataclass
class Collected:
    """What a round brought: the sum, who was trained, everybody's common sub-model.

    ``refused`` are those whose reply could not be used, or who could not be trained, and why;
    ``missing`` those of whom nothing came, and why.
    """

    running: RunningSum
    trained: list[Trained] = field(default_factory=list)
    common: dict[str, Params] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def total(self) -> MaskedSum:
        """The sum of everybody that was trained."""
        return self.running.total

    def fold(self, part: RoundPart) -> None:
        """Add a node's part; raises AggregationError, and nothing is added, on overflow."""
        self.running.merge(part.partial)
        self.trained.extend(part.trained)
        self.common.update(part.common)


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
            part = decode_round_part(reply.content, asked)
        except WireError as error:
            collected.refused |= dict.fromkeys(asked.widths, str(error))
            continue
        collected.refused |= part.refused or {}
        del reply
        yield part
        del part
    for asked in waiting.values():
        collected.missing |= dict.fromkeys(asked.widths, "no reply in time")
