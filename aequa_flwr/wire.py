"""Messages: dataclasses to and from Flower records, their keys and the protocol version."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, MessageType, RecordDict

from aequa_flwr.aggregation import (
    SCALE,
    AggregationError,
    Int64,
    MaskedSum,
    RoundPart,
    Trained,
    common_part,
)
from aequa_flwr.reading import (
    HEAD,
    AnyArray,
    read_arrays,
    read_flag,
    read_floats,
    read_head,
    read_list,
    read_scalar,
)
from aequa_flwr.reading import WireError as WireError  # noqa: PLC0414 - caught as wire.WireError
from aequa_flwr.slim.subnet import NDArray, Params
from aequa_flwr.slim.width import Layouts, is_switchable, levels_held, prefix, shape_at

# Raise it with every change of a record; a node of another version is refused when it joins.
PROTOCOL_VERSION = 6

JOIN = f"{MessageType.QUERY}.join"
REFUSE = f"{MessageType.QUERY}.refuse"
REWARD = f"{MessageType.QUERY}.reward"
TRAIN_ALONE = f"{MessageType.TRAIN}.alone"
TRAIN_ROUND = MessageType.TRAIN

_PARAMS, _COMMON = "params", "common"
# What others wrote goes into logs and records; no reason needs more characters.
_LONGEST_REASON = 500


@dataclass(frozen=True)
class Joined:
    """A node's answer to joining: whom it hosts and how many examples each has.

    ``schema`` is the fingerprint of what its examples and classes look like. ``refusal`` is not
    empty when the node cannot take part; it says why and what to do. ``keeps`` says that the node
    stores its reward itself, as one on a machine of its own does.
    """

    num_examples: Mapping[str, int] = field(default_factory=dict)
    schema: str = ""
    refusal: str = ""
    keeps: bool = False
    protocol: int = PROTOCOL_VERSION


@dataclass(frozen=True)
class AloneTask:
    """Train these participants alone, from ``params``."""

    names: tuple[str, ...]
    params: Params


@dataclass(frozen=True)
class AloneReply:
    """The models trained alone, and who could not be trained and why."""

    models: Mapping[str, Params]
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RoundTask:
    """Train these participants at these widths; ``params`` are of the widest of them.

    ``common`` is the width of which each one's parameters are wanted beside the sum. ``models``
    are full models that participants have of their own, instead of ``params``, which is empty.
    """

    server_round: int
    widths: Mapping[str, float]
    params: Params
    common: float | None = None
    models: Mapping[str, Params] = field(default_factory=dict)


@dataclass(frozen=True)
class Awaited:
    """What a node was asked for in a round, and so what its answer must be.

    ``widths`` and ``num_examples`` are of each participant, the latter as it joined; ``weighted``
    says that it counts as much as it has examples. ``common`` is as in the task.
    """

    server_round: int
    widths: Mapping[str, float]
    num_examples: Mapping[str, int]
    layouts: Layouts
    common: float | None = None
    weighted: bool = False

    def of(self, names: Iterable[str]) -> "Awaited":
        """Return the same for ``names`` only, in their order."""
        return replace(self, widths={name: self.widths[name] for name in names})

    def weights(self, trained: Iterable[Trained]) -> dict[float, int]:
        """Return the weight that each width must have in the sum of those who were trained."""
        weights: dict[float, int] = {}
        for line in trained:
            weight = self.num_examples[line.name] if self.weighted else 1
            weights[line.width] = weights.get(line.width, 0) + weight
        return weights


@dataclass(frozen=True)
class RewardTask:
    """Store this reward: ``card`` is the text of its card.json, ``params`` its tensors."""

    card: str
    params: Params


@dataclass(frozen=True)
class RewardReply:
    """Where the reward is now, or why it could not be stored."""

    stored: str = ""
    refusal: str = ""


def encode_joined(joined: Joined) -> RecordDict:
    """Pack a node's answer to joining."""
    head = ConfigRecord(
        {
            "protocol": joined.protocol,
            "names": list(joined.num_examples),
            "num-examples": list(joined.num_examples.values()),
            "schema": joined.schema,
            "refusal": joined.refusal,
            "keeps-reward": joined.keeps,
        }
    )
    return RecordDict({HEAD: head})


def decode_joined(content: RecordDict) -> Joined:
    """Unpack it; raises WireError for another protocol version before reading anything else."""
    head = read_head(content)
    _check_protocol(head)
    names, counts = read_list(head, "names", str), read_list(head, "num-examples", int)
    if len(names) != len(counts) or len(set(names)) != len(names):
        raise WireError("the participants and their numbers of examples do not match")
    num_examples = dict(zip(names, counts, strict=True))
    return Joined(
        num_examples,
        read_scalar(head, "schema", str),
        read_scalar(head, "refusal", str)[:_LONGEST_REASON],
        keeps=read_flag(head, "keeps-reward"),
    )


def encode_refusal(reason: str) -> RecordDict:
    """Pack why a node, or a participant of it, is not taken; for the log of its own side."""
    return RecordDict({HEAD: ConfigRecord({"reason": reason})})


def decode_refusal(content: RecordDict) -> str:
    """Unpack it."""
    return read_scalar(read_head(content), "reason", str)


def encode_reward_task(task: RewardTask) -> RecordDict:
    """Pack a reward."""
    head = ConfigRecord({"card": task.card})
    return RecordDict({HEAD: head, _PARAMS: encode_params(task.params)})


def decode_reward_task(content: RecordDict) -> RewardTask:
    """Unpack it."""
    return RewardTask(read_scalar(read_head(content), "card", str), read_floats(content, _PARAMS))


def encode_reward_reply(reply: RewardReply) -> RecordDict:
    """Pack the answer to a reward."""
    return RecordDict({HEAD: ConfigRecord({"stored": reply.stored, "refusal": reply.refusal})})


def decode_reward_reply(content: RecordDict) -> RewardReply:
    """Unpack it."""
    head = read_head(content)
    return RewardReply(read_scalar(head, "stored", str), read_scalar(head, "refusal", str))


def encode_alone_task(task: AloneTask) -> RecordDict:
    """Pack the task of training alone."""
    head = ConfigRecord({"names": list(task.names)})
    return RecordDict({HEAD: head, _PARAMS: encode_params(task.params)})


def decode_alone_task(content: RecordDict) -> AloneTask:
    """Unpack it."""
    names = read_list(read_head(content), "names", str)
    return AloneTask(tuple(names), read_floats(content, _PARAMS))


def encode_alone_reply(reply: AloneReply) -> RecordDict:
    """Pack standalone models: one array record for each participant."""
    head = ConfigRecord(
        {
            "protocol": PROTOCOL_VERSION,
            "names": list(reply.models),
            **_refused(reply.refused),
        }
    )
    models = {f"model.{k}": encode_params(model) for k, model in enumerate(reply.models.values())}
    return RecordDict({HEAD: head, **models})


def decode_alone_reply(content: RecordDict, layouts: Layouts) -> AloneReply:
    """Unpack them; raises WireError for a model that is not one of ``layouts``."""
    head = read_head(content)
    _check_protocol(head)
    names = read_list(head, "names", str)
    models = {name: read_floats(content, f"model.{k}") for k, name in enumerate(names)}
    for name, model in models.items():
        shapes = {key: value.shape for key, value in model.items()}
        if shapes != {key: shape_at(layout) for key, layout in layouts.items()}:
            raise WireError(f"the standalone model of {name} is not of this network")
        if not all(np.isfinite(value).all() for value in model.values()):
            raise WireError(f"the standalone model of {name} holds values that are not finite")
    return AloneReply(models, _read_refused(head))


def encode_round_task(task: RoundTask) -> RecordDict:
    """Pack a round's task."""
    head = ConfigRecord(
        {
            "server-round": task.server_round,
            "names": list(task.widths),
            "widths": list(task.widths.values()),
            "common-width": task.common or 0.0,
            "personal": bool(task.models),
        }
    )
    models = {f"model.{k}": encode_params(task.models[n]) for k, n in enumerate(task.models)}
    return RecordDict({HEAD: head, _PARAMS: encode_params(task.params), **models})


def decode_round_task(content: RecordDict) -> RoundTask:
    """Unpack it."""
    head = read_head(content)
    names, widths = read_list(head, "names", str), read_list(head, "widths", float)
    if not names or len(names) != len(widths):
        raise WireError("a round's task must name its participants and a width for each")
    models: dict[str, Params] = {}
    if read_flag(head, "personal"):
        models = {name: read_floats(content, f"model.{k}") for k, name in enumerate(names)}
    return RoundTask(
        read_scalar(head, "server-round", int),
        dict(zip(names, widths, strict=True)),
        read_floats(content, _PARAMS),
        read_scalar(head, "common-width", float) or None,
        models,
    )


def encode_round_part(server_round: int, part: RoundPart) -> RecordDict:
    """Pack a node's part of a round.

    A sum of one travels as float32, half the bytes of its integers and without loss: what
    rounding to the step leaves of a float32 is still one. Its common sub-model is in it, and
    not sent again: a participant cannot show one model to be assessed and add another.
    """
    partial = part.partial
    weight = sum(partial.weights.values())
    widest = max(partial.weights, default=1.0)
    sums = {
        name: np.ascontiguousarray(value[prefix(partial.layouts[name], widest)])
        for name, value in partial.sums.items()
    }
    if partial.count == 1:
        arrays = {name: (s / (weight * SCALE)).astype(np.float32) for name, s in sums.items()}
    else:
        arrays = cast(dict[str, NDArray], sums)
    head = ConfigRecord(
        {
            "protocol": PROTOCOL_VERSION,
            "server-round": server_round,
            "names": [line.name for line in part.trained],
            "widths": [line.width for line in part.trained],
            "num-examples": [line.num_examples for line in part.trained],
            "losses": [line.loss for line in part.trained],
            "sum-widths": list(partial.weights),
            "sum-weights": list(partial.weights.values()),
            "sum-levels": list(partial.level_weights),
            "sum-level-weights": list(partial.level_weights.values()),
            "sum-count": partial.count,
            # As text: a protocol integer has 64 bits, the bound may need more in between.
            "sum-bound": str(partial.bound),
            **_refused(part.refused),
        }
    )
    common = part.common if partial.count > 1 else {}
    records = {f"{_COMMON}.{k}": encode_params(common[n]) for k, n in enumerate(common)}
    return RecordDict({HEAD: head, _PARAMS: encode_params(arrays), **records})


def decode_round_part(content: RecordDict, awaited: Awaited) -> RoundPart:
    """Unpack a node's part of a round; raises WireError for whatever nobody asked for."""
    head = read_head(content)
    _check_protocol(head)
    if (answered := read_scalar(head, "server-round", int)) != awaited.server_round:
        raise WireError(f"the reply is to round {answered}, not {awaited.server_round}")
    columns = (
        read_list(head, "names", str),
        read_list(head, "widths", float),
        read_list(head, "num-examples", int),
        read_list(head, "losses", float),
    )
    if len({len(column) for column in columns}) != 1:
        raise WireError("the lists of the reply do not match")
    trained = tuple(Trained(*line) for line in zip(*columns, strict=True))
    refused = _read_refused(head)
    _check_trained(trained, refused, awaited)
    partial = _read_sum(content, head, awaited.layouts)
    if partial.count != len(trained):
        raise WireError(f"the sum is of {partial.count} participants, not {len(trained)}")
    if partial.weights != awaited.weights(trained):
        raise WireError("a participant counts as more, or less, than was agreed")
    names, common = [line.name for line in trained], awaited.common
    if common is None or not names:
        return RoundPart(partial, trained, refused)
    if len(names) == 1:  # its sum is its model, and was checked as such
        model = common_part(
            read_floats(content, _PARAMS), awaited.layouts, common, partial.level_weights.keys()
        )
        return RoundPart(partial, trained, refused, {names[0]: model})
    models = _read_common(content, names, awaited.layouts, common)
    return RoundPart(partial, trained, refused, models)


def _check_trained(
    trained: Sequence[Trained], refused: Mapping[str, str], awaited: Awaited
) -> None:
    names = [line.name for line in trained] + list(refused)
    if sorted(names) != sorted(awaited.widths):
        raise WireError("the reply is not about the participants that were asked for")
    for line in trained:
        if line.width != awaited.widths[line.name]:
            raise WireError(f"{line.name} trained another width than it was asked for")
        if line.num_examples != (joined := awaited.num_examples[line.name]):
            raise WireError(
                f"{line.name} says that it has {line.num_examples} examples, and joined with "
                f"{joined}"
            )
        if not math.isfinite(line.loss):
            raise WireError(f"the loss of {line.name} is not a finite number")


def _read_common(
    content: RecordDict, names: Sequence[str], layouts: Layouts, common: float
) -> dict[str, Params]:
    whole = {key: shape_at(layout, common) for key, layout in layouts.items()}
    plain = {key: shape for key, shape in whole.items() if not is_switchable(layouts[key])}
    models: dict[str, Params] = {}
    for k, name in enumerate(names):
        model = read_floats(content, f"{_COMMON}.{k}")
        if {key: value.shape for key, value in model.items()} not in (whole, plain):
            raise WireError(f"the common sub-model of {name} is not of width {common:g}")
        if not all(np.isfinite(value).all() for value in model.values()):
            raise WireError(f"the common sub-model of {name} holds values that are not finite")
        models[name] = model
    return models


def _read_sum(content: RecordDict, head: ConfigRecord, layouts: Layouts) -> MaskedSum:
    widths, weights = read_list(head, "sum-widths", float), read_list(head, "sum-weights", int)
    count = read_scalar(head, "sum-count", int)
    if len(widths) != len(weights) or any(weight < 1 for weight in weights):
        raise WireError("the widths and weights of the sum do not match")
    if count == 0:
        return MaskedSum(layouts)
    if not 1 <= len(widths) <= count or not all(0 < width <= 1 for width in widths):
        raise WireError("the sum's widths are impossible")
    levels = _read_levels(head, layouts, max(widths), sum(weights))
    try:
        if count == 1:
            floats = read_floats(content, _PARAMS, writable=False)
            return MaskedSum(layouts).add(floats, widths[0], weights[0], levels.keys())
        sums = _embed_sums(read_arrays(content, _PARAMS, writable=False), layouts, max(widths))
        bound = int(read_scalar(head, "sum-bound", str)[:_LONGEST_REASON])
        if bound < max((_largest(value) for value in sums.values()), default=0):
            raise WireError("the sum is larger than it says it can be")
        by_width = dict(zip(widths, weights, strict=True))
        return MaskedSum(layouts).merge(
            MaskedSum(layouts, sums, by_width, levels, count=count, bound=bound)
        )
    except (AggregationError, ValueError) as error:
        raise WireError(str(error)) from error


def _read_levels(head: ConfigRecord, layouts: Layouts, width: float, total: int) -> dict[int, int]:
    """Read who trained which level of BatchNorm: at most everybody, none that nobody holds."""
    levels, weights = read_list(head, "sum-levels", int), read_list(head, "sum-level-weights", int)
    held = levels_held(layouts, width)
    if len(levels) != len(weights) or len(set(levels)) != len(levels):
        raise WireError("the levels and weights of the sum do not match")
    if not all(0 <= level < held for level in levels) or not all(0 < w <= total for w in weights):
        raise WireError("the sum's levels are impossible")
    return dict(zip(levels, weights, strict=True))


def _embed_sums(arrays: Mapping[str, AnyArray], layouts: Layouts, width: float) -> dict[str, Int64]:
    if arrays.keys() != layouts.keys():
        raise WireError("the tensors of the sum are not those of the network")
    sums: dict[str, Int64] = {}
    for name, value in arrays.items():
        layout = layouts[name]
        if value.dtype != np.int64:
            raise WireError(f"{name} is not a sum of 64-bit integers")
        if value.shape != shape_at(layout, width):
            raise WireError(f"{name} has shape {value.shape}, not that of width {width:g}")
        full = np.zeros(shape_at(layout), np.int64)
        full[prefix(layout, width)] = value
        sums[name] = full
    return sums


def _largest(sums: Int64) -> int:
    # As Python's integers: the magnitude of the smallest int64 is none.
    return max(int(sums.max(initial=0)), -int(sums.min(initial=0)))


def encode_params(params: Params) -> ArrayRecord:
    """Pack named tensors."""
    return ArrayRecord(
        {name: Array(np.asarray(value, order="C")) for name, value in params.items()}
    )


def _check_protocol(head: ConfigRecord) -> None:
    protocol = read_scalar(head, "protocol", int)
    if protocol != PROTOCOL_VERSION:
        raise WireError(
            f"the node speaks protocol {protocol} and the server {PROTOCOL_VERSION}; install the "
            "same version of aequa-flwr on both"
        )


def _refused(refused: Mapping[str, str] | None) -> dict[str, list[str]]:
    refused = refused or {}
    return {"refused": list(refused), "reasons": list(refused.values())}


def _read_refused(head: ConfigRecord) -> dict[str, str]:
    names, reasons = read_list(head, "refused", str), read_list(head, "reasons", str)
    if len(names) != len(reasons):
        raise WireError("the refused participants and the reasons do not match")
    return {n: reason[:_LONGEST_REASON] for n, reason in zip(names, reasons, strict=True)}
