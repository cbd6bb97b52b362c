"""How many processes train, on what, and whether the machine has the memory for it."""

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

# The variable by which Ray finds a cluster that is up already.
RAY_ADDRESS = "RAY_ADDRESS"
# What the processes of a run hold before there is any data or model, measured: the command, the
# SuperLink, its helpers and Ray's own; the server; a worker.
_OF_ITSELF, _SERVER, _WORKER = 1_500_000_000, 900_000_000, 700_000_000
# Bytes for each parameter: float32 parameters as received, in the model, their gradients and
# momentum, the integers of the sum and its message at a worker; at the server the parameters before
# and after, the sum, a message as bytes and as arrays, the checkpoint.
_AT_WORKER, _AT_SERVER = 4 * 4 + 8 + 8, 2 * 4 + 8 + 2 * 8 + 4


@dataclass(frozen=True)
class Wanted:
    """What the user asked for; None where it is left to us."""

    workers: int | None = None
    nodes: int | None = None
    per_gpu: int | None = None


def choose_size(config: RunConfig, wanted: Wanted, say: Callable[[str], None]) -> Size:
    """Return the size of the simulation; what cannot be had is said, and reduced or refused."""
    given = ("--workers", wanted.workers), ("--nodes", wanted.nodes)
    for name, value in (*given, ("--workers-per-gpu", wanted.per_gpu)):
        if value is not None and value < 1:
            raise UsageError(f"{name} {value} is not possible; use at least 1.")
    gpus = _count_gpus(config.device)
    if wanted.per_gpu is not None and not gpus:
        raise UsageError("--workers-per-gpu needs a GPU, and none is used; leave it out.")
    share = 1.0 / (wanted.per_gpu or 1) if gpus else 0.0
    if os.environ.get(RAY_ADDRESS):
        if wanted.workers is None:
            raise UsageError(
                f"{RAY_ADDRESS} names a Ray cluster; say with --workers how many of its cores or "
                "GPUs are to train, or unset it."
            )
        count = min(wanted.workers, config.participants)
        return Size(count, min(wanted.nodes or count, config.participants), share, cluster=True)
    most = gpus * (wanted.per_gpu or 1) or count_cores()
    if wanted.workers is not None and wanted.workers > most:
        say(f"{wanted.workers} workers are more than the {most} there is room for; using {most}.")
    count = min(wanted.workers or most, most, config.participants)
    return Size(count, min(wanted.nodes or count, config.participants), share)


def count_cores() -> int:
    """Return how many cores this process may use, which a container or taskset may limit."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _count_gpus(device: str) -> int:
    if device not in ("auto", "cuda"):
        return 0
    import torch

    return torch.cuda.device_count()


def check_memory(config: RunConfig, size: Size, data: FederatedData, network: SlimNetwork) -> None:
    """Raise UserError if the run will need more memory than there is."""
    if size.cluster:
        return  # the workers' memory is other machines'
    needed = estimate_memory(config, size, data, network)
    available = psutil.virtual_memory().available
    if needed > available:
        raise UserError(
            f"The run will need about {needed / 1e9:.1f} GB of memory, and there are "
            f"{available / 1e9:.1f} GB; use fewer --workers or --participants, or a "
            "smaller batch-size or network."
        )


def estimate_memory(
    config: RunConfig, size: Size, data: FederatedData, network: SlimNetwork
) -> int:
    """Return about how many bytes all processes of the run will have at once.

    What a worker keeps for the backward pass is measured on one example. On the CPU the examples
    are pages of one file that all processes share. Models of their own, kept for each participant,
    are what grows with their number.
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
    """Return how many models of participants lie in memory at once, in all processes."""
    if not about_method(config.method, config.reward).sub_networks:
        # At the server, and in the messages of a round both ways.
        return 3 * config.participants
    return config.participants if build_estimator(config.contribution).needs.updates else 0
