"""AequaStrategy: the stages of a run in their order, on Flower's messages."""

import json
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Self

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from aequa_flwr.data import Arrays, Schema
from aequa_flwr.errors import UsageError, UserError
from aequa_flwr.federation import (
    CONFIG,
    SETTINGS,
    TRAIN_ROUND,
    Awaited,
    Exchange,
    Roster,
    RoundTask,
    collect,
    decode_params,
    encode_params,
    encode_round_task,
    is_deployed,
    make_message,
)
from aequa_flwr.methods import Value
from aequa_flwr.results import (
    Progress,
    RunRecord,
    Trackers,
    load_trackers,
)
from aequa_flwr.rewards import RewardCard
from aequa_flwr.server.caller_arrays import caller_settings, server_examples
from aequa_flwr.server.checkpoint import (
    Checkpoint,
    check_same_run,
    load_checkpoint,
    reopen_run,
)
from aequa_flwr.server.journal import Journal
from aequa_flwr.server.parts import Parts, prepare
from aequa_flwr.server.rewarding import RewardMaker
from aequa_flwr.server.run_folder import RunFolder, open_folder
from aequa_flwr.server.stages import Stages
from aequa_flwr.server.state import RunState
from aequa_flwr.server.steps import RunFailedError
from aequa_flwr.settings import RunConfig
from aequa_flwr.slim import Params, extract
from aequa_flwr.slim.networks import Builder, SlimNetwork

logger = logging.getLogger(__name__)


class AequaStrategy(Strategy):
    """A Flower strategy that gives every participant a model worth its contribution.

    It joins the nodes, assesses contributions, trains round by round and allocates the rewards. The
    nodes run `make_client_app`.

        strategy = AequaStrategy("small-cnn", (x, y), participants=3, rounds=10, output="runs/one")
        strategy.start(grid)
        strategy.record.measures.pearson

    Args:
        network: A name of `aequa networks`, a function that takes a `Schema` and returns a
            `SlimNetwork`, or a `SlimNetwork`, from whose weights the training starts.
        validation: Inputs and labels that the server measures on. Without them rewards are
            allocated by width.
        held_out: Other inputs and labels, which are measured on but never used for a choice.
        schema: A description of the participants' data. It is needed without validation data, or
            if the validation data lacks a class.
        output: The folder of the run. Without it nothing is written: ``record`` and ``reward_of``
            have the results.
        on_progress: A function that receives the progress of the run.
        settings: All other settings of `RunConfig`, in snake_case. They are sent to the nodes.

    Raises:
        UserError: An argument is not valid. The text says what to change.
    """

    def __init__(
        self,
        network: str | Builder | SlimNetwork,
        validation: Arrays | None = None,
        *,
        held_out: Arrays | None = None,
        schema: Schema | None = None,
        output: str | Path | None = None,
        on_progress: Callable[[Progress], None] = lambda _progress: None,
        **settings: Value,
    ) -> None:
        data = server_examples(validation, held_out, schema)
        config = caller_settings(
            network, output, {"validation": validation is not None, **settings}
        )
        if config.resume and config.output:
            raise UsageError("output cannot be given with resume: a resumed run keeps its folder.")
        parts = prepare(config, data=data, network=None if isinstance(network, str) else network)
        checkpoint = load_checkpoint(Path(config.resume).expanduser()) if config.resume else None
        path = open_folder(config.output) if config.output else None
        if checkpoint is not None:
            path = reopen_run(checkpoint)
        self._set_up(parts, RunFolder(path, config), checkpoint, on_progress)
        schema_text = json.dumps(data.dataset.schema.to_json())
        self._attached[SETTINGS] = ConfigRecord(
            {**config.to_record(), "data-dir": config.data_dir, "schema": schema_text}
        )

    @classmethod
    def of_parts(
        cls,
        parts: Parts,
        folder: RunFolder,
        *,
        checkpoint: Checkpoint | None = None,
        on_progress: Callable[[Progress], None] = lambda _progress: None,
    ) -> Self:
        """Return a strategy for nodes that have the settings from their own run config."""
        strategy = cls.__new__(cls)
        strategy._set_up(parts, folder, checkpoint, on_progress)
        return strategy

    def _set_up(
        self,
        parts: Parts,
        folder: RunFolder,
        checkpoint: Checkpoint | None,
        on_progress: Callable[[Progress], None],
    ) -> None:
        trackers = _trackers(parts.settings, folder.folder)
        state = RunState(params=parts.network.dump())
        if checkpoint is not None:
            check_same_run(checkpoint, parts.settings, state.params)
            state = checkpoint.state
        if state.stage != "join":
            parts = parts.knowing(state.standalone)
        self._parts, self.settings, self.steps = parts, parts.settings, parts.steps()
        run = "" if folder.folder is None else folder.folder.name
        self._rewards = RewardMaker(parts.network, parts.data.dataset.schema, run)
        self._earlier = parts.earlier
        self._attached: dict[str, ConfigRecord] = {}
        self._exchange: Exchange | None = None
        self.roster = Roster(self._rewards.schema.fingerprint)
        unit = self.steps.assessor.estimator.unit
        folder.update(replace(folder.record, data=parts.describe(), contribution_unit=unit))
        self._journal = Journal(state, folder, on_progress)
        self._set_ladder()
        if trackers is not None:
            folder.tell(trackers)

    def _choose_widths(self) -> None:
        """Make the ladder anew if the standalone accuracies ask for other widths."""
        self._parts = self._parts.knowing(self.state.standalone)
        if self._parts.p_min != self.steps.p_min:
            self.steps = self._parts.steps()
            self._set_ladder()

    def _set_ladder(self) -> None:
        ladder, folder = self.steps.ladder, self._journal.folder
        config = {**folder.record.config, "p-min": self.steps.p_min}
        folder.update(replace(folder.record, config=config))
        sizes = [self._parts.network.num_parameters(width) for width in ladder]
        self._journal.set_ladder(ladder, sizes)

    @property
    def state(self) -> RunState:
        """Everything that the run knows."""
        return self._journal.state

    @property
    def record(self) -> RunRecord:
        """Everything that the run has produced so far."""
        return self._journal.record

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord | None = None,
        num_rounds: int | None = None,
        timeout: float | None = None,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None = None,
    ) -> Result:
        """Run the federation from its current state to the end.

        The record is written throughout, so a run that stops early can be resumed.

        Args:
            grid: Flower's grid, as the ServerApp receives it.
            initial_arrays: Initial weights instead of those of the network.
            num_rounds: May only repeat the setting ``rounds``, by which participants train.
            timeout: How long a round may take, in seconds, instead of ``round_timeout_s``.
            train_config: Values that are sent with every message.
            evaluate_config: Is refused: participants do not evaluate, the server does.
            evaluate_fn: Is called with the round and the full model after every round.

        Returns:
            Flower's result: the full model, and the metrics of every round.

        Raises:
            UserError: The run failed. The text says why, and so does the record.
            ValueError: An argument cannot be used with this strategy.
        """
        if evaluate_config:
            raise ValueError(
                "evaluate_config is not supported, because participants do not evaluate; leave it "
                "out, and give the server validation data"
            )
        if num_rounds not in (None, self.settings.rounds):
            raise ValueError(
                f"num_rounds = {num_rounds}, but the strategy was built with rounds = "
                f"{self.settings.rounds}, which participants train by; build it with rounds = "
                f"{num_rounds}"
            )
        timeout = self.settings.round_timeout_s if timeout is None else timeout
        if initial_arrays:
            self._start_from(initial_arrays)
        if train_config:
            self._attached[CONFIG] = train_config
        result = Result()
        try:
            self._run(grid, timeout, evaluate_fn, result)
        except UserError as error:
            self._journal.folder.finish("failed", str(error))
            raise
        except KeyboardInterrupt:
            self._journal.folder.finish("interrupted", "The server was stopped.")
            raise
        except Exception as error:
            self._journal.folder.finish("failed", f"Unexpected {type(error).__name__}: {error}")
            raise
        self._journal.folder.finish("completed")
        result.arrays = encode_params(self.state.params)
        return result

    def summary(self) -> None:
        """Log what is about to run."""
        ladder = self.steps.ladder
        logger.info(
            "%s: %d participants, %d levels from %.2f to %.2f",
            self.steps.method.about.title,
            self.settings.participants,
            len(ladder),
            ladder[0],
            ladder[-1],
        )

    def _start_from(self, arrays: ArrayRecord) -> None:
        try:
            params = decode_params(arrays)
        except ValueError as error:
            raise ValueError(f"initial_arrays: {error}") from error
        shapes = {name: value.shape for name, value in self.state.params.items()}
        if {name: value.shape for name, value in params.items()} != shapes:
            raise ValueError("initial_arrays do not have the names and shapes of the network")
        self._journal.set(replace(self.state, params=params))

    def _run(
        self,
        grid: Grid,
        timeout: float,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None,
        result: Result,
    ) -> None:
        if is_deployed(grid):
            self.settings.check_deployable()
        self.summary()
        exchange = self._exchange = Exchange(grid, self._attached)
        journal, num_rounds = self._journal, self.settings.rounds
        stages = Stages(journal, self.steps, self.settings, self._rewards, exchange, self._earlier)
        self.roster = stages.join(grid)
        stages.start_clock(num_rounds)
        if self.state.stage == "contribution":
            if self.steps.trains_alone:
                stages.train_alone(self.roster.nodes, timeout * num_rounds)
                self._choose_widths()
                stages = replace(stages, steps=self.steps)
            journal.update(self.steps.open(self.state), save=True)
        if self.state.stage == "training":
            alone = self.steps.method.about.training == "alone"
            while not alone and self.state.server_round < num_rounds:
                self._round(grid, exchange, timeout, result)
                server_round = self.state.server_round
                if evaluate_fn is not None:
                    metrics = evaluate_fn(server_round, encode_params(self.state.params))
                    if metrics is not None:
                        result.evaluate_metrics_serverapp[server_round] = metrics
            stages.end(self.roster.nodes, num_rounds + 1, timeout)
        stages.give_rewards(self.roster, timeout)

    def _round(self, grid: Grid, exchange: Exchange, timeout: float, result: Result) -> None:
        """Repeat a round until it has its quorum; after the last attempt save, then raise."""
        started, server_round = time.monotonic(), self.state.server_round + 1
        for _ in range(self.steps.rules.attempts):
            messages = self.configure_train(server_round, ArrayRecord(), ConfigRecord(), grid)
            queues = {message.metadata.dst_node_id: [message] for message in messages}
            _, metrics = self.aggregate_train(server_round, exchange.ask(queues, timeout))
            if metrics is not None:
                break
        else:
            self._journal.update(self.state, save=True)
            reasons = {f.reason for f in self.state.failures if f.server_round == server_round}
            raise RunFailedError(self.steps.rules.unmet(server_round, reasons, timeout))
        result.train_metrics_clientapp[server_round] = metrics
        seconds = (*self.state.round_seconds, time.monotonic() - started)
        self._journal.update(replace(self.state, round_seconds=seconds), save=True)
        accuracy, clock = self.state.rounds[-1].accuracy, self._journal.clock
        self._journal.show(clock.trained(server_round, self.settings.rounds, accuracy))

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> list[Message]:
        """Return one message for each node: whom to train, at which width, from which parameters.

        ``server_round`` is the next one. ``arrays`` must be empty, because the parameters are in
        ``state``. ``config`` is sent along. A list, because the deployed grid iterates twice.
        """
        if arrays:
            raise ValueError("arrays must be empty: a round starts from the strategy's own state")
        messages = []
        for node, asked in self._awaited(server_round).items():
            content = encode_round_task(self._task(asked))
            if config:
                content[CONFIG] = ConfigRecord(dict(config))
            messages.append(make_message(node, TRAIN_ROUND, server_round, content))
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Fold the replies into the next state as they arrive; each is freed once it is folded.

        Without a quorum only the failures change, and there are no metrics.
        """
        awaited, exchange = self._awaited(server_round), self._exchange
        sender = _sender if exchange is None else exchange.sender
        limit = self.steps.rules.limit(self.state.params)
        got = collect(replies, awaited, self.steps.layouts, sender, limit)
        away = [name for name in self.steps.asks(self.state) if name not in self.roster.nodes]
        got.missing |= dict.fromkeys(away, "it did not rejoin when the run was resumed")
        for node in () if exchange is None else exchange.surplus:
            names = awaited[node].widths if node in awaited else [f"node {node}"]
            got.surplus |= dict.fromkeys(names, "a second reply was ignored")
        before, journal = self.state, self._journal
        journal.set(
            self.steps.step(before, got, lambda count: journal.show(journal.clock.assessing(count)))
        )
        if self.state.server_round == before.server_round:
            return None, None
        last = self.state.rounds[-1]
        metrics = MetricRecord({"num-trained": last.num_trained, "loss": last.loss})
        return encode_params(self.state.params), metrics

    def _awaited(self, server_round: int) -> dict[int, Awaited]:
        """Return what each node is asked for in the next round, which the state decides."""
        if server_round != self.state.server_round + 1:
            raise ValueError(
                f"server_round = {server_round}, but the next round is "
                f"{self.state.server_round + 1}"
            )
        widths = self.steps.asks(self.state)
        individual_width = self.steps.individual_width
        everybody = self.steps.awaited(self.state, server_round, widths, individual_width)
        names_of: dict[int, list[str]] = {}
        for name in widths:
            if name in self.roster.nodes:
                names_of.setdefault(self.roster.nodes[name], []).append(name)
        return {node: everybody.of(names) for node, names in names_of.items()}

    def _task(self, asked: Awaited) -> RoundTask:
        """Return the task of a node whose reply must be ``asked``, with nothing beyond it.

        It holds the personal model of each participant if they have one, else the sub-model of
        the widest of them.
        """
        params: Params = {}
        models: dict[str, Params] = {}
        if self.steps.method.about.training == "apart":
            models = {name: self.state.models.of(name) for name in asked.widths}
        else:
            widest = max(asked.widths.values())
            params = extract(self.state.params, self.steps.layouts, widest)
        return RoundTask(
            asked.server_round,
            asked.widths,
            params,
            asked.individual_width,
            models,
            # With a single sub-network there is no width to draw: one pass, which is FedAvg.
            p_min=self.steps.p_min if len(self.steps.ladder) > 1 else None,
        )

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> list[Message]:
        """Return no messages: the server measures accuracies, participants do not report them."""
        return []

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """Return None: there is nothing to aggregate."""
        return None

    def reward_of(self, name: str) -> tuple[RewardCard, Params]:
        """Return the card of a participant's reward, and its tensors by name."""
        return self._rewards.reward_of(name, self.state, self.record)


def _trackers(settings: RunConfig, folder: Path | None) -> Trackers | None:
    if folder is not None:
        return load_trackers(folder, tensorboard=settings.tensorboard, tracker=settings.tracker)
    if settings.tensorboard or settings.tracker:
        raise UserError("tensorboard and tracker need the folder of the run; give output too.")
    return None


def _sender(reply: Message) -> int:
    return reply.metadata.src_node_id
