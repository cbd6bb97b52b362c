"""Whole models, asked of nodes outside the rounds: trained alone before, or tuned after them."""

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

# A reply of whole models is kept below this, however many participants a node hosts.
_REPLY_BYTES = 64_000_000
# And a node answers about so many times, so that people see it advance.
_REPLIES = 20

# Told who could not be used, and why.
Fail = Callable[[Mapping[str, str]], None]
# The names that each node is asked about, message by message.
_Parts = Mapping[int, Sequence[tuple[str, ...]]]


@dataclass(frozen=True, eq=False)
class Alone:
    """What one reply brought: models of the full width, and what the server measured of each."""

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
    """Let those of ``num_examples`` train alone from ``params``; yield what each reply brought.

    ``nodes`` says where names are; who is nowhere is not asked. A model is taken only from the
    node of its participant, once, and not if its name is ``known``. ``fail`` is not told of those
    from whom nothing came within ``timeout_s``.
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
                fail({name: "a standalone model that nobody asked for was dropped"})
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
    """Let everybody train ``params`` once more; what comes of it is its own, and goes into no sum.

    ``awaited`` is of all of them together, and its ``individual_width`` the full one. A participant
    that ends without a model is missing in the result; ``fail`` is told why, unless ``nodes`` does
    not know it.
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
    """Share each node's names out so that models like ``params`` of a part fit into one reply.

    The largest participants first.
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
    """Send each node the task of each of its parts; yield replies and the names they are about."""
    left = {node: deque(of_node) for node, of_node in parts.items()}

    def messages(node: int) -> Iterator[Message]:
        return (make_message(node, kind, server_round, task(names)) for names in parts[node])

    queues = {node: messages(node) for node in parts}
    for reply in exchange.ask(queues, timeout_s):
        # A node has one message at a time, so its replies come in the order it was asked.
        yield left[exchange.sender(reply)].popleft(), reply
