"""The messages on the wire: an encode/decode pair for each, to and from Flower's records."""

from collections.abc import Mapping
from typing import cast, get_type_hints

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from aequa_flwr.aggregation import (
    SCALE,
    AggregationError,
    Int64,
    MaskedSum,
    RoundPart,
    Trained,
    individual_part,
)
from aequa_flwr.federation.messages import (
    PROTOCOL_VERSION,
    SETTINGS,
    AloneReply,
    AloneTask,
    Joined,
    RewardReply,
    RewardTask,
    RoundTask,
)
from aequa_flwr.federation.reading import (
    HEAD,
    AnyArray,
    WireError,
    read_arrays,
    read_flag,
    read_floats,
    read_head,
    read_list,
    read_scalar,
)
from aequa_flwr.slim import Layouts, NDArray, Params, bn_rows_held, is_switchable, prefix, shape_at

_PARAMS, _INDIVIDUAL = "params", "individual"
Scalar = str | int | float | bool
# Reasons from nodes go into logs and records, so they are cut to this many characters.
_LONGEST_REASON = 500
# The lines of the participants in a round's reply travel as columns, one for each field of
# Trained. A field that is added to Trained is on the wire without a change here.
_COLUMNS: Mapping[str, type] = get_type_hints(Trained)


def _key(field: str) -> str:
    return {"name": "names", "width": "widths", "loss": "losses"}.get(
        field, field.replace("_", "-")
    )


def encode_joined(joined: Joined) -> RecordDict:
    """Encode a node's answer to joining."""
    head = ConfigRecord(
        {
            "protocol": joined.protocol,
            "names": list(joined.num_examples),
            "num-examples": list(joined.num_examples.values()),
            "fingerprints": [joined.fingerprints.get(name, "") for name in joined.num_examples],
            "schema": joined.schema,
            "refusal": joined.refusal,
            "stores-rewards": joined.stores_rewards,
        }
    )
    return RecordDict({HEAD: head})


def decode_joined(content: RecordDict) -> Joined:
    """Decode a node's answer to joining.

    Raises WireError for another protocol version before anything else is read.
    """
    head = read_head(content)
    _check_protocol(head)
    names, counts = read_list(head, "names", str), read_list(head, "num-examples", int)
    fingerprints = read_list(head, "fingerprints", str)
    if not len(names) == len(counts) == len(fingerprints) == len(set(names)):
        raise WireError("the participants and their numbers of examples do not match")
    return Joined(
        dict(zip(names, counts, strict=True)),
        read_scalar(head, "schema", str),
        read_scalar(head, "refusal", str)[:_LONGEST_REASON],
        stores_rewards=read_flag(head, "stores-rewards"),
        fingerprints={n: text[:64] for n, text in zip(names, fingerprints, strict=True)},
    )


def encode_refusal(reason: str) -> RecordDict:
    """Encode why a node or one of its participants is refused, for the node's own log."""
    return RecordDict({HEAD: ConfigRecord({"reason": reason})})


def decode_refusal(content: RecordDict) -> str:
    """Decode the reason of a refusal."""
    return read_scalar(read_head(content), "reason", str)


def encode_reward_task(task: RewardTask) -> RecordDict:
    """Encode a reward."""
    head = ConfigRecord({"card": task.card})
    return RecordDict({HEAD: head, _PARAMS: encode_params(task.params)})


def decode_reward_task(content: RecordDict) -> RewardTask:
    """Decode a reward. Raises WireError if the card or its tensors are missing."""
    return RewardTask(read_scalar(read_head(content), "card", str), read_floats(content, _PARAMS))


def encode_reward_reply(reply: RewardReply) -> RecordDict:
    """Encode the answer to a reward."""
    return RecordDict({HEAD: ConfigRecord({"stored": reply.stored, "refusal": reply.refusal})})


def decode_reward_reply(content: RecordDict) -> RewardReply:
    """Decode the answer to a reward."""
    head = read_head(content)
    return RewardReply(read_scalar(head, "stored", str), read_scalar(head, "refusal", str))


def encode_alone_task(task: AloneTask) -> RecordDict:
    """Encode the task of training alone."""
    head = ConfigRecord({"names": list(task.names)})
    return RecordDict({HEAD: head, _PARAMS: encode_params(task.params)})


def decode_alone_task(content: RecordDict) -> AloneTask:
    """Decode the task of training alone."""
    names = read_list(read_head(content), "names", str)
    return AloneTask(tuple(names), read_floats(content, _PARAMS))


def encode_alone_reply(reply: AloneReply) -> RecordDict:
    """Encode standalone models: one array record for each participant."""
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
    """Decode standalone models. Raises WireError for a model that is not one of ``layouts``."""
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
    """Encode a round's task."""
    head = ConfigRecord(
        {
            "server-round": task.server_round,
            "names": list(task.widths),
            "widths": list(task.widths.values()),
            "individual-width": task.individual_width or 0.0,
            "personal": bool(task.models),
            "p-min": task.p_min or 0.0,
        }
    )
    models = {f"model.{k}": encode_params(task.models[n]) for k, n in enumerate(task.models)}
    return RecordDict({HEAD: head, _PARAMS: encode_params(task.params), **models})


def decode_round_task(content: RecordDict) -> RoundTask:
    """Decode a round's task. Raises WireError if a field is missing."""
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
        read_scalar(head, "individual-width", float) or None,
        models,
        read_scalar(head, "p-min", float) or None,
    )


def encode_round_part(part: RoundPart) -> RecordDict:
    """Encode a node's part of a round.

    The sum of a single participant travels as float32, half the bytes of its integers. This loses
    nothing, because a float32 rounded to the step of the sum is still a float32. The individual
    sub-model is not sent again: it is read from the sum, so that a participant cannot show one
    model for assessment and add another to the sum.
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
            "server-round": part.server_round,
            **{_key(name): [getattr(line, name) for line in part.trained] for name in _COLUMNS},
            "sum-widths": list(partial.weights),
            "sum-weights": list(partial.weights.values()),
            "sum-bn-rows": list(partial.bn_row_weights),
            "sum-bn-row-weights": list(partial.bn_row_weights.values()),
            "sum-count": partial.count,
            # As text: an integer on the wire has 64 bits, and the bound may need more.
            "sum-bound": str(partial.bound),
            **_refused(part.refused),
        }
    )
    individual = part.individual if partial.count > 1 else {}
    records = {f"{_INDIVIDUAL}.{k}": encode_params(individual[n]) for k, n in enumerate(individual)}
    return RecordDict({HEAD: head, _PARAMS: encode_params(arrays), **records})


def decode_round_part(
    content: RecordDict, layouts: Layouts, individual_width: float | None
) -> RoundPart:
    """Decode a node's part of a round for the network of ``layouts``.

    Raises WireError for anything that cannot be such a part. `admission` checks whether it is
    the part that was asked for.
    """
    head = read_head(content)
    _check_protocol(head)
    columns = [read_list(head, _key(name), kind) for name, kind in _COLUMNS.items()]
    if len({len(column) for column in columns}) != 1:
        raise WireError("the lists of the reply do not match")
    trained = tuple(Trained(*line) for line in zip(*columns, strict=True))
    partial = _read_sum(content, head, layouts)
    if partial.count != len(trained):
        raise WireError(f"the sum is of {partial.count} participants, not {len(trained)}")
    individual: dict[str, Params] = {}
    if individual_width is not None and trained:
        widths = {line.name: min(line.width, individual_width) for line in trained}
        individual = _read_individual(content, widths, partial)
    server_round = read_scalar(head, "server-round", int)
    return RoundPart(server_round, partial, trained, _read_refused(head), individual)


def _read_individual(
    content: RecordDict, widths: Mapping[str, float], partial: MaskedSum
) -> dict[str, Params]:
    layouts = partial.layouts
    if len(widths) == 1:  # its sum is its model, and was checked as such
        ((name, width),) = widths.items()
        sent, bn_rows = read_floats(content, _PARAMS), partial.bn_row_weights.keys()
        return {name: individual_part(sent, layouts, width, bn_rows)}
    models: dict[str, Params] = {}
    for k, (name, width) in enumerate(widths.items()):
        whole = {key: shape_at(layout, width) for key, layout in layouts.items()}
        plain = {key: shape for key, shape in whole.items() if not is_switchable(layouts[key])}
        model = read_floats(content, f"{_INDIVIDUAL}.{k}")
        if {key: value.shape for key, value in model.items()} not in (whole, plain):
            raise WireError(f"the individual sub-model of {name} is not of width {width:g}")
        if not all(np.isfinite(value).all() for value in model.values()):
            raise WireError(f"the individual sub-model of {name} holds values that are not finite")
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
    bn_rows = _read_bn_rows(head, layouts, max(widths), sum(weights))
    try:
        if count == 1:
            floats = read_floats(content, _PARAMS, writable=False)
            return MaskedSum(layouts).add(floats, widths[0], weights[0], bn_rows.keys())
        sums = _embed_sums(read_arrays(content, _PARAMS, writable=False), layouts, max(widths))
        bound = int(read_scalar(head, "sum-bound", str)[:_LONGEST_REASON])
        if bound < max((_largest(value) for value in sums.values()), default=0):
            raise WireError("the sum is larger than its own bound")
        by_width = dict(zip(widths, weights, strict=True))
        return MaskedSum(layouts).merge(
            MaskedSum(layouts, sums, by_width, bn_rows, count=count, bound=bound)
        )
    except (AggregationError, ValueError) as error:
        raise WireError(str(error)) from error


def _read_bn_rows(head: ConfigRecord, layouts: Layouts, width: float, total: int) -> dict[int, int]:
    """Return the weight that trained each BatchNorm row.

    Raises WireError for a row that the width does not hold, or a weight above ``total``.
    """
    rows = read_list(head, "sum-bn-rows", int)
    weights = read_list(head, "sum-bn-row-weights", int)
    held = bn_rows_held(layouts, width)
    if len(rows) != len(weights) or len(set(rows)) != len(rows):
        raise WireError("the BatchNorm rows and weights of the sum do not match")
    if not all(0 <= row < held for row in rows) or not all(0 < w <= total for w in weights):
        raise WireError("the sum's BatchNorm rows are impossible")
    return dict(zip(rows, weights, strict=True))


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
    # Python integers, because the magnitude of the smallest int64 is not an int64.
    return max(int(sums.max(initial=0)), -int(sums.min(initial=0)))


def read_settings(content: RecordDict) -> dict[str, Scalar]:
    """Return the settings in a message; empty if the node has them from its own app."""
    record = content.config_records.get(SETTINGS) or ConfigRecord()
    return {key: value for key, value in record.items() if isinstance(value, Scalar)}


def decode_params(arrays: ArrayRecord) -> dict[str, NDArray]:
    """Decode named tensors, all float32. Raises WireError for anything else."""
    return read_floats(RecordDict({_PARAMS: arrays}), _PARAMS)


def encode_params(params: Params) -> ArrayRecord:
    """Encode named tensors."""
    return ArrayRecord(
        {name: Array(np.asarray(value, order="C")) for name, value in params.items()}
    )


def _check_protocol(head: ConfigRecord) -> None:
    protocol = read_scalar(head, "protocol", int)
    if protocol != PROTOCOL_VERSION:
        raise WireError(
            f"the node uses protocol {protocol} and the server {PROTOCOL_VERSION}; install the "
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
