"""The image from our Dockerfile, the federation of compose.yml, the demo, the rewards.

Uses the Docker engine of this machine, or one that the script `dockerd` beside this file starts.
AEQUA_DOCKER_DIR is a folder for that one, which the next run finds again.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

pytestmark = pytest.mark.lab
ROOT = Path(__file__).parents[2]
DOCKERD = Path(__file__).with_name("dockerd")
COMPOSE = ("compose", "-f", str(ROOT / "docker" / "compose.yml"))
SITES = ("hospital-a", "hospital-b", "hospital-c")


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which `docker` works."""
    if shutil.which("docker") and works(os.environ):
        yield dict(os.environ)
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        pytest.skip("there is no Docker engine, and starting one needs root on Debian")
    folder = Path(os.environ.get("AEQUA_DOCKER_DIR", tmp_path_factory.mktemp("docker")))
    try:
        yield started(folder)
    finally:
        subprocess.run([DOCKERD, "stop", folder], check=True)


def started(folder: Path) -> dict[str, str]:
    """Start an engine below ``folder``; return the environment in which `docker` finds it."""
    # The script prints exports for a shell.
    script = 'exports="$("$1" start "$2")" && eval "$exports" && env -0'
    done = subprocess.run(
        ["bash", "-c", script, "bash", DOCKERD, folder],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    pairs = (line.partition("=") for line in done.stdout.split("\0") if line)
    return {key: value for key, _, value in pairs}


def works(env: Mapping[str, str]) -> bool:
    asked = subprocess.run(["docker", "info"], env=dict(env), capture_output=True, check=False)
    return asked.returncode == 0


def docker(env: Mapping[str, str], *arguments: str) -> str:
    done = subprocess.run(
        ["docker", *arguments], env=dict(env), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{arguments}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def test_the_demo_from_build_to_rewards(env: dict[str, str]) -> None:
    started = time.monotonic()
    docker(env, *COMPOSE, "build")
    built = time.monotonic()
    size = int(docker(env, "image", "inspect", "aequa-flwr", "--format", "{{.Size}}"))
    assert docker(env, "run", "--rm", "aequa-flwr", "id", "-u").strip() == "10001"
    try:
        docker(env, *COMPOSE, "up", "-d", "--wait")
        up = time.monotonic()
        output = docker(env, *COMPOSE, "run", "--rm", "demo")
        assert "Training together: round 10 of 10" in output
        assert "hospital-a" in output
        demo = time.monotonic()
        runs = docker(env, *COMPOSE, "exec", "superexec", "ls", "/srv/aequa/runs").split()
        record = json.loads(
            docker(
                env, *COMPOSE, "exec", "superexec", "cat", f"/srv/aequa/runs/{runs[-1]}/record.json"
            )
        )
        assert record["status"] == "completed"
        assert record["failures"] == []
        for site in SITES:
            found = docker(env, *COMPOSE, "exec", site, "find", "/srv/aequa/rewards", "-type", "f")
            folder = f"/srv/aequa/rewards/{runs[-1]}/{site}"
            assert sorted(found.split()) == [f"{folder}/card.json", f"{folder}/model.safetensors"]
    finally:
        docker(env, *COMPOSE, "down", "--volumes")
    print(  # noqa: T201 - the figures are what one runs it for
        f"\nimage {size / 1e9:.2f} GB, build {built - started:.0f} s, up {up - built:.0f} s, "
        f"demo {demo - up:.0f} s"
    )
