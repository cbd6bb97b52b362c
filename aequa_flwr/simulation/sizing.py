"""The size of a simulation: how many processes train, and whether there is enough memory."""

import os
from collections.abc import Callable
from dataclasses import dataclass

import psutil

from aequa_flwr.contribution import build_estimator
from aequa_flwr.data import FederatedData
from aequa_flwr.deployment import Size
from aequa_flwr.errors import UsageError, UserError
from aequa_flwr.methods import about_method
from aequa_flwr.settings import RunConfig
from aequa_flwr.slim.networks import SlimNetwork
from aequa_flwr.training import saved_bytes

# The environment variable by which Ray finds a running cluster.
RAY_ADDRESS = "RAY_ADDRESS"
# Bytes that the processes of a run take before any data or model, measured: the command, the
# SuperLink, its helpers and Ray together; the server; a worker.
_OF_ITSELF, _SERVER, _WORKER = 1_500_000_000, 900_000_000, 700_000_000
# Bytes for each parameter. At a worker: float32 parameters as received and in the model, their
# gradients and momentum, the integers of the sum and its message. At the server: the parameters
# before and after, the sum, a message as bytes and as arrays, the checkpoint.
_AT_WORKER, _AT_SERVER = 4 * 4 + 8 + 8, 2 * 4 + 8 + 2 * 8 + 4


@dataclass(frozen=True)
class Wanted:
    """The size that the user asked for; None: chosen automatically."""

    workers: int | None = None
    nodes: int | None = None
    per_gpu: int | None = None


def choose_size(config: RunConfig, wanted: Wanted, say: Callable[[str], None]) -> Size:
    """Return the size of the simulation.

    Too many workers are reduced, which is reported to ``say``. Raises UsageError for a size that
    is not possible.
    """
    given = ("--workers", wanted.workers), ("--nodes", wanted.nodes)
    for name, value in (*given, ("--workers-per-gpu", wanted.per_gpu)):
        if value is not None and value < 1:
            raise UsageError(f"{name} {value} is not possible; use at least 1.")
    gpus = _count_gpus(config.device)
    if wanted.per_gpu is not None and not gpus:
        raise UsageError("--workers-per-gpu needs a GPU, but none is used; leave it out.")
    share = 1.0 / (wanted.per_gpu or 1) if gpus else 0.0
    if os.environ.get(RAY_ADDRESS):
        if wanted.workers is None:
            raise UsageError(
                f"{RAY_ADDRESS} names a Ray cluster; set --workers to the number of its cores or "
                f"GPUs to use, or unset {RAY_ADDRESS}."
            )
        count = min(wanted.workers, config.participants)
        return Size(count, min(wanted.nodes or count, config.participants), share, cluster=True)
    most = gpus * (wanted.per_gpu or 1) or count_cores()
    if wanted.workers is not None and wanted.workers > most:
        say(f"{wanted.workers} workers are more than this machine has room for; using {most}.")
    count = min(wanted.workers or most, most, config.participants)
    return Size(count, min(wanted.nodes or count, config.participants), share)


def count_cores() -> int:
    """Return the number of cores that this process may use, as limited by container or taskset."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _count_gpus(device: str) -> int:
    if device not in ("auto", "cuda"):
        return 0
    import torch

    return torch.cuda.device_count()


def check_memory(config: RunConfig, size: Size, data: FederatedData, network: SlimNetwork) -> None:
    """Raise UserError if the run will need more memory than is available."""
    if size.cluster:
        return  # the workers use the memory of other machines
    needed = estimate_memory(config, size, data, network)
    available = psutil.virtual_memory().available
    if needed > available:
        raise UserError(
            f"The run will need about {needed / 1e9:.1f} GB of memory, but only "
            f"{available / 1e9:.1f} GB are available; use fewer --workers or --participants, or a "
            "smaller batch-size or network."
        )


def estimate_memory(
    config: RunConfig, size: Size, data: FederatedData, network: SlimNetwork
) -> int:
    """Return about how many bytes all processes of the run will use at once.

    What a worker keeps for the backward pass is measured on two examples. On the CPU the examples
    are pages of one file that all processes share. Only personal models, kept for each
    participant, grow with the number of participants.
    """
    parameters = network.num_parameters(1.0)
    schema = data.dataset.schema
    batch = min(config.batch_size, max((len(rows) for rows in data.shares.values()), default=1))
    on_cpu = size.gpus_per_worker == 0.0
    activations = saved_bytes(network, schema) * batch if on_cpu else 0
    worker = _WORKER + _AT_WORKER * parameters + activations
    examples = data.dataset.train.x.nbytes + data.dataset.test.x.nbytes
    kept = _kept_models(config) * 4 * parameters
    return _OF_ITSELF + _SERVER + _AT_SERVER * parameters + size.workers * worker + examples + kept


def _kept_models(config: RunConfig) -> int:
    """Return how many models of participants are in memory at once, in all processes."""
    if not about_method(config.method, config.reward).sub_networks:
        # At the server, and in the messages of a round both ways.
        return 3 * config.participants
    return config.participants if build_estimator(config.contribution).needs.updates else 0
