"""The ClientApp: decode a message, train the participants of this node, encode the answer.

A deployed node starts a new process for every message: what needs torch, which takes seconds to
import, is imported by the messages that train.
"""

import logging
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp

from aequa_flwr import wire
from aequa_flwr.config import RunConfig
from aequa_flwr.data import FederatedData, federated_data, site_data
from aequa_flwr.errors import UserError
from aequa_flwr.seeding import rng_for

if TYPE_CHECKING:
    from aequa_flwr.hosting import Host
    from aequa_flwr.training import LocalPlan, Resident

logger = logging.getLogger(__name__)
app = ClientApp()


@app.query("join")
def join(message: Message, context: Context) -> Message:
    """Say whom this node hosts, or why it cannot take part."""
    try:
        data = _data(RunConfig.parse(context.run_config), *_site(context))
        hosted = {name: len(share) for name, share in data.shares.items()}
        if "data" not in context.node_config:
            from aequa_flwr.hosting import place

            node, num_nodes = (
                int(context.node_config[key]) for key in ("partition-id", "num-partitions")
            )
            hosted = {name: hosted[name] for name in place(hosted, num_nodes)[node]}
        keeps = "data" in context.node_config
        answer = wire.Joined(hosted, data.dataset.schema.fingerprint, keeps=keeps)
    except UserError as error:
        logger.warning("This node cannot take part: %s", error)
        answer = wire.Joined(refusal=str(error).rstrip("."))
    return Message(wire.encode_joined(answer), reply_to=message)


@app.query("refuse")
def refuse(message: Message, _context: Context) -> Message:
    """Write into this side's log why the server does not take this node."""
    logger.warning("The server refused this node: %s", wire.decode_refusal(message.content))
    return Message(RecordDict(), reply_to=message)


@app.query("reward")
def store_reward(message: Message, context: Context) -> Message:
    """Write the reward of this node's participant to its own disk."""
    task = wire.decode_reward_task(message.content)
    try:
        answer = wire.RewardReply(stored=str(_store(task, context)))
    except (UserError, ValueError, OSError) as error:
        logger.warning("The reward cannot be stored: %s", error)
        answer = wire.RewardReply(refusal=f"it cannot store its reward: {error}")
    return Message(wire.encode_reward_reply(answer), reply_to=message)


def _store(task: wire.RewardTask, context: Context) -> Path:
    from aequa_flwr.rewards import RewardCard, safe_name, save_reward

    card = RewardCard.from_json(task.card)
    _, participant = _site(context)
    if card.participant != participant:
        raise UserError(f"the reward is {card.participant!r}'s, and this node is {participant!r}")
    folder = Path(str(context.node_config.get("rewards", "~/aequa-rewards"))).expanduser()
    path = save_reward(folder / safe_name(card.run), card, task.params)
    logger.info("The reward of this node is %s", path)
    return path


@app.train("alone")
def train_alone(message: Message, context: Context) -> Message:
    """Train participants by themselves for as many epochs as the whole run has."""
    config = RunConfig.parse(context.run_config)
    task = wire.decode_alone_task(message.content)
    rates = tuple(
        rate
        for server_round in range(1, config.rounds + 1)
        for rate in _rates(config, server_round)
    )
    plan = _plan(config, rates, p_min=None)
    host = _host(config, *_site(context))
    models, refused = host.train_alone(task.names, task.params, plan)
    return Message(wire.encode_alone_reply(wire.AloneReply(models, refused)), reply_to=message)


@app.train()
def train_round(message: Message, context: Context) -> Message:
    """Train participants for one round and return one partial sum of them all."""
    config = RunConfig.parse(context.run_config)
    task = wire.decode_round_task(message.content)
    host = _host(config, *_site(context))
    # With a single sub-network there is nothing to draw: one pass, which is FedAvg.
    single = len(host.network.levels(config.p_min, config.p_max)) == 1
    plan = _plan(config, _rates(config, task.server_round), p_min=None if single else config.p_min)
    part = host.train_round(
        task.server_round, task.widths, task.params, plan, task.common, task.models
    )
    return Message(wire.encode_round_part(task.server_round, part), reply_to=message)


def _plan(config: RunConfig, rates: tuple[float, ...], *, p_min: float | None) -> "LocalPlan":
    from aequa_flwr.training import LocalPlan

    return LocalPlan(
        rates,
        config.batch_size,
        config.momentum,
        p_min,
        distillation=config.distillation,
        augmented=config.augmentation != "none",
        clip_norm=config.clip_norm,
    )


def _rates(config: RunConfig, server_round: int) -> tuple[float, ...]:
    from aequa_flwr.training import scheduled_rate

    rate = scheduled_rate(config.learning_rate, config.lr_schedule, server_round, config.rounds)
    return (rate,) * config.local_epochs


def _site(context: Context) -> tuple[str, str]:
    """Return (data folder, participant's name) of a deployed node; both empty in simulation."""
    node = context.node_config
    return str(node.get("data", "")), str(node.get("participant", ""))


def _data(config: RunConfig, folder: str, participant: str) -> FederatedData:
    """Return the split of the simulated federation, or a deployed participant's own folder."""
    if not folder:
        return federated_data(config.data_spec)
    if not participant:
        raise UserError('The node has no name; add participant="NAME" to its --node-config.')
    dataset = site_data(
        config.dataset, folder, cache_dir=config.cache_dir, max_length=config.max_length
    )
    nobodys = np.empty(0, dtype=np.int64)
    return FederatedData(dataset, {participant: np.arange(len(dataset.train))}, nobodys)


# A simulated node's process answers many messages: the network and the tensors stay in it.
@lru_cache(maxsize=1)
def _host(config: RunConfig, folder: str, participant: str) -> "Host":
    from aequa_flwr.hosting import Host
    from aequa_flwr.slim.networks import build_network
    from aequa_flwr.training import choose_compute, flip_labels, keep_memory, limit_threads

    limit_threads(config.threads)
    keep_memory()
    data = _data(config, folder, participant)
    compute = choose_compute(config.device, config.precision)
    network = build_network(config.network, data.dataset.schema)
    schema = data.dataset.schema
    # An experiment on simulated participants; a deployed one does as it likes without being told.
    behaviours = {} if folder else dict(zip(data.shares, config.behaviours, strict=False))

    @cache
    def tensors(name: str) -> "Resident":
        resident = compute.resident(data.dataset.train, schema, data.shares[name])
        behaviour = behaviours.get(name)
        if behaviour is None or behaviour.kind != "flip":
            return resident
        rng = rng_for(config.seed, "flipped labels", name)
        return flip_labels(resident, behaviour.numbers[0], schema.num_classes, rng)

    return Host(
        network.to(compute.device),
        compute,
        tensors,
        config.seed,
        weight_by_examples=config.weighting == "examples",
        behaviours=behaviours,
    )
