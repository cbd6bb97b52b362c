"""`simulate`: the same record as Flower's ServerApp, a caller's own data, and one clear refusal."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from aequa_flwr import RunRecord, Schema, UserError, load_reward, load_run, simulate
from aequa_flwr.results import Progress, Times
from aequa_flwr.slim.networks import BUILDERS, SlimNetwork, build_network
from tests.integration.in_process import run_in_process, without_times
from tests.unit.data_files import load

SMALL: dict[str, Any] = {"rounds": 2, "participants": 3, "partition": "quantity-skew:0.5,1"}
DIGITS = load("digits")
X, Y = DIGITS.train.x[:, 0], DIGITS.train.y


def quietly(**arguments: Any) -> RunRecord:
    return timeless(simulate(progress=False, **arguments).record)


def timeless(record: RunRecord) -> RunRecord:
    return replace(record, times=Times())


@pytest.fixture(scope="module")
def small() -> RunRecord:
    return quietly(**SMALL)


def test_the_record_is_that_of_the_server_app(tmp_path: Path, small: RunRecord) -> None:
    simulate(**SMALL, progress=False, output=tmp_path / "simulated")
    run_in_process(tmp_path / "flower", num_nodes=2, **SMALL)
    assert without_times(tmp_path / "simulated") == without_times(tmp_path / "flower")
    assert timeless(load_run(tmp_path / "simulated").record) == small


def test_without_any_argument_it_is_the_server_app_without_any_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = simulate(rounds=2)  # instead of 40
    assert "round 2 of 2" in capsys.readouterr().out
    run_in_process(tmp_path / "flower", num_nodes=1, rounds=2)
    assert timeless(run.record) == timeless(load_run(tmp_path / "flower").record)


def test_a_run_has_its_record_rewards_and_report(tmp_path: Path) -> None:
    run = simulate(**SMALL, progress=False)
    assert list(run.rewards) == [line.name for line in run.record.participants]
    x = torch.zeros(5, 1, 8, 8)
    with torch.no_grad():
        sizes = {name: reward(x).shape for name, reward in run.rewards.items()}
    assert set(sizes.values()) == {(5, 10)}
    assert run.report.startswith("<!DOCTYPE html>")
    assert "participant-03" in run.report
    assert "Pearson" in str(run)
    # The files last as long as anything that may load them.
    assert simulate(**SMALL, progress=False).rewards["participant-01"](x).shape == (5, 10)
    saved = run.save(tmp_path / "kept")
    temporary = run.folder
    del run
    assert not temporary.exists()
    again = load_run(tmp_path / "kept")
    assert again.record == saved.record
    reward = load_reward(tmp_path / "kept" / "rewards" / "participant-01")
    assert torch.equal(reward(x), again.rewards["participant-01"](x))
    with pytest.raises(UserError, match="exists already; choose another"):
        saved.save(tmp_path / "kept")


def test_own_arrays_are_shared_out_as_those_of_a_file(tmp_path: Path) -> None:
    """The same examples by `aequa run --dataset arrays` and from memory: the same record."""
    (tmp_path / "files").mkdir()
    for name, part in (("train", DIGITS.train), ("test", DIGITS.test)):
        np.savez(tmp_path / "files" / f"{name}.npz", x=part.x, y=part.y)
    named = quietly(dataset="arrays", data_dir=tmp_path / "files", network="small-cnn", **SMALL)
    own = quietly(data=(X, Y), validation=(DIGITS.test.x, DIGITS.test.y), **SMALL)
    assert own == named
    assert own.data is not None
    assert own.data.num_validation == len(DIGITS.test)


def test_without_validation_data_a_fifth_of_every_class_is_set_aside() -> None:
    data = quietly(data=(X, Y), **SMALL).data
    assert data is not None
    assert data.num_validation == pytest.approx(len(Y) / 5, abs=5)
    assert data.num_train + data.num_validation + data.num_held_out == len(Y)


def test_data_by_participant_keeps_names_and_shares() -> None:
    shares = {"north": (X[:700], Y[:700]), "a.south": (X[700:1000], Y[700:1000])}
    record = quietly(
        data=shares, validation=(DIGITS.test.x, DIGITS.test.y), rounds=2, held_out_fraction=0.0
    )
    lines = {line.name: line for line in record.participants}
    assert {name: line.num_examples for name, line in lines.items()} == {
        "north": 700, "a.south": 300,
    }  # fmt: skip
    assert lines["north"].width is not None
    assert record.failures == ()
    # In another order they are the same federation.
    assert record == quietly(
        data=dict(reversed(shares.items())),
        validation=(DIGITS.test.x, DIGITS.test.y),
        rounds=2,
        held_out_fraction=0.0,
    )


def test_a_table_gets_a_network_for_tables() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 6))
    record = quietly(data=(x.tolist(), (x[:, 0] > 0).astype(int)), rounds=1, participants=2)
    assert record.config["network"] == "mlp"
    assert record.status == "completed"


def make_mlp(schema: Schema) -> SlimNetwork:
    return BUILDERS["mlp"](schema)


def test_a_network_by_name_and_by_builder_are_one() -> None:
    named, built = quietly(**SMALL, network="mlp"), quietly(**SMALL, network=make_mlp)
    assert built.config["network"] == f"{__name__}:make_mlp"
    assert built.rounds == named.rounds
    assert built.participants == named.participants


def test_training_starts_from_the_weights_of_a_network_and_leaves_it_alone() -> None:
    schema = DIGITS.schema
    one, other = (build_network("mlp", schema, init_seed=seed) for seed in (1, 2))
    before = one.dump()
    first = quietly(**SMALL, network=one)
    assert all(np.array_equal(value, before[name]) for name, value in one.dump().items())
    assert quietly(**SMALL, network=one).rounds == first.rounds
    assert quietly(**SMALL, network=other).rounds != first.rounds


def test_the_schema_can_name_classes_that_nobody_has() -> None:
    schema = replace(DIGITS.schema, classes=(*DIGITS.schema.classes, "ten"))
    run = simulate(data=(X, Y), schema=schema, progress=False, **SMALL)
    assert run.rewards["participant-01"](torch.zeros(1, 1, 8, 8)).shape == (1, 11)


def test_a_function_is_told_where_the_run_is() -> None:
    told: list[Progress] = []
    simulate(**SMALL, progress=told.append)
    stages = list(dict.fromkeys(progress.stage for progress in told))
    assert stages == ["join", "contribution", "training", "curve", "rewards"]
    rounds = [(p.done, p.total) for p in told if p.stage == "training"]
    assert (1, 2) in rounds
    assert rounds[-1] == (2, 2)
    assert told[-1].fraction == 1.0


def test_the_folder_of_the_run_is_new_and_holds_everything(tmp_path: Path) -> None:
    run = simulate(**SMALL, progress=False, output=str(tmp_path / "a" / "run"))
    assert run.folder == tmp_path / "a" / "run"
    assert {path.name for path in run.folder.iterdir()} >= {"record.json", "report.html", "rewards"}
    with pytest.raises(UserError, match=r"output: .*run exists already; choose another folder"):
        simulate(**SMALL, progress=False, output=run.folder)


class StoppedError(Exception):
    """What a user's own function may raise."""


def stop_after_round(number: int) -> Callable[[Progress], None]:
    def stop(progress: Progress) -> None:
        if progress.stage == "training" and progress.done == number:
            raise StoppedError

    return stop


@pytest.mark.parametrize("own", [False, True], ids=["named data", "own arrays"])
def test_a_run_that_was_stopped_continues_in_its_folder(tmp_path: Path, own: bool) -> None:
    settings = {**SMALL, "rounds": 3, **({"data": (X, Y)} if own else {})}
    with pytest.raises(StoppedError):
        simulate(**settings, output=tmp_path / "run", progress=stop_after_round(1))
    stopped = load_run(tmp_path / "run").record
    assert (stopped.status, len(stopped.rounds)) == ("failed", 1)
    run = simulate(**settings, resume=str(tmp_path / "run"), progress=False)
    assert run.folder == tmp_path / "run"
    assert len(run.record.times.resumed) == 1
    assert timeless(run.record) == quietly(**settings)


def test_the_process_of_the_caller_is_left_as_it_was() -> None:
    threads, of_torch = torch.get_num_threads(), torch.random.get_rng_state()
    np.random.seed(7)
    expected = np.random.RandomState(7).random()
    simulate(**SMALL, progress=False)
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.random.get_rng_state(), of_torch)
    assert np.random.random() == expected


IMAGES = Schema.numbered("images", (1, 8, 8), 10)
# Arguments, and words of the sentence that refuses them: what is wrong, and with what.
REFUSED: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "data": ({"data": X}, ("data", "a pair (x, y)")),
    "data without a participant": ({"data": {}}, ("data", "no participant")),
    "data of bad names": ({"data": {"../a": (X, Y)}}, ("data", "'../a'", "letters")),
    "data of numbered names": ({"data": {1: (X, Y)}}, ("data", "the name 1 ", "letters")),
    "data of different shapes": (
        {"data": {"a": (X, Y), "b": (X[:, :4], Y)}},
        ("data", "'a'", "(1, 8, 8)", "'b'", "(1, 4, 8)"),
    ),
    "data without labels": ({"data": (X, Y[:5])}, ("data", "1438 examples", "5 labels")),
    "data of integers": ({"data": (X.astype(int), Y)}, ("data", "int64", "uint8")),
    "data of rows": ({"data": ([[1.0], [1.0, 2.0]], [0, 1])}, ("data", "lengths")),
    "data of bad labels": ({"data": (X, Y - 1)}, ("data", "label -1", "from 0")),
    "data beside a named data set": ({"data": (X, Y), "dataset": "mnist"}, ("dataset", "leave")),
    "validation": ({"validation": (X, Y)}, ("validation", "data")),
    "validation of another shape": (
        {"data": (X, Y), "validation": (X[:, :4], Y)},
        ("validation", "(1, 4, 8)", "(1, 8, 8)"),
    ),
    "schema": ({"schema": IMAGES}, ("schema", "data")),
    "schema as text": ({"data": (X, Y), "schema": "images"}, ("schema", "str")),
    "schema of another shape": (
        {"data": (X, Y), "schema": replace(IMAGES, shape=(1, 9, 9))},
        ("data", "(1, 8, 8)", "(1, 9, 9)"),
    ),
    "network": ({"network": "resnet99"}, ("network", "'resnet99'", "small-cnn")),
    "network as a number": ({"network": 3}, ("network", "int", "SlimNetwork")),
    "network of a bad builder": ({"network": lambda _schema: 3}, ("network", "int", "SlimNetwork")),
    "output": ({"output": Path(__file__).parent}, ("output", "exists")),
    "output below a file": ({"output": f"{__file__}/run"}, ("output", "Not a directory")),
    "output of a resumed run": ({"output": "new", "resume": "runs/one"}, ("output", "resume")),
    "backend": ({"backend": "dask"}, ("backend", "'dask'", "process", "ray")),
    "backend for data by participant": (
        {"backend": "ray", "data": {"a": (X, Y)}},
        ("data", 'backend="process"'),
    ),
    "backend for a network": (
        {"backend": "ray", "network": lambda _schema: None},
        ("network", "import", 'backend="process"'),
    ),
    "workers": ({"workers": 2}, ("workers", 'backend="ray"')),
    "settings": ({"round": 3}, ("round", "did you mean rounds")),
    "settings of another kind": ({"rounds": "three"}, ("rounds", "'three'", "whole number")),
    "settings out of range": ({"p_min": 2.0}, ("p-min", "2.0")),
    "settings that follow from data": (
        {"data": {"a": (X, Y)}, "participants": 3},
        ("participants", "data by participant"),
    ),
    "settings without a folder": ({"dataset": "mnist"}, ("data-dir", "mnist")),
    "settings of a run that is not there": ({"resume": "/no/run"}, ("/no/run",)),
    "settings of another command": ({"deliver": "runs/one"}, ("deliver", "leave it out")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_argument_is_refused_in_one_sentence_before_training(name: str) -> None:
    arguments, words = REFUSED[name]
    told: list[Progress] = []
    with pytest.raises(UserError) as refused:
        simulate(**{"progress": told.append, **arguments})
    sentence = str(refused.value)
    assert [word for word in words if word not in sentence] == [], sentence
    assert "\n" not in sentence
    assert sentence.endswith(".")
    assert told == []


def test_every_argument_has_a_test_of_its_refusal() -> None:
    """All but progress, for which anything that is true will do."""
    arguments = set(inspect.signature(simulate).parameters) - {"progress"}
    assert {name.split()[0] for name in REFUSED} >= arguments
