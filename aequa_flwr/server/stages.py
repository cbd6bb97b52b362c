"""The stages before and after the rounds: joining, standalone models, allocation, rewards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from flwr.serverapp import Grid

from aequa_flwr.contribution import Floats
from aequa_flwr.federation import (
    Awaited,
    Exchange,
    RewardTask,
    Roster,
    deliver,
    gather,
    load_roster,
    save_roster,
    train_alone,
    tune,
)
from aequa_flwr.results import (
    REWARDS_FOLDER,
    ROSTER_FILE,
    UNDELIVERED,
    Measured,
    Progress,
    RunRecord,
    WorkClock,
    standalone_of,
)
from aequa_flwr.rewards import save_reward
from aequa_flwr.server.journal import Journal
from aequa_flwr.server.rewarding import RewardMaker
from aequa_flwr.server.state import RunState
from aequa_flwr.server.steps import RunFailedError, Steps
from aequa_flwr.settings import RunConfig
from aequa_flwr.slim import Params

# Standalone training may take as long as all rounds; at most about this much of it can be lost.
_SAVE_EVERY_S = 10.0
# Reasons of refusals that the one sentence of a failed run lists; the record has all.
_MOST_REASONS = 3


@dataclass(frozen=True)
class Stages:
    """The stages of a run besides its rounds; each leaves its results in ``journal``.

    ``exchange`` talks to the nodes. ``earlier`` is a run whose standalone accuracies are reused.
    """

    journal: Journal
    steps: Steps
    settings: RunConfig
    rewards: RewardMaker
    exchange: Exchange
    earlier: tuple[RunRecord, Path] | None = None

    def join(self, grid: Grid) -> Roster:
        """Ask every node whom it hosts; return the roster.

        Raises RunFailedError if fewer participants joined than the run needs.
        """
        journal, total = self.journal, self.settings.participants
        known = journal.state.num_examples
        roster = Roster(self.rewards.schema.fingerprint, self._bound(), known)
        if journal.state.stage == "join":
            journal.save()
        gather(
            grid,
            self.exchange,
            roster,
            expected=len(known) or total,
            timeout_s=self.settings.join_timeout_s,
            on_joined=lambda count, left: journal.show(
                Progress("join", count, total, seconds_left=left)
            ),
        )
        for who, reason in roster.refused:
            journal.fail(0, {who: reason})
        if roster.refused:
            journal.update(journal.state)  # so that the record has them if the run fails below
        num_examples = dict(sorted(roster.num_examples.items()))
        self._check_enough(roster, len(num_examples))
        if journal.state.stage != "join":
            return roster
        if (missing := total - len(num_examples)) > 0:
            journal.fail(0, {"(unknown)": f"{missing} expected participants did not join"})
        fingerprints = {name: roster.fingerprints[name] for name in num_examples}
        standalone = {} if self.earlier is None else standalone_of(*self.earlier, fingerprints)
        self._bind(roster)
        journal.update(
            replace(
                journal.state,
                num_examples=num_examples,
                fingerprints=fingerprints,
                standalone=standalone,
                stage="contribution",
            ),
            save=True,
        )
        return roster

    def _check_enough(self, roster: Roster, joined: int) -> None:
        fewest = self.settings.join_quorum
        if joined < fewest:
            why = _in_short(sorted({reason for _, reason in roster.refused}))
            who = f"Only {joined} of at least {fewest} participants" if joined else "No participant"
            raise RunFailedError(f"{who} joined within {self.settings.join_timeout_s:g} s: {why}.")
        least = self.steps.assessor.estimator.needs.participants
        if joined < least:
            raise RunFailedError(
                f"The setting contribution needs at least {least} participants to compare, but "
                f"only {joined} joined; choose another estimator, or let more participants join."
            )

    def _bound(self) -> dict[str, int]:
        """Return which node each name is bound to."""
        path = self._roster_file()
        return {} if path is None else load_roster(path)

    def _roster_file(self) -> Path | None:
        """Return the file that binds names to nodes: that of the settings, or the run's own."""
        if self.settings.roster:
            return Path(self.settings.roster).expanduser()
        folder = self.journal.folder.folder
        return None if folder is None else folder / ROSTER_FILE

    def _bind(self, roster: Roster) -> None:
        """Bind the names of deployed participants to their nodes."""
        folder = self.journal.folder.folder
        if roster.storing and folder is not None:
            bound = {name: roster.nodes[name] for name in roster.storing}
            # Also in the run folder, whatever the federation's roster is: a later delivery of the
            # rewards there needs it.
            of_run = folder / ROSTER_FILE
            for path in {self._roster_file() or of_run, of_run}:
                save_roster(path, {**load_roster(path), **bound})

    def start_clock(self, num_rounds: int) -> None:
        """Start estimating the time left; the finished part of a resumed run counts as done."""
        state, alone = self.journal.state, self.steps.trains_alone
        sizes = state.num_examples
        clock = WorkClock(sum(sizes.values()), num_rounds, alone=alone)
        if state.server_round or state.standalone:
            finished = sum(sizes.get(name, 0) for name in state.standalone) if alone else 0
            clock.skip(finished, state.server_round)
        self.journal.clock = clock

    def train_alone(self, nodes: Mapping[str, int], timeout_s: float) -> None:
        """Train and measure a standalone model of every participant that has none yet."""
        journal = self.journal
        sizes = journal.state.num_examples
        left = [name for name in sizes if name not in journal.state.standalone]
        if not left:
            return
        keeps_models = self.steps.method.about.training == "alone"
        journal.show(Progress("contribution", len(sizes) - len(left), len(sizes)))
        for got in train_alone(
            self.exchange,
            nodes,
            {name: sizes[name] for name in left},
            journal.state.params,
            self.steps.layouts,
            known=journal.state.standalone,
            measure=self._measure_alone,
            fail=partial(journal.fail, 0),
            timeout_s=timeout_s,
        ):
            state = journal.state
            standalone = {**state.standalone, **got.measured}
            personal = {**state.personal, **(got.models if keeps_models else {})}
            answers = {**state.answers, **self._answers(got.models)}
            late = journal.seconds_since_save > _SAVE_EVERY_S
            journal.update(
                replace(state, standalone=standalone, personal=personal, answers=answers), save=late
            )
            # An earlier run may have had participants that did not join this one.
            done = [sizes[name] for name in standalone if name in sizes]
            journal.show(journal.clock.trained_alone(len(done), len(sizes), sum(done)))
        missing = set(left) - journal.state.standalone.keys()
        known = {failure.participant for failure in journal.state.failures}
        journal.fail(0, dict.fromkeys(sorted(missing - known), "no standalone model arrived"))
        found = journal.state.standalone
        in_order = {name: found[name] for name in sizes if name in found}
        journal.update(replace(journal.state, standalone=in_order))

    def _answers(self, models: Mapping[str, Params]) -> dict[str, Floats]:
        """Return the answers of standalone models to the probe, if the estimator looks at them."""
        assessor = self.steps.assessor
        if not assessor.probes or assessor.probe is None:
            return {}
        return {name: assessor.probe.answers(model, 1.0) for name, model in models.items()}

    def _measure_alone(self, params: Params) -> Measured:
        if self.steps.measure is None:
            raise RunFailedError(
                "Standalone models cannot be measured because the server has no data; choose "
                "another contribution, or give the server validation data."
            )
        # At full width: a participant alone has no reason to train a smaller model.
        return self.steps.measure(params, (1.0,))[0]

    def end(self, nodes: Mapping[str, int], server_round: int, timeout_s: float) -> None:
        """Measure the final models and allocate rewards; ``server_round`` is one past the last."""
        journal = self.journal
        if self.steps.method.about.tunes:
            personal = tune(
                self.exchange,
                nodes,
                self._tuned(journal.state, server_round),
                journal.state.params,
                fail=partial(journal.fail, server_round),
                timeout_s=timeout_s,
            )
            journal.update(replace(journal.state, personal=personal))
        total = len(journal.state.num_examples)
        journal.update(
            self.steps.settle(
                journal.state,
                lambda done: journal.show(Progress("rewards", done, total, fraction=1.0)),
            )
        )
        journal.show(Progress("curve", fraction=1.0))
        journal.set(self.steps.draw_curve(journal.state))
        journal.show(Progress("rewards", fraction=1.0))
        journal.update(self.steps.allocate(journal.state), save=True)

    def _tuned(self, state: RunState, server_round: int) -> Awaited:
        widths = dict.fromkeys(state.num_examples, 1.0)
        return self.steps.awaited(state, server_round, widths, individual_width=1.0)

    def give_rewards(self, roster: Roster, timeout_s: float) -> None:
        """Deliver rewards to the nodes that store them; write all others to the run folder.

        Rewards that could not be delivered are written there too, until `aequa deliver` sends them.
        """
        journal, folder = self.journal, self.journal.folder.folder
        if folder is None:
            return
        storing = [name for name in journal.state.levels if name in roster.storing]
        failed: dict[str, str] = {}
        if roster.storing:
            journal.show(Progress("delivery", 0, len(storing), fraction=1.0))
            failed = deliver(self.exchange, roster.nodes, self._reward_task, storing, timeout_s)
            reasons = {name: f"{UNDELIVERED}: {reason}" for name, reason in failed.items()}
            journal.update(journal.state.failed(journal.state.server_round, reasons))
        for line in journal.record.participants:
            if line.width is not None and (line.name not in storing or line.name in failed):
                reward = self.rewards.reward_of(line.name, journal.state, journal.record)
                save_reward(folder / REWARDS_FOLDER, *reward)

    def _reward_task(self, name: str) -> RewardTask:
        card, params = self.rewards.reward_of(name, self.journal.state, self.journal.record)
        return RewardTask(card.to_json(), params)


def _in_short(reasons: Sequence[str]) -> str:
    """Return the first reasons, and how many there are besides: each of thousands has its own."""
    more = len(reasons) - _MOST_REASONS
    told = [*reasons[:_MOST_REASONS], *([f"and {more} more like these"] if more > 0 else [])]
    return "; ".join(told) or "no node answered"
