"""The library's in-process grid with the real ServerApp and ClientApp, and what tests add to it."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from flwr.app import Context, Message, RecordDict

from aequa_flwr import simulation
from aequa_flwr.server import steps as server_steps
from aequa_flwr.simulation import as_flower_task
from client_app.app import app as client_app
from server_app.app import app as server_app


class InProcessGrid(simulation.InProcessGrid):
    """Keeps every message that was sent; tests override ``answer`` to inject a fault."""

    def __init__(
        self,
        run_config: dict[str, Any],
        num_nodes: int,
        sites: Sequence[dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(client_app, run_config, num_nodes, sites)
        self.sent: list[Message] = []

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        sent = list(messages)
        self.sent += sent
        return super().push_messages(sent)

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        raise AssertionError("waits for everybody; the code under test must not call it")


def run_in_process(
    folder: Path,
    *,
    num_nodes: int,
    grid: type[InProcessGrid] = InProcessGrid,
    sites: Sequence[dict[str, Any]] | None = None,
    **overrides: Any,
) -> InProcessGrid:
    """Run the whole federation with the output ``folder``; raises what the ServerApp raises.

    ``sites`` are the node configs of a deployed federation.
    """
    config = {key.replace("_", "-"): value for key, value in overrides.items()}
    config["output"] = str(folder)
    made = grid(config, num_nodes, sites)
    context = Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config=config)
    with as_flower_task():
        server_app(made, context)
    return made


def run_interrupted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, in_round: int, **settings: Any
) -> None:
    """Run a federation whose server stops in ``in_round``, and resume it to its end."""
    step, calls = server_steps.Steps.step, [0]

    def dies(*arguments: Any) -> Any:
        calls[0] += 1
        if calls[0] == in_round:
            raise KeyboardInterrupt
        return step(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(server_steps.Steps, "step", dies)
        with pytest.raises(KeyboardInterrupt):
            run_in_process(folder, **settings)
    run_in_process(folder, resume=str(folder), **settings)


def record_of(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    return record


def without_times(folder: Path) -> dict[str, Any]:
    record = record_of(folder)
    del record["times"]
    return record
