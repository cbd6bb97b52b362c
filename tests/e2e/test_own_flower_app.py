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


class OwnApp:
    """A copy of the app, and a local SuperLink of Flower's own that runs it."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "examples" / "own_flower_app", folder)
        self._env = {
            **env,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]]),
            "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
            "FLWR_LOCAL_SUPERLINK_HTTP_API_PORT": str(choose_port(None)),
        }

    def run(self, settings: str) -> str:
        """Run the app with three nodes; return what it printed."""
        federation = "num-supernodes=3 client-resources-num-cpus=1"
        done = subprocess.run(
            ["flwr", "run", ".", "--stream", "-c", settings, "--federation-config", federation],
            cwd=self.folder,
            env=self._env,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def test_three_participants_are_trained_and_rewarded(
    tmp_path: Path, marked_env: dict[str, str]
) -> None:
    text = OwnApp(tmp_path / "app", marked_env).run(f'output="{tmp_path}/run"')
    run = load_run(tmp_path / "run")
    assert (run.record.status, run.record.failures) == ("completed", ()), text
    assert [line.num_examples for line in run.record.participants] == [648, 324, 162]
    assert list(run.rewards) == ["participant-01", "participant-02", "participant-03"]
    assert run.record.measures is not None
    assert run.record.measures.ipr == 1.0
    assert "participant-01: width" in text


@pytest.mark.long
def test_whose_data_do_not_fit_is_said_in_the_log_and_in_the_record(
    tmp_path: Path, marked_env: dict[str, str]
) -> None:
    app = OwnApp(tmp_path / "app", marked_env)
    client = app.folder / "own_flower_app" / "client_app.py"
    client.write_text(client.read_text(encoding="utf-8") + WRONG, encoding="utf-8")
    text = app.run(f'rounds=1 join-timeout-s=40.0 output="{tmp_path}/run"')
    record = record_of(tmp_path / "run")
    assert [line["name"] for line in record["participants"]] == ["participant-01", "participant-03"]
    (reason,) = [f["reason"] for f in record["failures"] if "load_data" in f["reason"]]
    assert "participant-02" in reason
    assert "(1, 4, 8)" in reason
    assert f"This node cannot take part: {reason}" in " ".join(text.split())
