"""Networks by name, including user-defined ones."""

from collections.abc import Callable, Mapping
from copy import deepcopy

import torch

from aequa_flwr.data import Schema
from aequa_flwr.slim.networks.cnn import cnn, femnist_cnn, large_cnn, small_cnn
from aequa_flwr.slim.networks.lstm import lstm
from aequa_flwr.slim.networks.mlp import mlp
from aequa_flwr.slim.networks.network import NetworkError, SlimNetwork
from aequa_flwr.slim.networks.resnet import resnet18
from aequa_flwr.slim.networks.user_defined import check_network, import_builder

# A builder takes the schema of the data: the form of an example and the classes.
Builder = Callable[[Schema], SlimNetwork]

BUILDERS: Mapping[str, Builder] = {
    "cnn": cnn,
    "small-cnn": small_cnn,
    "large-cnn": large_cnn,
    "femnist-cnn": femnist_cnn,
    "resnet18": resnet18,
    "lstm": lstm,
    "mlp": mlp,
}

# The data that the paper uses each network for; SST's sentences have 19 words on average. mlp is
# not the paper's: its number of columns is only an example.
HOMES: Mapping[str, Schema] = {
    "cnn": Schema.numbered("images", (1, 28, 28), 10),
    "small-cnn": Schema.numbered("images", (1, 8, 8), 10),
    "large-cnn": Schema.numbered("images", (3, 32, 32), 10),
    "femnist-cnn": Schema.numbered("images", (1, 28, 28), 62),
    "resnet18": Schema.numbered("images", (3, 32, 32), 10),
    "lstm": Schema.texts(20, 18_278, 5),
    "mlp": Schema.numbered("numbers", (30,), 10),
}


def build_network(
    network: str | Builder | SlimNetwork, schema: Schema, *, init_seed: int = 0
) -> SlimNetwork:
    """Return a network whose initial weights are drawn from ``init_seed``.

    ``network`` is a name of `BUILDERS`, a user-defined builder as ``package.module:function``, a
    builder itself, or a network, which is copied with its weights. User-defined networks are
    checked first. torch's global random state is left as it was. Raises NetworkError.
    """
    name = network_name(network)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(init_seed)
        if isinstance(network, SlimNetwork):
            return check_network(name, lambda _schema: deepcopy(network), schema)
        if not isinstance(network, str):
            return check_network(name, network, schema)
        if ":" in name:
            return check_network(name, import_builder(name), schema)
        if name not in BUILDERS:
            raise NetworkError(
                f"The network {name!r} is not known; use one of {', '.join(BUILDERS)}, or your "
                "own as package.module:function."
            )
        return BUILDERS[name](schema)


def usual_network(schema: Schema) -> str:
    """Return the name of the default network for data of this schema."""
    if schema.kind == "tokens":
        return "lstm"
    if schema.kind == "numbers" and len(schema.shape) == 1:
        return "mlp"
    # The 5x5 filters of cnn would see most of an image of a few pixels.
    return "small-cnn" if min(schema.shape[-2:]) < 16 else "cnn"


def network_name(network: str | Builder | SlimNetwork) -> str:
    """Return the name of a network in the record.

    A builder can be imported by its name, a network cannot.
    """
    if isinstance(network, str):
        return network
    if isinstance(network, SlimNetwork):
        return type(network).__name__
    if not callable(network):
        raise NetworkError(
            f"network is a {type(network).__name__}; give a name, a function of a schema, or a "
            "SlimNetwork."
        )
    return f"{network.__module__}:{getattr(network, '__qualname__', type(network).__name__)}"
