"""examples/own_flower_app with plain `flwr run`, as its README says."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from aequa_flwr import load_run
from aequa_flwr.deployment import choose_port
from tests.e2e.conftest import ROOT, record_of

pytestmark = pytest.mark.skipif(
    " " in sys.executable, reason="Ray cannot start workers of a Python with a space in its path"
)
# The second participant's images lose half of their rows.
WRONG = """

def load_wrong(context: Context) -> Examples:
    x, y = load_data(context)
    return (x[:, :4], y) if context.node_config["partition-id"] == 1 else (x, y)


app = make_client_app(load_wrong, make_network)
"""


def test_it_runs_and_says_whose_data_do_not_fit(tmp_path: Path, marked_env: dict[str, str]) -> None:
    app = tmp_path / "own_flower_app"
    shutil.copytree(ROOT / "examples" / "own_flower_app", app)
    env = {
        **marked_env,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), marked_env["PATH"]]),
        "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
        "FLWR_LOCAL_SUPERLINK_HTTP_API_PORT": str(choose_port(None)),
    }

    def flwr_run(settings: str) -> str:
        federation = "num-supernodes=3 client-resources-num-cpus=1"
        done = subprocess.run(
            ["flwr", "run", ".", "--stream", "-c", settings, "--federation-config", federation],
            cwd=app,
            env=env,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    text = flwr_run(f'output="{tmp_path}/right"')
    run = load_run(tmp_path / "right")
    assert (run.record.status, run.record.failures) == ("completed", ()), text
    assert [line.num_examples for line in run.record.participants] == [648, 324, 162]
    assert list(run.rewards) == ["participant-01", "participant-02", "participant-03"]
    assert run.record.measures is not None
    assert run.record.measures.ipr == 1.0
    assert "participant-01: width" in text

    client = app / "own_flower_app" / "client_app.py"
    client.write_text(client.read_text(encoding="utf-8") + WRONG, encoding="utf-8")
    text = flwr_run(f'rounds=1 join-timeout-s=5.0 output="{tmp_path}/wrong"')
    record = record_of(tmp_path / "wrong")
    assert [line["name"] for line in record["participants"]] == ["participant-01", "participant-03"]
    (reason,) = [f["reason"] for f in record["failures"] if "load_data" in f["reason"]]
    assert "participant-02" in reason
    assert "(1, 4, 8)" in reason
    assert reason in " ".join(text.split())
