"""A run on a caller's own arrays: its settings, and the server's part of the data."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from aequa_flwr.data import (
    Arrays,
    DataError,
    Dataset,
    FederatedData,
    Schema,
    check_examples,
    describe,
    examples_of_pair,
    no_examples,
)
from aequa_flwr.methods import Value
from aequa_flwr.settings import ConfigError, RunConfig
from aequa_flwr.slim.networks import Builder, SlimNetwork, network_name


def caller_settings(
    network: str | Builder | SlimNetwork, output: str | Path | None, settings: Mapping[str, Value]
) -> RunConfig:
    """Return the settings of a run on a caller's own arrays.

    ``settings`` are keyword arguments, in snake_case. Raises ConfigError if they are not valid.
    """
    given = {key.replace("_", "-"): value for key, value in settings.items()}
    for key in ("dataset", "data-dir"):
        if key in given:
            raise ConfigError(f"{key} cannot be given together with your own arrays; leave it out.")
    folder = "" if output is None else str(Path(output).expanduser().absolute())
    # The data is in memory; data-dir needs some word, which is in no record.
    own: dict[str, Value] = {"dataset": "arrays", "data-dir": "memory", "output": folder}
    return RunConfig.parse({**given, **own, "network": network_name(network)})


def server_examples(
    validation: Arrays | None, held_out: Arrays | None, schema: Schema | None
) -> FederatedData:
    """Return the server's data, for a federation whose participants have their own.

    Without a ``schema`` the data is described by the examples that are given.
    """
    if validation is None and schema is None:
        raise DataError(
            "The server needs validation data or a schema; pass validation=(x, y), or the schema "
            "of the participants' data."
        )
    parts = [
        None if arrays is None else examples_of_pair(arrays, name)
        for arrays, name in ((held_out, "held_out"), (validation, "validation"))
    ]
    given = [part for part in reversed(parts) if part is not None]
    if schema is None:
        schema = describe(given, "validation")
    for part, name in zip(parts, ("held_out", "validation"), strict=True):
        if part is not None:
            check_examples(part, schema, name)
    nothing = no_examples(schema)
    untouched, measured = (nothing if part is None else part for part in parts)
    dataset = Dataset("own", untouched, measured, schema)
    return FederatedData(dataset, {}, np.arange(len(untouched)))
