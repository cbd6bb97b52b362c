"""The ServerApp: the config becomes the parts of a run, the run becomes a record."""

import logging
import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp

from aequa_flwr.checkpoint import (
    Checkpoint,
    Checkpoints,
    check_same_run,
    load_checkpoint,
    reopen_run,
)
from aequa_flwr.config import RunConfig
from aequa_flwr.contribution import Assessor
from aequa_flwr.data import Dataset, FederatedData, federated_data
from aequa_flwr.errors import UserError
from aequa_flwr.forms import read_participation
from aequa_flwr.joining import Roster, load_roster, save_roster
from aequa_flwr.methods import Aequa, Attendance, FairAllocation, TrainingTime, build_parts
from aequa_flwr.progress import ProgressWriter, mark_running, unmark_running
from aequa_flwr.provenance import versions
from aequa_flwr.record import (
    RECORD_FILE,
    REPORT_FILE,
    REWARDS_FOLDER,
    ROSTER_FILE,
    DataRecord,
    RunRecord,
    Status,
    Times,
    load_if_readable,
    load_standalone,
    save_record,
    with_state,
)
from aequa_flwr.report import render_page
from aequa_flwr.rewards import RewardCard, save_reward
from aequa_flwr.seeding import rng_for
from aequa_flwr.slim.network import SlimNetwork
from aequa_flwr.slim.networks import build_network
from aequa_flwr.slim.plain import PlainLayer
from aequa_flwr.slim.subnet import Params, extract
from aequa_flwr.state import RunState
from aequa_flwr.strategy import AequaStrategy, Calibrate, Method, Rules
from aequa_flwr.tracking import Trackers, load_trackers
from aequa_flwr.training import ServerData, check_augmentation, choose_compute, keep_memory
from aequa_flwr.wire import RewardTask
from server_app.delivering import deliver_again

logger = logging.getLogger(__name__)
app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the whole federation and leave its record in the run's folder, however it ends."""
    config = RunConfig.parse(context.run_config)
    if config.deliver:
        deliver_again(grid, Path(config.deliver).expanduser(), config)
        return
    checkpoint = load_checkpoint(Path(config.resume).expanduser()) if config.resume else None
    if checkpoint is not None:
        folder = reopen_run(checkpoint)
    else:
        folder = _open_folder(config.output or f"~/aequa-runs/{context.run_id}")
    logger.info("The run's folder is %s", folder)
    keeper = _Keeper(folder, config)
    try:
        _run(grid, config, keeper, checkpoint)
    except UserError as error:
        keeper.finish("failed", str(error))
        raise
    except KeyboardInterrupt:
        keeper.finish("interrupted", "The server was stopped.")
        raise
    except Exception as error:
        keeper.finish("failed", f"Unexpected {type(error).__name__}: {error}")
        raise
    keeper.finish("completed")


def _open_folder(output: str) -> Path:
    folder = Path(output).expanduser()
    if (folder / RECORD_FILE).exists():
        raise UserError(f"{folder} already holds a run; choose another output folder.")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class _Keeper:
    """Keeps the record of a run on disk up to date from its first second."""

    def __init__(self, folder: Path, config: RunConfig) -> None:
        self.folder = folder
        self._started = time.monotonic()
        made_with = versions()
        self._checkpoints = Checkpoints(folder, config)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        record = RunRecord("running", "", config.to_record(), made_with, times=Times(started=now))
        before = load_if_readable(folder) if config.resume else None
        if before is not None:
            # With all it knows: whatever stops this start must not cost what the last one reached.
            times = replace(before.times, finished="", resumed=(*before.times.resumed, now))
            record = replace(before, status="running", reason="", versions=made_with, times=times)
        self._seconds_before = record.times.seconds
        self._trackers: Trackers | None = None
        mark_running(folder)
        self.update(record)

    def update(self, record: RunRecord) -> None:
        """Replace the record."""
        self.record = record
        save_record(self.folder, record)
        if self._trackers is not None:
            self._trackers.tell(record)

    def tell(self, trackers: Trackers) -> None:
        """Tell ``trackers`` of the record from now on."""
        self._trackers = trackers
        trackers.tell(self.record)

    def checkpoint(self, state: RunState) -> None:
        """Write ``state``, so that the run can go on from it."""
        try:
            self._checkpoints.save(state)
        except OSError as error:
            raise UserError(
                f"No checkpoint can be written to {self.folder} ({error.strerror}); make room "
                f"there, and go on with `aequa run --resume {shlex.quote(str(self.folder))}`."
            ) from None

    def finish(self, status: Status, reason: str = "") -> None:
        """Write the last state of the record, and the report."""
        times = replace(
            self.record.times,
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            seconds=self._seconds_before + time.monotonic() - self._started,
        )
        self.update(replace(self.record, status=status, reason=reason, times=times))
        (self.folder / REPORT_FILE).write_text(render_page(self.record), encoding="utf-8")
        unmark_running(self.folder)


def _run(grid: Grid, config: RunConfig, keeper: _Keeper, checkpoint: Checkpoint | None) -> None:
    estimator, personal = build_parts(
        config.method,
        config.contribution,
        validation=config.validation,
        participants=config.participants,
    )
    trackers = load_trackers(keeper.folder, tensorboard=config.tensorboard, tracker=config.tracker)
    standalone = load_standalone(config)
    data = federated_data(config.data_spec)
    schema = data.dataset.schema
    check_augmentation(config.augmentation, schema)
    network = _initial_network(config, data.dataset)
    state = RunState(params=network.dump(), standalone=standalone)
    if checkpoint is not None:
        check_same_run(checkpoint, config, state.params)
        state = checkpoint.state
    ladder = network.levels(config.p_min, config.p_max, most=config.max_levels)
    sizes = [network.num_parameters(width) for width in ladder]
    server = _server_data(config, data, network)
    unit = estimator.unit
    keeper.update(replace(keeper.record, data=_describe(config, data), contribution_unit=unit))
    keeper.tell(trackers)

    def save(state: RunState) -> None:
        if state.stage == "contribution":  # everybody has just joined
            _bind(config, keeper.folder, strategy.roster)
        keeper.checkpoint(state)

    strategy = AequaStrategy(
        method=_method(config, ladder, comparable=unit == "accuracy"),
        attendance=Attendance(
            read_participation(config.participation), config.seed, estimator.needs.everybody_first
        ),
        assessor=Assessor(
            estimator,
            width=ladder[0],
            layouts=network.layouts,
            classes=schema.num_classes,
            seed=config.seed,
            scorer=None if server is None else server.scorer(ladder[0], config.utility_examples),
        ),
        measure=None if server is None else server.measure,
        measure_alone=config.measure_alone,
        personal=personal,
        seed=config.seed,
        calibrate=None if server is None else _calibrator(config, server, ladder),
        layouts=network.layouts,
        ladder=ladder,
        schema=schema.fingerprint,
        num_participants=config.participants,
        join_timeout_s=config.join_timeout_s,
        rules=Rules(
            quorum=config.round_quorum,
            attempts=config.round_attempts,
            norm_limit=config.norm_limit,
            refusals=config.set_aside_after,
            weighted=config.weighting == "examples",
        ),
        quorum=config.quorum,
        bound=load_roster(_roster(config, keeper.folder)),
        state=state,
        on_state=lambda state: keeper.update(with_state(keeper.record, state, ladder, sizes)),
        on_checkpoint=save,
        on_progress=ProgressWriter(keeper.folder),
    )
    if checkpoint is not None:
        keeper.update(with_state(keeper.record, state, ladder, sizes))
    strategy.start(grid, ArrayRecord(), config.rounds, config.round_timeout_s)
    _give_rewards(config, keeper, strategy, network, data.dataset)


def _initial_network(config: RunConfig, dataset: Dataset) -> SlimNetwork:
    init_seed = int(rng_for(config.seed, "initial weights").integers(2**31))
    return build_network(config.network, dataset.schema, init_seed=init_seed)


def _method(config: RunConfig, ladder: tuple[float, ...], *, comparable: bool) -> Method:
    """Return who receives what; ``comparable`` says that contributions are accuracies."""
    ending = FairAllocation(
        ladder,
        by="accuracy" if config.allocation == "accuracy" else "width",
        comparable=comparable,
        solver=config.solver,
        epsilon=config.epsilon,
        curve_fit=config.curve_fit,
        seed=config.seed,
    )
    if config.reward == "post-training":
        # A baseline too: the one width it knows is the level that everybody is allocated.
        return Aequa(ladder[-1], ending)
    keeps = config.allocation == "keep"
    return TrainingTime(ladder, config.gamma, config.nu, None if keeps else ending)


def _server_data(config: RunConfig, data: FederatedData, network: SlimNetwork) -> ServerData | None:
    if not config.validation:
        return None
    keep_memory()
    compute = choose_compute(config.device, config.precision)
    schema = data.dataset.schema
    held_out = compute.resident(data.dataset.train, schema, data.held_out)
    validation = compute.resident(data.validation, schema)
    return ServerData(
        network.to(compute.device), compute, validation, held_out if len(held_out) else None
    )


def _calibrator(
    config: RunConfig, server_data: ServerData, ladder: Sequence[float]
) -> Calibrate | None:
    """Return what completes BatchNorm after training; None where nothing does."""
    network = server_data.network
    if config.calibration == "none" or not network.has_levels:
        return None

    def calibrate(params: Params, trained: Sequence[int]) -> Params:
        every = config.calibration == "all"
        widths = [width for width in ladder if every or network.level_of(width) not in trained]
        logger.info("Calibrating BatchNorm at the widths %s", widths)
        return server_data.calibrate(params, widths, trained)

    return calibrate


def _describe(config: RunConfig, data: FederatedData) -> DataRecord:
    return DataRecord(
        dataset=data.dataset.name,
        num_train=sum(len(share) for share in data.shares.values()),
        num_validation=len(data.validation) if config.validation else 0,
        num_held_out=len(data.held_out),
    )


def _roster(config: RunConfig, folder: Path) -> Path:
    """Return the file that binds names to nodes; without a setting it is the run's own."""
    return Path(config.roster).expanduser() if config.roster else folder / ROSTER_FILE


def _bind(config: RunConfig, folder: Path, roster: Roster) -> None:
    """Remember which node each name belongs to that has a machine of its own."""
    if roster.keepers:
        bound = {name: roster.nodes[name] for name in roster.keepers}
        # In the run's folder too, whatever the federation's roster is: rewards may be left there.
        for path in {_roster(config, folder), folder / ROSTER_FILE}:
            save_roster(path, {**load_roster(path), **bound})


def _give_rewards(
    config: RunConfig,
    keeper: _Keeper,
    strategy: AequaStrategy,
    network: SlimNetwork,
    dataset: Dataset,
) -> None:
    """Send rewards to those who keep them themselves; all others land in the run's folder.

    What could not be delivered lands there too, until `aequa deliver` sends it.
    """
    state = strategy.state
    lines = {line.name: line for line in keeper.record.participants if line.width is not None}

    @cache  # thousands of participants share a few widths
    def described(width: float) -> tuple[int, PlainLayer]:
        return network.num_parameters(width), network.plain(width)

    def reward(name: str) -> tuple[RewardCard, Params]:
        width = lines[name].width or 1.0
        num_parameters, layer = described(width)
        card = RewardCard(
            participant=name,
            width=width,
            accuracy=lines[name].reward_accuracy,
            num_parameters=num_parameters,
            dataset=dataset.name,
            layer=layer,
            schema=dataset.schema,
            run=keeper.folder.name,
        )
        sub_params = extract(state.model_of(name), network.layouts, width)
        return card, network.plain_params(sub_params, width)

    def task(name: str) -> RewardTask:
        card, params = reward(name)
        return RewardTask(card.to_json(), params)

    keepers = strategy.roster.keepers
    failed = strategy.deliver(task, config.round_timeout_s) if keepers else {}
    for name in lines:
        if name not in keepers or name in failed:
            save_reward(keeper.folder / REWARDS_FOLDER, *reward(name))
