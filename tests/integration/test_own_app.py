"""Somebody's own Flower app: `AequaStrategy` on the server, `make_client_app` on the nodes."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import Result

from aequa_flwr import (
    AequaStrategy,
    RunRecord,
    Schema,
    UserError,
    load_reward,
    load_run,
    make_client_app,
    simulate,
)
from aequa_flwr.data import Arrays
from aequa_flwr.federation import CONFIG
from aequa_flwr.results import Progress, Times
from aequa_flwr.simulation import InProcessGrid, as_flower_task
from aequa_flwr.slim.networks import BUILDERS, SlimNetwork
from tests.unit.data_files import load

DIGITS = load("digits")
VALIDATION = (DIGITS.test.x, DIGITS.test.y)
SHARES = {
    "participant-01": (DIGITS.train.x[:600], DIGITS.train.y[:600]),
    "participant-02": (DIGITS.train.x[600:900], DIGITS.train.y[600:900]),
    "participant-03": (DIGITS.train.x[900:1050], DIGITS.train.y[900:1050]),
}
SMALL: dict[str, Any] = {"participants": 3, "rounds": 2, "join_timeout_s": 0.3}
DEPLOYED: dict[str, Any] = SMALL | {"reward": "earned"}


def load_data(context: Context) -> Arrays:
    return list(SHARES.values())[int(context.node_config["partition-id"])]


def make_network(schema: Schema) -> SlimNetwork:
    return BUILDERS["mlp"](schema)


APP = make_client_app(load_data, make_network)


class Recorder(InProcessGrid):
    """Keeps what was sent."""

    def push_messages(self, messages: Any) -> Any:
        messages = list(messages)
        self.sent = [*getattr(self, "sent", ()), *messages]
        return super().push_messages(messages)

    sent: Sequence[Message] = ()


def start(
    strategy: AequaStrategy,
    app: ClientApp = APP,
    sites: Sequence[Mapping[str, str]] | None = None,
    **arguments: Any,
) -> tuple[Result, Recorder]:
    with as_flower_task():
        grid = Recorder(app, {}, 3, sites)
        return strategy.start(grid, **arguments), grid


def run(app: ClientApp = APP, **settings: Any) -> RunRecord:
    strategy = AequaStrategy(make_network, VALIDATION, **SMALL | settings)
    start(strategy, app)
    return timeless(strategy.record)


def timeless(record: RunRecord) -> RunRecord:
    return replace(record, times=Times())


def test_three_participants_with_their_own_data_and_network(tmp_path: Path) -> None:
    strategy = AequaStrategy(make_network, VALIDATION, output=tmp_path / "run", **SMALL)
    result, _ = start(strategy)
    record = strategy.record
    assert (record.status, record.failures) == ("completed", ())
    assert record.config["network"] == f"{__name__}:make_network"
    assert {line.name: line.num_examples for line in record.participants} == {
        name: len(y) for name, (_, y) in SHARES.items()
    }
    assert [round.num_trained for round in record.rounds] == [3, 3]
    assert load_run(tmp_path / "run").record == record
    for line in record.participants:
        card, params = strategy.reward_of(line.name)
        assert (card.width, card.accuracy) == (line.width, line.reward_accuracy)
        saved = load_reward(tmp_path / "run" / "rewards" / line.name).state_dict()
        assert all(np.array_equal(saved[name].numpy(), value) for name, value in params.items())
    assert result.arrays is not None
    final = {name: array.numpy() for name, array in result.arrays.items()}
    assert all(np.array_equal(final[k], value) for k, value in strategy.state.params.items())
    assert sorted(result.train_metrics_clientapp) == [1, 2]


def test_it_is_the_federation_that_simulate_runs() -> None:
    """Nodes that bring their data and one process that knows it all agree on every number."""
    schema = DIGITS.schema
    strategy = AequaStrategy("mlp", VALIDATION, schema=schema, held_out_fraction=0.0, **SMALL)
    start(strategy, make_client_app(load_data))
    simulated = simulate(
        data=SHARES, validation=VALIDATION, schema=schema, network="mlp", held_out_fraction=0.0,
        rounds=2, join_timeout_s=0.3, progress=False,
    ).record  # fmt: skip
    own = strategy.record
    for part in ("config", "rounds", "participants", "curve", "measures", "failures"):
        assert getattr(own, part) == getattr(simulated, part), part


@pytest.mark.parametrize(
    "settings",
    [{"reward": "training-time", "contribution": "cgsv"}, {"method": "iafl"}],
    ids=["training-time rewards", "a baseline"],
)
def test_settings_reach_the_nodes(settings: dict[str, Any]) -> None:
    record = run(**settings, local_epochs=2, learning_rate=0.1)
    assert (record.status, record.failures) == ("completed", ())
    assert record.rounds != run(**settings, local_epochs=1, learning_rate=0.1).rounds


def test_without_output_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run().status == "completed"
    assert list(tmp_path.iterdir()) == []


def test_trackers_are_told_of_the_run(tmp_path: Path) -> None:
    run(output=tmp_path / "run", tensorboard=True)
    assert list((tmp_path / "run" / "tensorboard").glob("events*"))


def test_held_out_data_is_measured_and_nothing_else() -> None:
    x, y = VALIDATION
    validation, held_out = (x[:200], y[:200]), (x[200:], y[200:])
    strategy = AequaStrategy("mlp", validation, held_out=held_out, schema=DIGITS.schema, **SMALL)
    start(strategy, make_client_app(load_data))
    record = strategy.record
    assert record.data is not None
    assert (record.data.num_validation, record.data.num_held_out) == (200, len(y) - 200)
    assert record.held_out is not None
    alone = AequaStrategy("mlp", validation, schema=DIGITS.schema, **SMALL)
    start(alone, make_client_app(load_data))
    assert alone.record.held_out is None
    assert alone.record.measures == record.measures


def test_without_validation_data_rewards_go_by_width() -> None:
    strategy = AequaStrategy("mlp", schema=DIGITS.schema, contribution="data-size", **SMALL)
    start(strategy, make_client_app(load_data))
    record = strategy.record
    widths = [line.width for line in record.participants if line.width is not None]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == 1.0
    assert record.measures is not None
    assert record.measures.accuracy is None


def test_named_nodes_keep_their_rewards_themselves(tmp_path: Path) -> None:
    names = dict(zip(("north", "south", "west"), SHARES.values(), strict=True))
    sites = [{"participant": name, "rewards": str(tmp_path / name)} for name in names]
    app = make_client_app(lambda context: names[str(context.node_config["participant"])])
    strategy = AequaStrategy("mlp", VALIDATION, output=tmp_path / "run", **DEPLOYED)
    start(strategy, app, sites)
    assert [line.name for line in strategy.record.participants] == list(names)
    for name in names:
        assert load_reward(tmp_path / name / "run" / name) is not None
    assert not (tmp_path / "run" / "rewards").exists()


def broken(second: Callable[[], Any]) -> ClientApp:
    """An app whose second participant's load_data does ``second`` instead."""

    def load(context: Context) -> Arrays:
        arrays: Arrays = (
            second() if context.node_config["partition-id"] == 1 else load_data(context)
        )
        return arrays

    return make_client_app(load, make_network)


def read_missing_file() -> Arrays:
    return np.load("/no/such/file.npy"), np.zeros(1)


X, Y = SHARES["participant-02"]
BROKEN: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "no pair": (lambda: X, ("pair (x, y)",)),
    "nothing": (lambda: None, ("pair (x, y)",)),
    "another shape": (lambda: (X[:, :, :4], Y), ("(1, 4, 8)", "(1, 8, 8)")),
    "another type": (lambda: (X.astype(np.float32), Y), ("float32", "uint8")),
    "labels of another class": (lambda: (X, Y + 5), ("label 14", "0 to 9")),
    "fewer labels": (lambda: (X, Y[:7]), ("300", "7 labels")),
    "no example": (lambda: (X[:0], Y[:0]), ("no example",)),
    "an error": (read_missing_file, ("load_data", "FileNotFoundError", "/no/such/file.npy")),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_node_whose_data_do_not_fit_is_refused_in_a_sentence_and_the_others_run(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    load_broken, words = BROKEN[name]
    record = run(broken(load_broken))
    assert record.status == "completed"
    assert [line.name for line in record.participants] == ["participant-01", "participant-03"]
    (reason,) = [f.reason for f in record.failures if f.participant == "node 101"]
    for word in (*words, "participant-02"):
        assert word in reason
    assert "\n" not in reason
    # The node's own log has the same sentence.
    assert any("cannot take part" in line and reason in line for line in caplog.messages)


def test_if_nobody_fits_the_run_fails_and_says_why() -> None:
    strategy = AequaStrategy(make_network, VALIDATION, **SMALL)
    app = make_client_app(lambda _context: (X[:, :, :4], Y), make_network)
    with pytest.raises(UserError, match=r"joined within 0.3 s: .*participant-01.*\(1, 4, 8\)"):
        start(strategy, app)
    assert strategy.record.status == "failed"


def test_the_reason_of_a_failed_run_stays_readable_however_many_are_refused() -> None:
    strategy = AequaStrategy(make_network, VALIDATION, **DEPLOYED)
    app = make_client_app(lambda _context: (X[:, :, :4], Y), make_network)
    with pytest.raises(UserError, match="and 17 more like these"):
        start(strategy, app, [{"participant": f"site-{k}"} for k in range(20)])
    assert len(strategy.record.failures) == 20


def test_members_of_a_deployed_federation_are_not_sent_the_full_model_unasked() -> None:
    strategy = AequaStrategy(make_network, VALIDATION, **SMALL)
    with pytest.raises(UserError, match="use reward = 'earned'"):
        start(strategy, sites=[{"participant": "north"}])
    assert strategy.record.status == "failed"


def test_a_second_node_of_the_same_name_is_refused() -> None:
    strategy = AequaStrategy("mlp", VALIDATION, **DEPLOYED)
    sites = [{"participant": name} for name in ("north", "north", "west")]
    start(strategy, make_client_app(lambda _context: (X, Y)), sites)
    (refused,) = [f for f in strategy.record.failures if f.participant == "north"]
    assert "name" in refused.reason
    assert [line.name for line in strategy.record.participants] == ["north", "west"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"evaluate_config": ConfigRecord({"x": 1})}, "evaluate_config"),
        ({"num_rounds": 5}, "num_rounds = 5, .*rounds = 2"),
        ({"initial_arrays": ArrayRecord([np.zeros(3)])}, "initial_arrays"),
    ],
    ids=["evaluate_config", "num_rounds", "initial_arrays"],
)
def test_what_cannot_be_done_is_refused_by_name(arguments: dict[str, Any], words: str) -> None:
    strategy = AequaStrategy(make_network, VALIDATION, **SMALL)
    with pytest.raises(ValueError, match=words):
        start(strategy, **arguments)


def test_a_round_cannot_be_started_from_other_arrays_or_out_of_turn() -> None:
    strategy = AequaStrategy(make_network, VALIDATION, **SMALL)
    grid = InProcessGrid(APP, {}, 3)
    with pytest.raises(ValueError, match="arrays"):
        strategy.configure_train(1, ArrayRecord([np.zeros(3)]), ConfigRecord(), grid)
    with pytest.raises(ValueError, match="server_round = 2"):
        strategy.configure_train(2, ArrayRecord(), ConfigRecord(), grid)


def test_what_flower_lets_a_caller_say_is_done() -> None:
    """initial_arrays, num_rounds, timeout, train_config and evaluate_fn, as in any strategy."""
    trained = AequaStrategy(make_network, VALIDATION, **SMALL)
    result, _ = start(trained)
    seen: list[int] = []

    def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
        seen.append(server_round)
        return MetricRecord({"size": sum(array.numpy().size for array in arrays.values())})

    strategy = AequaStrategy(make_network, VALIDATION, **SMALL)
    again, grid = start(
        strategy, initial_arrays=result.arrays, num_rounds=2, timeout=60.0,
        train_config=ConfigRecord({"mine": "hello"}), evaluate_fn=evaluate,
    )  # fmt: skip
    assert seen == [1, 2]
    assert again.evaluate_metrics_serverapp[2]["size"] == 64 * 64 + 64 + 64 * 64 + 64 + 640 + 10
    assert strategy.record.rounds[0].loss < trained.record.rounds[0].loss
    sent = [message.content.config_records for message in grid.sent if message.has_content()]
    assert all(records[CONFIG]["mine"] == "hello" for records in sent)


class StoppedError(Exception):
    """What a user's own function may raise."""


def stop_after_round(number: int) -> Callable[[Progress], None]:
    def stop(progress: Progress) -> None:
        if progress.stage == "training" and progress.done == number:
            raise StoppedError

    return stop


def test_a_run_that_was_stopped_continues_in_its_folder(tmp_path: Path) -> None:
    whole = run()
    stopped = AequaStrategy(
        make_network, VALIDATION, output=tmp_path / "run", on_progress=stop_after_round(1), **SMALL
    )
    with pytest.raises(StoppedError):
        start(stopped)
    assert load_run(tmp_path / "run").record.status == "failed"
    with pytest.raises(UserError, match="rounds"):
        AequaStrategy(
            make_network, VALIDATION, resume=str(tmp_path / "run"), **SMALL | {"rounds": 3}
        )
    again = AequaStrategy(make_network, VALIDATION, resume=str(tmp_path / "run"), **SMALL)
    assert again.state.server_round == 1
    start(again)
    assert timeless(again.record) == whole
    assert timeless(load_run(tmp_path / "run").record) == whole


IMAGES = Schema.numbered("images", (1, 8, 8), 10)
REFUSED: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "network": ({"network": "resnet99"}, ("network", "'resnet99'")),
    "network as a number": ({"network": 3}, ("network", "int", "SlimNetwork")),
    "validation": ({"validation": X}, ("validation", "pair (x, y)")),
    "validation that is missing": ({"validation": None}, ("validation", "schema")),
    "held_out": ({"held_out": (X[:, :, :4], Y)}, ("held_out", "(1, 4, 8)", "(1, 8, 8)")),
    "schema": ({"schema": replace(IMAGES, shape=(1, 9, 9))}, ("validation", "(1, 9, 9)")),
    "output": ({"output": f"{__file__}/run"}, ("output", "Not a directory")),
    "settings": ({"round": 3}, ("round", "did you mean rounds")),
    "settings of named data": ({"dataset": "mnist"}, ("dataset", "leave it out")),
    "settings of a run that is not there": ({"resume": "/no/run"}, ("/no/run",)),
    "settings that need a folder": ({"tensorboard": True}, ("tensorboard", "output")),
    "settings that need validation data": (
        {"validation": None, "schema": IMAGES, "allocation": "accuracy"},
        ("allocation", "validation"),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_argument_is_refused_in_one_sentence_at_once(name: str) -> None:
    arguments, words = REFUSED[name]
    with pytest.raises(UserError) as refused:
        AequaStrategy(**{"network": make_network, "validation": VALIDATION, **SMALL, **arguments})
    sentence = str(refused.value)
    assert [word for word in words if word not in sentence] == [], sentence
    assert "\n" not in sentence
    assert sentence.endswith(".")


def test_every_argument_has_a_test_of_its_refusal() -> None:
    arguments = set(inspect.signature(AequaStrategy).parameters) - {"on_progress"}
    assert {name.split()[0] for name in REFUSED} >= arguments


def test_a_folder_that_holds_a_run_is_refused_and_kept(tmp_path: Path) -> None:
    run(output=tmp_path / "run")
    before = (tmp_path / "run" / "record.json").read_bytes()
    with pytest.raises(UserError, match="already"):
        run(output=tmp_path / "run")
    assert (tmp_path / "run" / "record.json").read_bytes() == before


@pytest.mark.parametrize("argument", ["load_data", "network"])
def test_what_is_no_function_is_refused_by_name(argument: str) -> None:
    arguments: dict[str, Any] = {argument: 3}
    with pytest.raises(TypeError, match=f"{argument} must be a"):
        make_client_app(**arguments)


def test_a_network_can_be_named_on_both_sides() -> None:
    strategy = AequaStrategy("mlp", VALIDATION, **SMALL)
    with as_flower_task():
        strategy.start(InProcessGrid(make_client_app(load_data, "mlp"), {}, num_nodes=3))
    assert strategy.record.status == "completed"
    assert strategy.record.failures == ()
