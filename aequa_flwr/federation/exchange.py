"""Sending messages to nodes and receiving their replies, over Flower's grid."""

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid
from flwr.superlink.grid import HttpGrid

from aequa_flwr.federation.reading import WireError

# The pause between two polls is a hundredth of the time waited so far, within these limits.
# Flower's own grids wait 0.1 s and more. Polling takes time from a core that may be training.
POLL_S, _MOST_S = 0.02, 0.25
# The number of replies that are fetched, and so held in memory, at once.
_AT_ONCE = 32


def is_deployed(grid: Grid) -> bool:
    """Return whether the nodes of ``grid`` are machines of their own, not simulated ones."""
    # Flower talks to a deployment runtime over HTTP, and to a simulation in memory.
    return isinstance(grid, HttpGrid) or bool(getattr(grid, "is_deployed", False))


def make_message(node: int, kind: str, server_round: int, content: RecordDict) -> Message:
    """Return a message of ``kind`` to ``node``."""
    return Message(content, dst_node_id=node, message_type=kind, group_id=str(server_round))


def content_of(reply: Message) -> RecordDict:
    """Return the content of a reply; raises WireError if the node failed."""
    if reply.has_error():
        raise WireError(reason_of(reply))
    return reply.content


def reason_of(reply: Message) -> str:
    """Return the reason in a reply that is an error from Flower."""
    reason = " ".join(str(reply.error.reason).split())
    return f"the node failed (code {reply.error.code}): {reason[-300:]}"


class Exchange:
    """Sends each node its messages one at a time, and knows which reply answers which message.

    ``attached`` are records added to every message that has no record of that name.
    """

    def __init__(self, grid: Grid, attached: Mapping[str, ConfigRecord] | None = None) -> None:
        self._grid = grid
        self._attached = {} if attached is None else attached
        self._sent: dict[str, int] = {}
        self.surplus: list[int] = []

    def ask(self, queues: Mapping[int, Iterable[Message]], timeout_s: float) -> Iterator[Message]:
        """Send each node its messages, one at a time, and yield replies as they arrive.

        A message is taken from its queue when it is sent, so none needs to be in memory before.
        Replies after ``timeout_s`` are not yielded. Nor is a second reply to the same message;
        ``surplus`` lists the nodes that sent one.
        """
        since = time.monotonic()
        deadline = since + timeout_s
        waiting = {node: iter(messages) for node, messages in queues.items()}
        pending: set[str] = set()
        ready = list(waiting)
        self._sent, self.surplus = {}, []
        while (ready or pending) and time.monotonic() < deadline:
            for node in ready:
                pending |= self._send_next(node, waiting[node])
            ready = []
            for reply in self._pull(list(pending)):
                asked = reply.metadata.reply_to_message_id
                if asked not in pending:
                    self.surplus.append(self.sender(reply))
                    continue
                pending.discard(asked)
                ready.append(self._sent[asked])
                since = time.monotonic()
                yield reply
                del reply  # free it before the next one is fetched
            if pending and not ready:
                waited = time.monotonic() - since
                time.sleep(min(_MOST_S, max(POLL_S, waited / 100)))

    def _pull(self, asked: Sequence[str]) -> Iterator[Message]:
        """Yield the replies that have arrived, fetched a few at a time: each may hold a model."""
        for start in range(0, len(asked), _AT_ONCE):
            replies = deque(self._grid.pull_messages(asked[start : start + _AT_ONCE]))
            while replies:
                yield replies.popleft()

    def _send_next(self, node: int, waiting: Iterator[Message]) -> set[str]:
        """Send the node's next message, if there is one; return the set of its id."""
        sent: set[str] = set()
        for message in islice(waiting, 1):
            for name, record in self._attached.items():
                if record and name not in message.content:
                    # A copy for each message: Flower would change a shared record in all of them.
                    message.content[name] = ConfigRecord(dict(record))
            sent.update(self._grid.push_messages([message]))
        self._sent |= dict.fromkeys(sent, node)
        return sent

    def sender(self, reply: Message) -> int:
        """Return the node that was asked; an error from Flower itself names another sender."""
        return self._sent.get(reply.metadata.reply_to_message_id, reply.metadata.src_node_id)
