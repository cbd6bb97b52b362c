"""The command itself."""

import signal
import subprocess
import sys


def test_ctrl_c_while_everything_is_imported_is_quiet() -> None:
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "aequa_flwr.cli.main", "doctor"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    # Python names each module once it is imported: with pydantic's first, ours are under way.
    for line in process.stdout:
        if "pydantic" in line:
            process.send_signal(signal.SIGINT)
            break
    text, _ = process.communicate(timeout=60)
    assert "Traceback" not in text
    assert process.returncode == 130
