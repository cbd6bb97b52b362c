"""Joining: every node is asked whom it hosts, until all participants are there or time is up."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid

from aequa_flwr import wire
from aequa_flwr.exchange import POLL_S, Exchange, content_of, make_message


@dataclass
class Roster:
    """Who has joined so far: the node and the number of examples of each name.

    ``refused`` has a line (who, why) for each node or participant that could not join.
    """

    schema: str
    nodes: dict[str, int] = field(default_factory=dict)
    num_examples: dict[str, int] = field(default_factory=dict)
    refused: list[tuple[str, str]] = field(default_factory=list)

    def admit(self, node: int, reply: Message) -> None:
        """Take up the participants of a node, or say why not."""
        who = f"node {node}"
        try:
            joined = wire.decode_joined(content_of(reply))
        except wire.WireError as error:
            self.refused.append((who, str(error)))
            return
        if joined.refusal:
            self.refused.append((who, joined.refusal))
            return
        if joined.schema != self.schema:
            reason = "its classes or the form of its examples differ; copy the server's schema.json"
            self.refused.append((who, f"{reason} into its data folder"))
            return
        for name, count in joined.num_examples.items():
            if name in self.num_examples:
                reason = "a second node uses this name; give every node its own"
                self.refused.append((name, reason))
            elif count < 1:
                self.refused.append((name, "it has no training examples"))
            else:
                self.num_examples[name] = count
                self.nodes[name] = node


def gather(
    grid: Grid,
    exchange: Exchange,
    *,
    schema: str,
    expected: int,
    timeout_s: float,
    on_joined: Callable[[int], None],
) -> Roster:
    """Return who joined; ``on_joined`` is told how many after every answer.

    Nodes that connect meanwhile are asked too. ``schema`` is the fingerprint that a node must
    share.
    """
    roster = Roster(schema)
    on_joined(0)
    deadline = time.monotonic() + timeout_s
    asked: set[int] = set()
    while len(roster.num_examples) < expected and time.monotonic() < deadline:
        new = sorted(set(grid.get_node_ids()) - asked)
        asked.update(new)
        queues = {node: [make_message(node, wire.JOIN, 0, RecordDict())] for node in new}
        for reply in exchange.ask(queues, deadline - time.monotonic()):
            roster.admit(exchange.sender(reply), reply)
            on_joined(len(roster.num_examples))
        time.sleep(POLL_S)
    missing = expected - len(roster.num_examples)
    if roster.num_examples and missing > 0:
        roster.refused.append(("(unknown)", f"{missing} expected participants did not join"))
    return roster
