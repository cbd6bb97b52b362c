"""How many processes a simulation has, and whether they fit into the machine."""

import psutil
import pytest
import torch

from aequa_flwr.data import federated_data
from aequa_flwr.deployment.processes import Size
from aequa_flwr.errors import UserError
from aequa_flwr.settings import RunConfig
from aequa_flwr.simulation.sizing import (
    RAY_ADDRESS,
    Wanted,
    check_memory,
    choose_size,
    count_cores,
    estimate_memory,
)
from aequa_flwr.slim.networks import build_network

CONFIG = RunConfig.parse({"device": "cpu", "participants": 3})


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(RAY_ADDRESS, raising=False)


def silent(text: str) -> None:
    raise AssertionError(text)


def test_there_is_a_worker_for_each_core_and_never_more_than_participants() -> None:
    cores = min(count_cores(), 3)
    assert choose_size(CONFIG, Wanted(), silent) == Size(cores, cores)
    assert choose_size(CONFIG, Wanted(workers=1), silent) == Size(1, 1)
    assert choose_size(CONFIG, Wanted(workers=1, nodes=50), silent) == Size(1, 3)


def test_more_workers_than_cores_is_said_and_reduced() -> None:
    said: list[str] = []
    size = choose_size(CONFIG, Wanted(workers=500), said.append)
    assert size.workers == min(count_cores(), 3)
    assert said[0].startswith("500 workers are more than this machine has room for")


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (Wanted(nodes=0), "--nodes 0 is not possible"),
        (Wanted(workers=-1), "--workers -1 is not possible"),
        (Wanted(per_gpu=0), "--workers-per-gpu 0 is not possible"),
        (Wanted(per_gpu=2), "--workers-per-gpu needs a GPU"),
    ],
)
def test_what_cannot_be_is_refused(wanted: Wanted, says: str) -> None:
    with pytest.raises(UserError, match=says):
        choose_size(CONFIG, wanted, silent)


def test_workers_share_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    config = RunConfig.parse({"device": "cuda", "participants": 10})
    assert choose_size(config, Wanted(), silent) == Size(2, 2, 1.0)
    size = choose_size(config, Wanted(per_gpu=4), silent)
    assert size == Size(8, 8, 0.25)
    assert "client-resources-num-gpus=0.25" in size.to_flower()


def test_a_ray_cluster_is_asked_for_as_many_workers_as_are_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(RAY_ADDRESS, "10.0.0.1:6379")
    config = RunConfig.parse({"device": "cpu", "participants": 5000})
    with pytest.raises(UserError, match="set --workers"):
        choose_size(config, Wanted(), silent)
    size = choose_size(config, Wanted(workers=64), silent)
    assert size == Size(64, 64, cluster=True)
    assert "init-args" not in size.to_flower()


def test_a_run_that_will_not_fit_is_refused_with_the_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = {"method": "cgsv", "participants": 8, "partition": "homogeneous"}
    config = RunConfig.parse(values)
    data = federated_data(config.data_spec)
    network = build_network(config.network, data.dataset.schema)
    size = Size(2, 2)
    check_memory(config, size, data, network)
    needed = estimate_memory(config, size, data, network)
    assert estimate_memory(config, Size(3, 3), data, network) > needed
    more = RunConfig.parse({**values, "participants": 800})
    # Three models of 17 kB for each participant.
    grown = estimate_memory(more, size, data, network) - needed
    assert grown == 3 * 792 * 4 * network.num_parameters(1.0)

    class Little:
        available = needed - 1

    monkeypatch.setattr(psutil, "virtual_memory", Little)
    with pytest.raises(UserError, match=rf"will need about {needed / 1e9:.1f} GB of memory"):
        check_memory(config, size, data, network)
