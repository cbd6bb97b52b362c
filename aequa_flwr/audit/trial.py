"""One run of an audit: a federation in this process, honest or with somebody who cheats."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from aequa_flwr.attacks import Attack, find_attack
from aequa_flwr.audit.several import Several
from aequa_flwr.contribution import ContributionEstimator, build_estimator
from aequa_flwr.data import FederatedData
from aequa_flwr.errors import UserError
from aequa_flwr.federation import Node
from aequa_flwr.methods import Standing
from aequa_flwr.options import in_short
from aequa_flwr.server import (
    AequaStrategy,
    RunFolder,
    assemble,
    method_of,
    prepare,
    prepare_simulation,
)
from aequa_flwr.settings import RunConfig
from aequa_flwr.simulation import InProcessGrid, as_flower_task
from aequa_flwr.slim import NDArray, embed, extract
from aequa_flwr.training import Memory, same_threads


@dataclass(frozen=True)
class Trial:
    """An attack on a federation; ``attack`` is empty for an honest one.

    ``honestly`` keeps what the attack brings, but trains honestly: what somebody with the same
    means could have instead. ``methods`` are contribution methods; one training serves all of
    them with post-training rewards.
    """

    settings: Mapping[str, Any]
    methods: tuple[str, ...]
    attack: str
    seed: int
    honestly: bool = False

    @property
    def key(self) -> str:
        """What tells this trial from the others of an audit."""
        return f"{self.attack}{' honestly' if self.honestly else ''} seed {self.seed}"


@dataclass(frozen=True)
class Judged:
    """What one contribution method makes of a trial: contributions and rewards by name."""

    contributions: dict[str, float]
    rewards: dict[str, float]


@dataclass(frozen=True)
class Outcome:
    """How a trial ended. ``failed`` is the reason if it did.

    ``cheats`` are the names of those who cheat, and ``alone`` the standalone accuracies. ``best``
    is the accuracy of the most accurate level.
    """

    key: str
    seconds: float
    failed: str = ""
    cheats: tuple[str, ...] = ()
    best: float = 0.0
    alone: dict[str, float] = field(default_factory=dict)
    judged: dict[str, Judged] = field(default_factory=dict)

    @property
    def is_honest(self) -> bool:
        """Whether it is of the honest federation, with which all others are compared."""
        return self.key.startswith(" ")

    @property
    def title(self) -> str:
        """The key for people."""
        return f"honest{self.key}" if self.is_honest else self.key

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Outcome":
        """Return the outcome of these JSON values."""
        judged = {kind: Judged(**one) for kind, one in values["judged"].items()}
        return cls(**{**values, "cheats": tuple(values["cheats"]), "judged": judged})


def run_trial(trial: Trial) -> Outcome:
    """Run a trial in this process; a failure becomes its outcome, so that others go on."""
    start = time.monotonic()
    try:
        outcome = _run(trial)
    except UserError as error:
        outcome = Outcome(trial.key, 0.0, failed=str(error))
    except Exception as error:  # the user's attack may raise anything
        outcome = Outcome(trial.key, 0.0, failed=in_short(error))
    return replace(outcome, seconds=time.monotonic() - start)


def who_cheats(data: FederatedData, members: int) -> tuple[str, ...]:
    """Return the participants in the middle, by number of examples: the median one, and next to it.

    What the largest or the smallest can gain is bounded by the ladder, so it says less.
    """
    ranked = sorted(data.shares, key=lambda name: (len(data.shares[name]), name))
    members = min(members, len(ranked))
    start = max(0, len(ranked) // 2 - (members - 1) // 2)
    start = min(start, len(ranked) - members)
    return tuple(ranked[start : start + members])


def _run(trial: Trial) -> Outcome:
    settings = RunConfig.parse({**trial.settings, "seed": trial.seed})
    data = prepare_simulation(settings).data
    attack = find_attack(trial.attack) if trial.attack else Attack("honest")
    if trial.honestly:
        attack = attack.honestly()
    cheats = who_cheats(data, attack.members)
    memories: dict[str, Memory] = {}
    if attack.needs_reward:
        honest = _federation(settings, data, trial.methods, {}, {})
        memories = {name: Memory(reward=_as_full_model(honest, name)) for name in cheats}
    data, cheats = attack.regroup(data, cheats, trial.seed)
    settings = settings.model_copy(update={"participants": len(data.shares)})
    strategy = _federation(settings, data, trial.methods, dict.fromkeys(cheats, attack), memories)
    state = strategy.state
    return Outcome(
        trial.key,
        0.0,
        cheats=cheats,
        best=max(point.validation for point in state.curve),
        alone={name: accuracy.validation for name, accuracy in state.standalone.items()},
        judged={kind: _judge(strategy, kind, trial.methods) for kind in trial.methods},
    )


def _federation(
    settings: RunConfig,
    data: FederatedData,
    methods: Sequence[str],
    cheats: Mapping[str, Attack],
    memories: dict[str, Memory],
) -> AequaStrategy:
    estimators = {kind: build_estimator(kind) for kind in methods}
    parts = prepare(settings, data=data)
    if len(estimators) > 1:
        parts = replace(parts, estimator=Several(estimators))
    node = Node(lambda _given, _context: data, cheats=cheats, memories=memories)
    strategy = assemble(parts, RunFolder(None, settings))
    grid = InProcessGrid(node.client_app(), settings.to_flower(), num_nodes=1)
    with as_flower_task(), same_threads():
        strategy.start(grid)
    return strategy


def _judge(strategy: AequaStrategy, kind: str, methods: Sequence[str]) -> Judged:
    """Return what the method ``kind`` makes of the run."""
    state, record = strategy.state, strategy.record
    if len(methods) == 1:
        people = [person for person in record.participants if person.contribution is not None]
        return Judged(
            {person.name: person.contribution or 0.0 for person in people},
            {person.name: person.reward_accuracy or 0.0 for person in people},
        )
    several = strategy.steps.assessor.estimator
    assert isinstance(several, Several)
    estimator = several.estimators[kind]
    contributions = _named(estimator, several, kind, strategy)
    accuracies = [point.validation for point in state.curve]
    method = method_of(strategy.settings, strategy.steps.ladder, estimator)
    levels = method.ends_with(Standing(contributions, accuracies))
    return Judged(contributions, {name: accuracies[level] for name, level in levels.items()})


def _named(
    estimator: ContributionEstimator, several: Several, kind: str, strategy: AequaStrategy
) -> dict[str, float]:
    values = estimator.contributions(several.ledger_of(kind, strategy.state.ledger))
    names = strategy.state.num_examples
    return {n: float(v) for n, v in zip(names, values, strict=True) if np.isfinite(v)}


def _as_full_model(strategy: AequaStrategy, name: str) -> dict[str, NDArray]:
    """Return a reward as a full model that answers the same: all other weights are 0."""
    state, steps = strategy.state, strategy.steps
    width, model = steps.ladder[state.levels[name]], state.models.of(name)
    nothing = {key: np.zeros_like(value) for key, value in model.items()}
    return embed(extract(model, steps.layouts, width), steps.layouts, width, nothing)
