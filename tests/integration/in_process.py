"""A Grid that runs the real ServerApp and ClientApp objects in one process."""

import json
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from flwr.app import Context, Error, Message, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

from client_app.app import app as client_app
from server_app.app import app as server_app


class InProcessGrid(Grid):
    """One context for each node; a pushed message is answered when its reply is pulled."""

    def __init__(
        self,
        run_config: dict[str, Any],
        num_nodes: int,
        sites: Sequence[dict[str, Any]] | None = None,
    ) -> None:
        # Flower's Message constructor asks for the identity of its process; private API, used
        # here and nowhere else.
        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 1
        self.contexts = {
            100 + k: Context(
                run_id=1,
                node_id=100 + k,
                node_config=sites[k] if sites else simulated(k, num_nodes),
                state=RecordDict(),
                run_config=run_config,
            )
            for k in range(num_nodes)
        }
        self.sent: list[Message] = []
        self._waiting: dict[str, Message] = {}

    def set_run(self, run: Run) -> None:
        raise AssertionError("not used")

    @property
    def run(self) -> Run:
        raise AssertionError("not used")

    def create_message(self, *_args: Any, **_kwargs: Any) -> Message:
        raise AssertionError("deprecated by Flower; the code under test must not call it")

    def get_node_ids(self) -> Iterable[int]:
        return list(self.contexts)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        ids = []
        for message in messages:
            message.metadata.__dict__["_message_id"] = str(uuid.uuid4())
            self._waiting[message.metadata.message_id] = message
            self.sent.append(message)
            ids.append(message.metadata.message_id)
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        # The last one first: nothing may depend on the order of arrival.
        for message_id in reversed([i for i in message_ids if i in self._waiting]):
            message = self._waiting.pop(message_id)
            return [self.answer(message)]
        return []

    def answer(self, message: Message) -> Message:
        """Let the real ClientApp answer; tests override it to inject a fault."""
        try:
            return client_app(message, self.contexts[message.metadata.dst_node_id])
        except Exception as error:  # as Flower's own runtime does
            return Message(Error(code=2, reason=repr(error)), reply_to=message)

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        raise AssertionError("waits for everybody; the code under test must not call it")


def simulated(number: int, num_nodes: int) -> dict[str, Any]:
    """What Flower's simulation tells a node."""
    return {"partition-id": number, "num-partitions": num_nodes}


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
    server_app(made, context)
    return made


def record_of(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    return record


def without_times(folder: Path) -> dict[str, Any]:
    record = record_of(folder)
    del record["times"]
    return record
