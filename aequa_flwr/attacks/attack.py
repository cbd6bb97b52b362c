"""An attack: what the participants who cheat bring, claim, show and send."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from aequa_flwr.attacks.alone import ShowsReward
from aequa_flwr.attacks.shares import Brings
from aequa_flwr.data import FederatedData
from aequa_flwr.training import Behaviour, Honest, LocalResult, LocalTask

_HONEST = Honest()


@runtime_checkable
class Regroups(Protocol):
    """Changes who holds what before a run starts."""

    def regroup(
        self, data: FederatedData, cheats: tuple[str, ...], seed: int
    ) -> tuple[FederatedData, tuple[str, ...]]:
        """Return the data of the federation, and the names of those who cheat in it."""


@dataclass(frozen=True)
class Attack:
    """What one participant, or ``members`` of them together, do instead of being honest.

    ``brings`` changes their data, ``alone`` and ``rounds`` what they answer before and in the
    rounds, and ``claims`` multiplies the number of examples that they report. Each part is honest
    unless it is given, so attacks are composed of parts.
    """

    title: str
    rounds: Behaviour = _HONEST
    alone: Behaviour = _HONEST
    brings: Regroups | None = None
    claims: float = 1.0
    members: int = 1

    def answer(self, task: LocalTask) -> LocalResult:
        """Return what the participant sends."""
        return (self.alone if task.is_alone else self.rounds).answer(task)

    @property
    def works(self) -> bool:
        """Whether those who cheat train on their data in the rounds."""
        return self.rounds == _HONEST

    @property
    def is_limited(self) -> bool:
        """Whether they bring less than they have: honesty with that is what they could have."""
        return isinstance(self.brings, Brings)

    def honestly(self) -> "Attack":
        """Return what they could do with what they bring, if they were honest."""
        brings = self.brings
        if isinstance(brings, Brings):
            brings = Brings(brings.count)
        return Attack(f"{self.title}, honestly", brings=brings, members=self.members)

    @property
    def needs_reward(self) -> bool:
        """Whether they need the reward of an earlier, honest run."""
        return isinstance(self.alone, ShowsReward)

    def claimed(self, num_examples: int) -> int:
        """Return the number of examples that a participant with ``num_examples`` reports."""
        return max(1, round(self.claims * num_examples))

    def regroup(
        self, data: FederatedData, cheats: Sequence[str], seed: int
    ) -> tuple[FederatedData, tuple[str, ...]]:
        """Return the data of the federation, and the names of those who cheat in it."""
        names = tuple(cheats)
        return (data, names) if self.brings is None else self.brings.regroup(data, names, seed)


@dataclass(frozen=True)
class EveryOther:
    """Is honest in one round and behaves as ``cheating`` in the next, in turn."""

    cheating: Behaviour

    def answer(self, task: LocalTask) -> LocalResult:
        """Return the answer of the behaviour whose turn it is."""
        return task.train() if task.server_round % 2 else self.cheating.answer(task)


@dataclass(frozen=True)
class After:
    """Is honest in the first ``share`` of the rounds, and then behaves as ``cheating``."""

    share: float
    cheating: Behaviour

    def answer(self, task: LocalTask) -> LocalResult:
        """Return the honest answer, or later that of the behaviour."""
        honest = task.server_round <= self.share * task.num_rounds
        return task.train() if honest else self.cheating.answer(task)
