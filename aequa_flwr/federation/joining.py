"""Joining: ask every node whom it hosts, until all participants have joined or time is up."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid

from aequa_flwr.errors import UserError
from aequa_flwr.federation.codec import decode_joined, encode_refusal
from aequa_flwr.federation.exchange import POLL_S, Exchange, content_of, make_message
from aequa_flwr.federation.messages import JOIN, REFUSE, Joined
from aequa_flwr.federation.reading import WireError
from aequa_flwr.files import SAFE_CHARACTERS, is_safe_name, write_whole

# How long the server waits for refused nodes to receive the reason.
_TELL_S = 5.0
# More than any site has, and few enough that weighted sums cannot overflow.
_MOST_EXAMPLES = 10**9


@dataclass
class Roster:
    """The participants that have joined so far: the node and the number of examples of each name.

    ``schema`` is the fingerprint that a node's schema must have; None: any. ``bound`` are the
    nodes that names belong to; no other node may use these names. ``known`` are the participants
    of a resumed run and their numbers of examples; no others are admitted. ``storing`` are the
    names whose node stores the reward, ``fingerprints`` those of the participants' data.
    ``refused`` has a pair (who, why) for each node or participant that could not join.
    """

    schema: str | None
    bound: Mapping[str, int] = field(default_factory=dict)
    known: Mapping[str, int] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    num_examples: dict[str, int] = field(default_factory=dict)
    storing: set[str] = field(default_factory=set)
    fingerprints: dict[str, str] = field(default_factory=dict)
    refused: list[tuple[str, str]] = field(default_factory=list)

    def admit(self, node: int, reply: Message) -> str:
        """Admit the participants of a node; return why some were refused, empty if none was."""
        try:
            joined = decode_joined(content_of(reply))
        except WireError as error:
            return self._refuse(f"node {node}", str(error))
        if joined.refusal:
            self._refuse(f"node {node}", joined.refusal)
            return ""  # the node has logged it already
        if self.schema is not None and joined.schema != self.schema:
            reason = "its schema (classes and form of the examples) differs from the server's; copy"
            return self._refuse(f"node {node}", f"{reason} schema.json into its data folder")
        reasons = [self._admit_one(node, name, joined) for name in joined.num_examples]
        return "; ".join(reason for reason in reasons if reason)

    def _admit_one(self, node: int, name: str, joined: Joined) -> str:
        count = joined.num_examples[name]
        if name in self.num_examples:
            return self._refuse(name, "another node has joined with this name; rename one of them")
        if self.bound.get(name, node) != node:
            return self._refuse(
                name,
                "this name belongs to another node; reconnect that node, or remove the name from "
                "the roster if the node is gone for good",
            )
        if not is_safe_name(name):
            return self._refuse(
                f"node {node}", f"its participant name is not allowed; use {SAFE_CHARACTERS}"
            )
        if not 1 <= count <= _MOST_EXAMPLES:
            few = "it has no training examples"
            return self._refuse(name, few if count < 1 else f"{count} examples are not plausible")
        if self.known and self.known.get(name) != count:
            had = self.known.get(name, "none")
            return self._refuse(
                name, f"it has {count} examples, but had {had} when the run started"
            )
        self.num_examples[name] = count
        self.nodes[name] = node
        self.fingerprints[name] = joined.fingerprints.get(name, "")
        if joined.stores_rewards:
            self.storing.add(name)
        return ""

    def _refuse(self, who: str, reason: str) -> str:
        self.refused.append((who, reason))
        return f"{who}: {reason}"


def gather(
    grid: Grid,
    exchange: Exchange,
    roster: Roster,
    *,
    expected: int,
    timeout_s: float,
    on_joined: Callable[[int, float], None],
) -> None:
    """Fill ``roster`` until all expected participants have joined or time is up.

    Nodes that connect meanwhile are asked too. A refused node is told why. ``on_joined`` receives
    the number of participants and the seconds left, after every reply and every second.
    """
    deadline = time.monotonic() + timeout_s
    asked: set[int] = set()
    told = 0.0
    while len(roster.num_examples) < expected and time.monotonic() < deadline:
        new = sorted(set(grid.get_node_ids()) - asked)
        asked.update(new)
        if new or time.monotonic() - told >= 1.0:
            told = time.monotonic()
            on_joined(len(roster.num_examples), deadline - told)
        refused: dict[int, str] = {}
        queues = {node: [make_message(node, JOIN, 0, RecordDict())] for node in new}
        for reply in exchange.ask(queues, deadline - time.monotonic()):
            node = exchange.sender(reply)
            if reason := roster.admit(node, reply):
                refused[node] = reason
            on_joined(len(roster.num_examples), deadline - time.monotonic())
        _tell_refused(exchange, refused)
        time.sleep(POLL_S)


def _tell_refused(exchange: Exchange, refused: Mapping[int, str]) -> None:
    """Send refused nodes the reasons, which they log for whoever runs them."""
    queues = {
        node: [make_message(node, REFUSE, 0, encode_refusal(reason))]
        for node, reason in refused.items()
    }
    for _ in exchange.ask(queues, _TELL_S):
        pass


def load_roster(path: Path) -> dict[str, int]:
    """Return which node each name belongs to; empty if ``path`` does not exist yet.

    A folder has a file for each name that holds the id of its node, such as
    ``operator/registered`` of `aequa federation init`.
    """
    try:
        if path.is_dir():
            files = (file for file in path.iterdir() if not file.name.startswith("."))
            return {file.name: int(file.read_text(encoding="utf-8")) for file in files}
        content = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): int(node) for name, node in content["nodes"].items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UserError(f"The roster {path} cannot be read ({error.strerror}).") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path} is not a roster; set roster to another file.") from None


def save_roster(path: Path, nodes: Mapping[str, int]) -> None:
    """Write which node each name belongs to, unless ``path`` is a folder: others write that."""
    if path.is_dir():
        return
    write_whole(path, json.dumps({"nodes": dict(sorted(nodes.items()))}, indent=1) + "\n")
