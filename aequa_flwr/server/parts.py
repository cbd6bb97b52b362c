"""The parts of a run, prepared and checked before it starts."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from aequa_flwr.allocation import FairAllocation
from aequa_flwr.contribution import (
    Assessor,
    ContributionEstimator,
    build_estimator,
    check_needs,
    unsmoothed,
)
from aequa_flwr.data import FederatedData, Say, federated_data, quiet
from aequa_flwr.errors import UserError
from aequa_flwr.methods import Attendance, Method, Setup, find_method, read_participation
from aequa_flwr.results import DataRecord, Measured, RunRecord, load_standalone, standalone_of
from aequa_flwr.seeding import rng_for
from aequa_flwr.server.steps import Calibrate, Rules, Steps
from aequa_flwr.settings import RunConfig
from aequa_flwr.slim import Params
from aequa_flwr.slim.networks import Builder, SlimNetwork, build_network, passes_for
from aequa_flwr.training import ServerData, check_augmentation, choose_compute, keep_memory

logger = logging.getLogger(__name__)

# If all levels cost more passes of the full network than this, every round measures them on a
# sample. On all data they would take up to a fifth of a round (benchmarks/exposure.py).
_MOST_PASSES = 1.5
# The answers that a probe has, and its fewest and most examples.
_ANSWERS, _LEAST_PROBED, _MOST_PROBED = 640, 16, 128


@dataclass(frozen=True)
class Parts:
    """The parts of a run that follow from settings and data, before it starts.

    ``earlier`` is the run whose standalone accuracies are reused, and its folder. ``spread`` is how
    far contributions lie apart that are accuracies and known before the rounds.
    """

    settings: RunConfig
    data: FederatedData
    network: SlimNetwork
    estimator: ContributionEstimator
    earlier: tuple[RunRecord, Path] | None = None
    spread: float | None = None

    @property
    def p_min(self) -> float:
        """The narrowest width."""
        return self.settings.narrowest(self.spread)

    def knowing(self, standalone: Mapping[str, Measured]) -> Self:
        """Return the parts of a run that knows these standalone accuracies, by name."""
        if not standalone or not self.estimator.needs.standalone:
            return self
        alone = [accuracy.validation for accuracy in standalone.values()]
        return replace(self, spread=max(alone) - min(alone))

    def steps(self) -> Steps:
        """Return the steps of the run, with the server's data in memory."""
        return make_steps(self, _server_data(self.settings, self.data, self.network))

    def describe(self) -> DataRecord:
        """Return what the record says about the data."""
        return DataRecord(
            dataset=self.data.dataset.name,
            num_train=sum(len(share) for share in self.data.shares.values()),
            num_validation=len(self.data.validation) if self.settings.validation else 0,
            num_held_out=len(self.data.held_out),
        )


def check_settings(settings: RunConfig) -> ContributionEstimator:
    """Return the contribution estimator; raises UserError for settings that fit no data."""
    choose_compute(settings.device, settings.precision)
    estimator = build_estimator(settings.contribution)
    check_needs(
        settings.contribution,
        estimator,
        validation=settings.validation,
        participants=settings.participants,
    )
    method = find_method(settings.method, settings.reward)
    _earlier(settings)
    return unsmoothed(estimator) if method.about.smooths else estimator


def prepare(
    settings: RunConfig,
    say: Say = quiet,
    *,
    data: FederatedData | None = None,
    network: Builder | SlimNetwork | None = None,
) -> Parts:
    """Load and check the parts of a run; raises UserError if they do not fit together.

    ``data`` and ``network`` are the caller's own, instead of those named in the settings.
    """
    estimator = check_settings(settings)
    earlier = _earlier(settings)
    data = federated_data(settings.data_spec, say) if data is None else data
    schema = data.dataset.schema
    check_augmentation(settings.augmentation, schema)
    seed = int(rng_for(settings.seed, "initial weights").integers(2**31))
    wanted = settings.network if network is None else network
    built = build_network(wanted, schema, init_seed=seed)
    built.ladder(settings.narrowest(), settings.p_max, most=settings.max_levels)
    if earlier is not None and data.shares:
        standalone_of(*earlier, {name: data.fingerprint(name) for name in data.shares})
    return Parts(settings, data, built, estimator, earlier)


def prepare_simulation(
    settings: RunConfig,
    say: Say = quiet,
    *,
    data: FederatedData | None = None,
    network: Builder | SlimNetwork | None = None,
) -> Parts:
    """Prepare a run whose participants are simulated; raises UserError if they have no data."""
    parts = prepare(settings, say, data=data, network=network)
    if not parts.data.shares:
        raise UserError(
            f"{settings.data_dir} has no training part to split among simulated participants; "
            "add one."
        )
    return parts


def make_steps(parts: Parts, server: ServerData | None) -> Steps:
    """Return the steps of a run; ``server`` is None if the server has no data."""
    settings, network, estimator = parts.settings, parts.network, parts.estimator
    ladder = network.ladder(parts.p_min, settings.p_max, most=settings.max_levels)
    seed = settings.seed
    scorer = None if server is None else server.scorer(ladder[0], settings.utility_examples)
    method = method_of(settings, ladder, estimator)
    few = None if server is None else server.few(settings.utility_examples)
    each_round = len(ladder) > 1 and not method.about.entrusts
    schema = parts.data.dataset.schema
    costly = each_round and passes_for(network, schema, ladder) > _MOST_PASSES
    levels = few if costly else server
    return Steps(
        method=method,
        attendance=Attendance(
            read_participation(settings.participation), seed, estimator.needs.everybody_first
        ),
        assessor=Assessor(
            estimator,
            width=ladder[0],
            layouts=network.layouts,
            classes=schema.num_classes,
            seed=seed,
            scorer=scorer,
            probe=None if server is None else server.probe(_probed(schema.num_classes)),
        ),
        layouts=network.layouts,
        ladder=ladder,
        p_min=parts.p_min,
        rules=Rules(
            round_quorum=settings.round_quorum,
            attempts=settings.round_attempts,
            norm_limit=settings.norm_limit,
            refusals=settings.set_aside_after,
            weighted=settings.weighting == "examples",
        ),
        measure=None if server is None else server.measure,
        measure_few=None if few is None else few.measure,
        measure_levels=None if levels is None else levels.measure,
        measure_alone=settings.measure_alone,
        calibrate=None if server is None else _calibrator(settings, server, ladder),
    )


def _probed(num_classes: int) -> int:
    """Return how many examples a probe has: about 640 answers, of which 320 say enough."""
    return min(_MOST_PROBED, max(_LEAST_PROBED, _ANSWERS // max(1, num_classes)))


def method_of(
    settings: RunConfig, ladder: tuple[float, ...], estimator: ContributionEstimator
) -> Method:
    """Return the method of a run whose contributions are those of ``estimator``."""
    ending = None
    if settings.allocation != "keep":
        ending = FairAllocation(
            ladder,
            by=settings.allocation,
            comparable=estimator.unit == "accuracy",
            solver=settings.solver,
            epsilon=settings.epsilon,
            curve_fit=settings.curve_fit,
            seed=settings.seed,
            objective=settings.objective,
        )
    setup = Setup(ladder, estimator, ending, settings.gamma, settings.nu, settings.disclosure / 100)
    return find_method(settings.method, settings.reward).build(setup)


def _earlier(settings: RunConfig) -> tuple[RunRecord, Path] | None:
    """Return the run whose standalone accuracies are reused and its folder, if there is one."""
    if not settings.standalone_from:
        return None
    path = Path(settings.standalone_from).expanduser()
    return load_standalone(path, settings.alone_settings()), path


def _server_data(
    settings: RunConfig, data: FederatedData, network: SlimNetwork
) -> ServerData | None:
    if not settings.validation:
        return None
    keep_memory()
    compute = choose_compute(settings.device, settings.precision)
    schema = data.dataset.schema
    held_out = compute.resident(data.dataset.train, schema, data.held_out)
    validation = compute.resident(data.validation, schema)
    return ServerData(
        network.to(compute.device), compute, validation, held_out if len(held_out) else None
    )


def _calibrator(
    settings: RunConfig, server_data: ServerData, ladder: Sequence[float]
) -> Calibrate | None:
    """Return the function that calibrates BatchNorm after training; None if it is not needed."""
    network = server_data.network
    if settings.calibration == "none" or not network.has_batch_norm:
        return None

    def calibrate(params: Params, trained: Sequence[int]) -> Params:
        every = settings.calibration == "all"
        widths = [width for width in ladder if every or network.bn_row_of(width) not in trained]
        logger.info("Calibrating BatchNorm at the widths %s", widths)
        return server_data.calibrate(params, widths, trained)

    return calibrate
