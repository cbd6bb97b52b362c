"""A whole run on real processes with TLS and keys, against the simulation of the same seed."""

import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aequa_flwr.data import save_schema
from aequa_flwr.deployment.processes import write_app
from aequa_flwr.rewards import load_card, load_reward
from aequa_flwr.settings import RunConfig
from tests.e2e.conftest import run_aequa
from tests.e2e.deployed import Deployed, deploy
from tests.integration.in_process import run_in_process
from tests.unit.data_files import load

pytestmark = pytest.mark.long
SIZES = (500, 250, 120)
SETTINGS: dict[str, Any] = {
    "dataset": "arrays", "network": "small-cnn", "participants": 3, "rounds": 6,
    "learning_rate": 0.05, "held_out_fraction": 0.0,
}  # fmt: skip

# What the ClientApp says when it joins, as a node of protocol 1 would say it.
OLD_NODE = """

from dataclasses import replace

from aequa_flwr.federation import node

encode = node.encode_joined


def encode_old(joined):
    return encode(replace(joined, protocol=1) if {0!r} in joined.num_examples else joined)


node.encode_joined = encode_old
"""


@dataclass
class Both:
    """The same federation twice: ``record`` of the real one, ``simulated`` of the other."""

    federation: Deployed
    run: Path
    record: dict[str, Any]
    simulated: dict[str, Any]
    output: str


def write_pool(folder: Path) -> None:
    """The data of all sites in one place, as a simulation wants it, and the server's."""
    digits = load("digits")
    folder.mkdir()
    groups = np.repeat(np.arange(len(SIZES)), SIZES)
    rows = np.arange(len(groups))
    np.savez(folder / "train.npz", x=digits.train.x[rows], y=digits.train.y[rows], groups=groups)
    np.savez(folder / "test.npz", x=digits.test.x, y=digits.test.y)
    save_schema(folder / "schema.json", digits.schema)


def write_site(folder: Path, pool: Path, size: int) -> None:
    """One site's own part of the pool."""
    with np.load(pool / "train.npz") as content:
        mine = content["groups"] == SIZES.index(size)
        folder.mkdir()
        np.savez(folder / "train.npz", x=content["x"][mine], y=content["y"][mine])
    (folder / "schema.json").write_bytes((pool / "schema.json").read_bytes())


def options(settings: dict[str, Any]) -> list[str]:
    pairs = (f"{key.replace('_', '-')}={value}" for key, value in settings.items())
    return [argument for pair in pairs for argument in ("--set", pair)]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    top = tmp_path_factory.mktemp("deployed-run")
    pool = top / "pool"
    write_pool(pool)
    # Simulated first: which participant has which group is drawn, and the sites are named so.
    run_in_process(
        top / "simulated",
        num_nodes=2,
        data_dir=str(pool),
        partition="natural",
        reward="earned",  # which is the default of the real one
        **SETTINGS,
    )
    simulated = json.loads((top / "simulated" / "record.json").read_text(encoding="utf-8"))
    sizes = {line["name"]: line["num_examples"] for line in simulated["participants"]}
    (pool / "train.npz").rename(top / "all.npz")
    (top / "server").mkdir()
    for name in ("test.npz", "schema.json"):
        (top / "server" / name).write_bytes((pool / name).read_bytes())
    (top / "all.npz").rename(pool / "train.npz")
    with deploy(top, list(sizes)) as federation:
        for name, size in sizes.items():
            write_site(top / f"data-{name}", pool, size)
            env = federation.node_env(top / f"data-{name}")
            env["AEQUA_REWARDS"] = str(top / f"rewards-{name}")
            federation.start(f"sites/{name}/start-supernode.sh", f"{name}.log", **env)
        done = run_aequa(
            *("run", "--connection", "aequa", "--data-dir", str(top / "server")),
            *("--output", str(top / "run")),
            *("--set", f"roster={federation.folder / 'operator' / 'registered'}"),
            *options(SETTINGS),
            cwd=top,
            env=federation.operator_env(),
        )
        assert done.returncode == 0, done.stdout + done.stderr + federation.log("exec.log")
        record = json.loads((top / "run" / "record.json").read_text(encoding="utf-8"))
        yield Both(federation, top / "run", record, simulated, done.stdout)


def test_a_real_federation_gives_what_the_simulation_gives(both: Both) -> None:
    assert both.record["status"] == "completed"
    assert both.record["failures"] == []
    for key in ("participants", "measures", "curve", "exposed"):
        assert flat(both.record[key]) == pytest.approx(flat(both.simulated[key]), abs=1e-6)
    for real, simulated in zip(both.record["rounds"], both.simulated["rounds"], strict=True):
        assert flat(real) == pytest.approx(flat(simulated), abs=1e-6)


def test_nobody_is_sent_a_better_model_than_its_reward(both: Both) -> None:
    assert both.record["config"]["reward"] == "earned"
    assert both.record["exposed"]["worst_leak"] == 0.0
    narrowest = [min(line["widths"]) for line in both.record["rounds"]]
    assert narrowest[0] == 1.0
    assert min(narrowest) < 1.0


def flat(value: Any) -> list[float]:
    """All numbers of a part of a record, in their order."""
    if isinstance(value, dict):
        return [number for key in sorted(value) for number in flat(value[key])]
    if isinstance(value, list):
        return [number for item in value for number in flat(item)]
    return [float(value)] if isinstance(value, int | float) else []


def test_each_site_has_its_own_reward_on_its_own_disk(both: Both) -> None:
    top = both.run.parent
    for line in both.record["participants"]:
        folder = top / f"rewards-{line['name']}"
        files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        mine = f"run/{line['name']}"
        assert files == {f"{mine}/card.json", f"{mine}/model.safetensors"}
        assert load_card(folder / mine).width == line["width"]
        load_reward(folder / mine)
    assert not (both.run / "rewards").exists()


def test_the_operator_sees_progress_and_the_result(both: Both) -> None:
    assert "Participants joining" in both.output
    assert "Training together: round 6 of 6" in both.output
    assert "Pearson" in both.output
    assert str(both.run / "report.html") in both.output


def test_a_second_node_of_the_same_name_is_refused_by_name(both: Both) -> None:
    federation, top = both.federation, both.run.parent
    first = both.record["participants"][0]["name"]
    done = run_aequa(
        *("federation", "add-site", str(federation.folder), "--sites", "impostor"),
        cwd=top,
        env=federation.env,
    )
    assert done.returncode == 0, done.stderr
    script = federation.folder / "sites" / "impostor" / "start-supernode.sh"
    text = script.read_text(encoding="utf-8")
    script.write_text(text.replace('participant=\\"impostor', f'participant=\\"{first}'))
    subprocess.run(
        [federation.folder / "operator" / "register-sites.sh"], env=federation.env, check=True
    )
    node = federation.start(
        "sites/impostor/start-supernode.sh",
        "impostor.log",
        **federation.node_env(top / f"data-{first}"),
    )
    federation.wait_for("SuperNode ID: ", "impostor.log", node)
    done = run_aequa(
        *("run", "--connection", "aequa", "--data-dir", str(top / "server")),
        *("--output", str(top / "again"), "--set", "join-timeout-s=20"),
        *("--set", f"roster={federation.folder / 'operator' / 'registered'}"),
        *options(SETTINGS | {"participants": 4, "rounds": 1, "contribution": "data-size"}),
        cwd=top,
        env=federation.operator_env(),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((top / "again" / "record.json").read_text(encoding="utf-8"))
    assert len(record["participants"]) == 3
    reasons = {f["reason"] for f in record["failures"] if f["participant"] == first}
    assert any("node" in reason for reason in reasons), record["failures"]
    # The impostor's own log says so too.
    assert "refused this node" in federation.log("impostor.log")


def test_a_node_of_another_version_is_refused_and_the_others_go_on(both: Both) -> None:
    federation, top = both.federation, both.run.parent
    old = both.record["participants"][1]["name"]
    config = RunConfig.parse(
        {key.replace("_", "-"): value for key, value in SETTINGS.items()}
        | {"data-dir": str(top / "server"), "output": str(top / "old"), "rounds": 1}
        | {"contribution": "data-size", "join-timeout-s": 30.0},
        deployed=True,
    )
    app = top / "app"
    write_app(app, config)
    # The code of a run travels with it, so an old node is one whose part of it says so.
    client = app / "client_app" / "app.py"
    with client.open("a", encoding="utf-8") as file:
        file.write(OLD_NODE.format(old))
    subprocess.run(["flwr", "run", app, "aequa"], env=federation.operator_env(), check=True)
    deadline = time.monotonic() + 240
    record: dict[str, Any] = {"status": "running"}
    while record["status"] == "running":
        assert time.monotonic() < deadline
        time.sleep(0.5)
        if (top / "old" / "record.json").exists():
            record = json.loads((top / "old" / "record.json").read_text(encoding="utf-8"))
    assert record["status"] == "completed"
    assert old not in [line["name"] for line in record["participants"]]
    reasons = [failure["reason"] for failure in record["failures"]]
    assert any("uses protocol 1 and the server" in reason for reason in reasons), reasons
    assert any("install the same version" in reason for reason in reasons)
