"""A node's side of the conversation: a Flower ClientApp that answers every message of the server.

A deployed node starts a new process for every message. Torch takes seconds to import, so only
the messages that train import it.
"""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp

from aequa_flwr.data import (
    Arrays,
    Dataset,
    FederatedData,
    Schema,
    check_examples,
    examples_of_pair,
    federated_data,
    participant_names,
    site_data,
)
from aequa_flwr.errors import UserError
from aequa_flwr.federation.codec import (
    decode_alone_task,
    decode_refusal,
    decode_reward_task,
    decode_round_task,
    encode_alone_reply,
    encode_joined,
    encode_reward_reply,
    encode_round_part,
    read_settings,
)
from aequa_flwr.federation.messages import AloneReply, Joined, RewardReply, RewardTask
from aequa_flwr.options import in_short
from aequa_flwr.settings import RunConfig

if TYPE_CHECKING:
    from aequa_flwr.slim.networks import Builder, SlimNetwork
    from aequa_flwr.training import Cheat, Host, LocalPlan, Memory, Resident

logger = logging.getLogger(__name__)
_REWARDS = "~/aequa-rewards"


@dataclass(frozen=True)
class Given:
    """What a message says about the run: its settings, and the schema if the server sent it."""

    settings: RunConfig
    schema: Schema | None = None


# Returns the data that a node has for a run.
OpenData = Callable[[Given, Context], FederatedData]


def make_client_app(
    load_data: Callable[[Context], Arrays] | None = None,
    network: "str | Builder | SlimNetwork | None" = None,
) -> ClientApp:
    """Return the ClientApp of a participant; the server runs an `AequaStrategy`.

    The name of the participant is ``participant`` in the node's config. In a simulation, names are
    participant-01, participant-02, ...

    Args:
        load_data: A function that takes Flower's `Context` and returns the participant's inputs and
            labels ``(x, y)``: images as uint8, other numbers as floats, labels as integers from 0.
            By default, the settings name the data of a simulation, and ``data`` in the node's
            config names the folder of a deployed node.
        network: The same name, function or network as on the server. By default, it is found by its
            name in the settings.
    """
    if load_data is not None and not callable(load_data):
        raise TypeError("load_data must be a function of Flower's Context that returns (x, y)")
    if network is not None and not isinstance(network, str) and not callable(network):
        raise TypeError("network must be a name, a function of a schema, or a SlimNetwork")
    if load_data is None:
        return Node(open_named, network).client_app()
    return Node(_opener(load_data), network, brings_data=True).client_app()


class Node:
    """Answers each message from the server.

    ``open_data`` returns the node's data. A node that ``brings_data`` hosts everyone in it, and
    so does a deployed node. Others host their share of a simulated federation. ``cheats`` are the
    attacks of simulated participants, by name, and ``memories`` what those know beforehand.
    """

    def __init__(
        self,
        open_data: OpenData,
        network: "str | Builder | SlimNetwork | None" = None,
        *,
        brings_data: bool = False,
        cheats: "Mapping[str, Cheat] | None" = None,
        memories: "dict[str, Memory] | None" = None,
    ) -> None:
        self._open_data, self._network, self._brings_data = open_data, network, brings_data
        self._cheats = {} if cheats is None else cheats
        self._memories: dict[str, Memory] = {} if memories is None else memories
        self._hosts: dict[tuple[Given, str], Host] = {}

    def client_app(self) -> ClientApp:
        """Return a Flower ClientApp that answers with this node."""
        app = ClientApp()
        app.query("join")(self.join)
        app.query("refuse")(self.refuse)
        app.query("reward")(self.store_reward)
        app.train("alone")(self.train_alone)
        app.train()(self.train_round)
        return app

    def join(self, message: Message, context: Context) -> Message:
        """Answer with the participants of this node, or the reason why it cannot take part."""
        try:
            data = self._open_data(_given(message, context), context)
            names = self._hosted(data, context)
            answer = Joined(
                {name: self._size(name, data) for name in names},
                data.dataset.schema.fingerprint,
                stores_rewards=_is_deployed(context),
                fingerprints={name: data.fingerprint(name) for name in names},
            )
        except UserError as error:
            logger.warning("This node cannot take part: %s", error)
            answer = Joined(refusal=str(error).rstrip("."))
        return Message(encode_joined(answer), reply_to=message)

    def refuse(self, message: Message, _context: Context) -> Message:
        """Log the server's reason for refusing this node."""
        logger.warning("The server refused this node: %s", decode_refusal(message.content))
        return Message(RecordDict(), reply_to=message)

    def store_reward(self, message: Message, context: Context) -> Message:
        """Write the reward of this node's participant to the node's disk."""
        task = decode_reward_task(message.content)
        try:
            answer = RewardReply(stored=str(_store(task, context)))
        except (UserError, ValueError, OSError) as error:
            logger.warning("The reward could not be stored: %s", error)
            answer = RewardReply(refusal=f"it could not store its reward: {error}")
        return Message(encode_reward_reply(answer), reply_to=message)

    def train_alone(self, message: Message, context: Context) -> Message:
        """Train participants alone, for as many epochs as the whole run has."""
        task, given = decode_alone_task(message.content), _given(message, context)
        rounds = range(1, given.settings.rounds + 1)
        rates = tuple(rate for number in rounds for rate in _rates(given.settings, number))
        plan = _plan(given.settings, rates, p_min=None)
        models, refused = self._host(given, context).train_alone(task.names, task.params, plan)
        return Message(encode_alone_reply(AloneReply(models, refused)), reply_to=message)

    def train_round(self, message: Message, context: Context) -> Message:
        """Train participants for one round and answer with one partial sum of all of them."""
        task, given = decode_round_task(message.content), _given(message, context)
        settings, host = given.settings, self._host(given, context)
        plan = _plan(settings, _rates(settings, task.server_round), p_min=task.p_min)
        part = host.train_round(
            task.server_round, task.widths, task.params, plan, task.individual_width, task.models
        )
        return Message(encode_round_part(part), reply_to=message)

    def _size(self, name: str, data: FederatedData) -> int:
        size = len(data.shares[name])
        return self._cheats[name].claimed(size) if name in self._cheats else size

    def _hosted(self, data: FederatedData, context: Context) -> list[str]:
        if self._brings_data or _is_deployed(context):
            return list(data.shares)
        from aequa_flwr.training import place

        sizes = {name: len(share) for name, share in data.shares.items()}
        keys = ("partition-id", "num-partitions")
        node, num_nodes = (int(context.node_config[key]) for key in keys)
        return place(sizes, num_nodes)[node]

    def _host(self, given: Given, context: Context) -> "Host":
        """Return the host that trains this node's participants.

        The process of a simulated node answers many messages. It keeps the network and tensors,
        and nodes with the same data share them.
        """
        # What a node says of itself decides which data it has; a simulated share, nothing.
        apart = self._brings_data or _is_deployed(context)
        key = (given, repr(sorted(context.node_config.items())) if apart else "")
        if key not in self._hosts:
            # Hosts of other runs are not needed any more.
            self._hosts = {known: host for known, host in self._hosts.items() if known[0] == given}
            data = self._open_data(given, context)
            cheats = {} if _is_deployed(context) else self._cheats or _cheats_of(given, data)
            self._hosts[key] = _make_host(
                given.settings, data, cheats, self._memories, self._network
            )
        return self._hosts[key]


def open_named(given: Given, context: Context) -> FederatedData:
    """Return the data of all simulated participants, or of a deployed one from its folder."""
    settings = given.settings
    if not _is_deployed(context):
        return federated_data(settings.data_spec)
    folder, participant = str(context.node_config.get("data", "")), _name(context)
    if not participant:
        raise UserError(
            'The node has no participant name; add participant="NAME" to its --node-config.'
        )
    if not folder:
        raise UserError('The node has no data folder; add data="FOLDER" to its --node-config.')
    loaded = site_data(
        settings.dataset, folder, cache_dir=settings.cache_dir, max_length=settings.max_length
    )
    return _all_of_one(loaded.dataset, participant)


def _opener(load_data: Callable[[Context], Arrays]) -> OpenData:
    def open_own(given: Given, context: Context) -> FederatedData:
        if given.schema is None:
            raise UserError(
                "The server sent no schema; build its AequaStrategy with the validation data."
            )
        name = _name(context)
        if not name:
            number = int(context.node_config.get("partition-id", 0))
            name = participant_names(int(context.node_config.get("num-partitions", 1)))[number]
        try:
            arrays = load_data(context)
        except UserError:
            raise
        except Exception as error:  # the user's code
            logger.warning("load_data raised", exc_info=True)
            raise UserError(f"load_data failed for {name}: {in_short(error)}.") from error
        where = f"What load_data returned for {name}"
        examples = examples_of_pair(arrays, where)
        check_examples(examples, given.schema, where)
        return _all_of_one(Dataset("own", examples, examples, given.schema), name)

    return open_own


def _all_of_one(dataset: Dataset, participant: str) -> FederatedData:
    everything = {participant: np.arange(len(dataset.train))}
    return FederatedData(dataset, everything, np.empty(0, dtype=np.int64))


def _given(message: Message, context: Context) -> Given:
    sent = read_settings(message.content)
    if not sent:
        return Given(RunConfig.parse(context.run_config))
    schema = Schema.from_json(json.loads(str(sent.pop("schema"))))
    return Given(RunConfig.parse(sent), schema)


def _is_deployed(context: Context) -> bool:
    """Return whether the node is a deployed site: only those have these keys."""
    return "data" in context.node_config or "participant" in context.node_config


def _name(context: Context) -> str:
    return str(context.node_config.get("participant", ""))


def _store(task: RewardTask, context: Context) -> Path:
    from aequa_flwr.rewards import RewardCard, safe_name, save_reward

    card = RewardCard.from_json(task.card)
    if card.participant != _name(context):
        raise UserError(
            f"the reward belongs to {card.participant!r}, but this node is {_name(context)!r}"
        )
    folder = Path(str(context.node_config.get("rewards", _REWARDS))).expanduser()
    path = save_reward(folder / safe_name(card.run), card, task.params)
    logger.info("Stored the reward in %s", path)
    return path


def _plan(settings: RunConfig, rates: tuple[float, ...], *, p_min: float | None) -> "LocalPlan":
    from aequa_flwr.training import LocalPlan

    return LocalPlan(
        rates,
        settings.batch_size,
        settings.momentum,
        p_min,
        distillation=settings.distillation,
        augmented=settings.augmentation != "none",
        clip_norm=settings.clip_norm,
    )


def _rates(settings: RunConfig, server_round: int) -> tuple[float, ...]:
    from aequa_flwr.training import scheduled_rate

    rate = scheduled_rate(
        settings.learning_rate, settings.lr_schedule, server_round, settings.rounds
    )
    return (rate,) * settings.local_epochs


def _cheats_of(given: Given, data: FederatedData) -> "dict[str, Cheat]":
    """Return the attacks of the setting ``behaviour``, for experiments with simulated faults."""
    named = dict(zip(data.shares, given.settings.behaviours, strict=False))
    if not named:
        return {}
    from aequa_flwr.attacks import attack_of

    found = {name: attack_of(behaviour) for name, behaviour in named.items()}
    return {name: attack for name, attack in found.items() if attack is not None}


def _make_host(
    settings: RunConfig,
    data: FederatedData,
    cheats: "Mapping[str, Cheat]",
    memories: "dict[str, Memory]",
    network: "str | Builder | SlimNetwork | None",
) -> "Host":
    from aequa_flwr.slim.networks import build_network
    from aequa_flwr.training import (
        Cheating,
        Host,
        choose_compute,
        keep_memory,
        limit_threads,
    )

    limit_threads(settings.threads)
    keep_memory()
    schema = data.dataset.schema
    compute = choose_compute(settings.device, settings.precision)
    built = build_network(settings.network if network is None else network, schema)

    @cache
    def tensors(name: str) -> "Resident":
        return compute.resident(data.dataset.train, schema, data.shares[name])

    return Host(
        built.to(compute.device),
        compute,
        tensors,
        settings.seed,
        weight_by_examples=settings.weighting == "examples",
        cheating=Cheating(
            cheats,
            memories,
            outside=lambda: compute.resident(data.dataset.train, schema, data.held_out),
            num_classes=schema.num_classes,
            num_rounds=settings.rounds,
        ),
    )
