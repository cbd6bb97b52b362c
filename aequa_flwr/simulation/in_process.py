"""A Flower grid whose nodes are in this process: the real ClientApp answers every message."""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.run import Run as FlowerRun
from flwr.supercore.task_identity import TaskIdentity

Scalar = str | int | float | bool


class InProcessGrid(Grid):
    """A grid of nodes in this process; a message is answered when its reply is pulled.

    ``sites`` are the node configs of a deployed federation; without them there are ``num_nodes``
    simulated nodes.
    """

    def __init__(
        self,
        client_app: ClientApp,
        run_config: Mapping[str, Scalar],
        num_nodes: int,
        sites: Sequence[Mapping[str, Scalar]] | None = None,
    ) -> None:
        self.is_deployed = sites is not None
        if sites is None:
            sites = [
                {"partition-id": number, "num-partitions": num_nodes} for number in range(num_nodes)
            ]
        self.client_app = client_app
        self.contexts = {
            100 + number: Context(
                run_id=1,
                node_id=100 + number,
                node_config=dict(site),
                state=RecordDict(),
                run_config=dict(run_config),
            )
            for number, site in enumerate(sites)
        }
        self._waiting: dict[str, Message] = {}

    def set_run(self, run: FlowerRun) -> None:
        """Raise RuntimeError: there is only one run."""
        raise RuntimeError("an in-process grid has one run")

    @property
    def run(self) -> FlowerRun:
        """Raise RuntimeError, as `set_run` does."""
        raise RuntimeError("an in-process grid has one run")

    def create_message(self, *_args: object, **_kwargs: object) -> Message:
        """Raise RuntimeError: Flower has deprecated this."""
        raise RuntimeError("build a flwr.app.Message instead")

    def get_node_ids(self) -> Iterable[int]:
        """Return the ids of all nodes."""
        return list(self.contexts)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Store messages and return their ids; nothing is computed before a reply is pulled."""
        ids = []
        for message in messages:
            message.metadata.__dict__["_message_id"] = str(uuid.uuid4())
            self._waiting[message.metadata.message_id] = message
            ids.append(message.metadata.message_id)
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Return one reply, if any is pending, so that only one model is in memory at a time."""
        # The last message first: nothing may depend on the order of arrival.
        for message_id in reversed([i for i in message_ids if i in self._waiting]):
            return [self.answer(self._waiting.pop(message_id))]
        return []

    def answer(self, message: Message) -> Message:
        """Return the ClientApp's reply; an exception becomes an error reply, as in Flower."""
        try:
            return self.client_app(message, self.contexts[message.metadata.dst_node_id])
        except Exception as error:
            return Message(Error(code=2, reason=repr(error)), reply_to=message)

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Return the replies to all messages; ``timeout`` is ignored."""
        ids = list(self.push_messages(messages))
        return [reply for one in ids for reply in self.pull_messages([one])]


@contextmanager
def as_flower_task() -> Iterator[None]:
    """Let this process create Flower messages, as a process that Flower started can."""
    # A Message asks for the identity of its process, and there is no public way to set it.
    names = ("_task_id", "_run_id", "_node_id")
    before = {name: getattr(TaskIdentity, name) for name in names}
    for name in names:
        setattr(TaskIdentity, name, 1)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(TaskIdentity, name, value)
