"""Full models from nodes outside the rounds: standalone before them, or fine-tuned after them."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from flwr.app import Message, RecordDict

from aequa_flwr.federation.admission import Awaited, decode_asked
from aequa_flwr.federation.codec import (
    decode_alone_reply,
    encode_alone_task,
    encode_round_task,
)
from aequa_flwr.federation.exchange import Exchange, content_of, make_message
from aequa_flwr.federation.messages import TRAIN_ALONE, TRAIN_ROUND, AloneTask, RoundTask
from aequa_flwr.federation.reading import WireError
from aequa_flwr.results import Measured
from aequa_flwr.slim import Layouts, Params

# A reply stays below this size, however many participants a node hosts.
_REPLY_BYTES = 64_000_000
# A node answers in about this many replies, so that progress is visible.
_REPLIES = 20

# Receives the participants or nodes that failed, with reasons.
Fail = Callable[[Mapping[str, str]], None]
# The names in each message to each node.
_Parts = Mapping[int, Sequence[tuple[str, ...]]]


@dataclass(frozen=True, eq=False)
class Alone:
    """The standalone models in one reply, and their accuracies on the server's data."""

    models: dict[str, Params] = field(default_factory=dict)
    measured: dict[str, Measured] = field(default_factory=dict)


def train_alone(
    exchange: Exchange,
    nodes: Mapping[str, int],
    num_examples: Mapping[str, int],
    params: Params,
    layouts: Layouts,
    *,
    known: Iterable[str],
    measure: Callable[[Params], Measured],
    fail: Fail,
    timeout_s: float,
) -> Iterator[Alone]:
    """Let the participants in ``num_examples`` train alone from ``params``; yield each reply.

    ``nodes`` maps names to nodes; a participant without a node is not asked. A model is accepted
    only from its participant's node, once, and not if its name is in ``known``. ``fail`` receives
    failures with reasons, but not the participants without a reply within ``timeout_s``.
    """

    def task(names: tuple[str, ...]) -> RecordDict:
        return encode_alone_task(AloneTask(names, params))

    parts = _share_out(nodes, num_examples, params)
    taken = set(known)
    for _, reply in _ask(exchange, parts, TRAIN_ALONE, 0, task, timeout_s):
        node = exchange.sender(reply)
        try:
            answer = decode_alone_reply(content_of(reply), layouts)
        except WireError as error:
            fail({f"node {node}": str(error)})
            continue
        fail(answer.refused)
        got = Alone()
        for name, model in answer.models.items():
            if nodes.get(name) != node or name in taken:
                fail({name: "a standalone model that was not asked for was ignored"})
                continue
            got.measured[name] = measure(model)
            got.models[name] = model
        taken.update(got.models)
        yield got


def tune(
    exchange: Exchange,
    nodes: Mapping[str, int],
    awaited: Awaited,
    params: Params,
    *,
    fail: Fail,
    timeout_s: float,
) -> dict[str, Params]:
    """Let every participant fine-tune ``params``; return their own models, which are not summed.

    ``awaited`` covers all participants, with full width as its ``individual_width``. A participant
    without a model is missing in the result; ``fail`` receives the reason, unless it is not in
    ``nodes``.
    """

    def task(names: tuple[str, ...]) -> RecordDict:
        of_part = awaited.of(names)
        task = RoundTask(of_part.server_round, of_part.widths, params, of_part.individual_width)
        return encode_round_task(task)

    sizes = {name: awaited.num_examples[name] for name in awaited.widths}
    parts = _share_out(nodes, sizes, params)
    left = [names for of_node in parts.values() for names in of_node]
    server_round = awaited.server_round
    models: dict[str, Params] = {}
    for names, reply in _ask(exchange, parts, TRAIN_ROUND, server_round, task, timeout_s):
        left.remove(names)
        try:
            part = decode_asked(content_of(reply), awaited.of(names))
        except WireError as error:
            fail(dict.fromkeys(names, str(error)))
            continue
        models.update(part.individual)
        fail(part.refused)
    for names in left:
        fail(dict.fromkeys(names, "no reply in time"))
    return models


def _share_out(
    nodes: Mapping[str, int], num_examples: Mapping[str, int], params: Params
) -> dict[int, list[tuple[str, ...]]]:
    """Split each node's names into parts whose models fit into one reply, the largest first.

    A model has the size of ``params``.
    """
    model_bytes = sum(value.nbytes for value in params.values())
    most = max(1, _REPLY_BYTES // model_bytes)
    names_of: dict[int, list[str]] = {}
    there = [name for name in num_examples if name in nodes]
    for name in sorted(there, key=lambda name: -num_examples[name]):
        names_of.setdefault(nodes[name], []).append(name)
    parts = {}
    for node, names in names_of.items():
        size = min(most, -(-len(names) // _REPLIES))
        starts = range(0, len(names), size)
        parts[node] = [tuple(names[start : start + size]) for start in starts]
    return parts


def _ask(
    exchange: Exchange,
    parts: _Parts,
    kind: str,
    server_round: int,
    task: Callable[[tuple[str, ...]], RecordDict],
    timeout_s: float,
) -> Iterator[tuple[tuple[str, ...], Message]]:
    """Send each node the task of each of its parts; yield the names and reply of each."""
    left = {node: deque(of_node) for node, of_node in parts.items()}

    def messages(node: int) -> Iterator[Message]:
        return (make_message(node, kind, server_round, task(names)) for names in parts[node])

    queues = {node: messages(node) for node in parts}
    for reply in exchange.ask(queues, timeout_s):
        # A node has one message at a time, so its replies come in the order it was asked.
        yield left[exchange.sender(reply)].popleft(), reply
