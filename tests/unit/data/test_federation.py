import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from aequa_flwr.data import federated_data, participant_names
from aequa_flwr.options import Spec
from tests.unit.data_files import TRAIN, spec_for, write_mnist


def test_held_out_examples_are_held_by_nobody() -> None:
    spec = spec_for("digits", participants=10, held_out_fraction=0.05)
    data = federated_data(spec)
    rows = np.concatenate([data.held_out, *data.shares.values()])
    assert len(data.held_out) == 70
    assert np.array_equal(np.sort(rows), np.arange(len(data.dataset.train)))
    assert data.validation is data.dataset.test


def test_no_held_out_fraction_means_no_held_out_data() -> None:
    assert len(federated_data(spec_for("digits")).held_out) == 0


def test_who_listens_does_not_make_another_data_set() -> None:
    spec = spec_for("digits")
    assert federated_data(spec, print) is federated_data(spec)


@pytest.mark.parametrize("name", ["digits", "fashion-mnist"])
def test_a_second_start_imports_nothing_heavy(tmp_path: Path, name: str) -> None:
    write_mnist(tmp_path, "FashionMNIST")
    spec = spec_for(name, tmp_path, partition=Spec("dirichlet", (1.0,)))
    federated_data(spec)
    code = f"""
import json, sys
from aequa_flwr.data import DataSpec, federated_data
from aequa_flwr.options import Spec
data = federated_data({spec!r})
print(json.dumps([len(data.dataset.train), sorted(sys.modules)]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    size, modules = json.loads(done.stdout)
    assert size in (TRAIN, 1438)
    heavy = {"torch", "torchvision", "sklearn", "datasets", "flwr_datasets", "PIL", "filelock"}
    assert not heavy & set(modules)


@pytest.mark.parametrize(("count", "last"), [(1, "participant-01"), (3597, "participant-3597")])
def test_names_sort_like_their_numbers(count: int, last: str) -> None:
    names = participant_names(count)
    assert names == sorted(names)
    assert names[-1] == last
