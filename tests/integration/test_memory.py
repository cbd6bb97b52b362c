"""What the server holds in memory while it collects a round of many nodes."""

import gc
import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np
from flwr.app import Message, RecordDict

from aequa_flwr.aggregation import RoundPart, RunningSum, Trained
from aequa_flwr.federation import Awaited, Exchange, collect, encode_round_part, make_message
from aequa_flwr.slim import Axis, Layouts
from tests.integration.in_process import InProcessGrid

LAYOUTS: Layouts = {"w": (Axis(4), 3)}
NODES = 100


class AllAtOnceGrid(InProcessGrid):
    """Every node has answered before anybody looks; it knows which answers are still held."""

    def __init__(self) -> None:
        super().__init__({}, NODES)
        self.alive: weakref.WeakSet[Message] = weakref.WeakSet()
        self.most_alive = self.left_of_earlier = 0

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        # What was read of them is no Message any more.
        parts = sum(type(one) is RoundPart for one in gc.get_objects())
        self.left_of_earlier = max(self.left_of_earlier, len(self.alive), parts)
        pull_one = super().pull_messages
        replies = [reply for asked in message_ids for reply in pull_one([asked])]
        self.alive.update(replies)
        self.most_alive = max(self.most_alive, len(self.alive))
        return replies

    def answer(self, message: Message) -> Message:
        running = RunningSum(LAYOUTS)
        running.add({"w": np.full((4, 3), message.metadata.dst_node_id, np.float32)})
        trained = (Trained(name_of(message.metadata.dst_node_id), 1.0, 5, 0.5),)
        return Message(encode_round_part(RoundPart(1, running.total, trained)), reply_to=message)


def name_of(node: Any) -> str:
    return f"site-{node}"


def test_replies_are_fetched_a_few_at_a_time_and_let_go_when_folded() -> None:
    grid = AllAtOnceGrid()
    nodes = list(grid.get_node_ids())
    exchange = Exchange(grid)
    queues = {node: [make_message(node, "train", 1, RecordDict())] for node in nodes}
    awaited = {
        node: Awaited(1, {name_of(node): 1.0}, {name_of(node): 5}, LAYOUTS) for node in nodes
    }
    gc.disable()  # nothing may need it
    try:
        collected = collect(exchange.ask(queues, 60.0), awaited, LAYOUTS, exchange.sender)
    finally:
        gc.enable()
    assert sorted(line.name for line in collected.trained) == sorted(map(name_of, nodes))
    mean = collected.total.mean({"w": np.zeros((4, 3), np.float32)})["w"]
    np.testing.assert_allclose(mean, np.mean(nodes))
    assert grid.most_alive < NODES / 2
    assert grid.left_of_earlier == 0
