"""Networks by name, the user's own too."""

from collections.abc import Callable, Mapping

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

# The data that the paper uses each for; SST's sentences have 19 words on average. The table for
# mlp, which is ours, has as many columns as any.
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
    """Build a network with torch's default initial weights drawn from ``init_seed``.

    ``network`` is a name; with a colon it is that of the user's own builder,
    ``package.module:function``. A builder or a network itself will do, too; a network keeps the
    weights it has. What is not ours is checked before it is used. torch's global random state is
    left as it was. Raises NetworkError in one sentence.
    """
    name = network_name(network)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(init_seed)
        if isinstance(network, SlimNetwork):
            return check_network(name, lambda _schema: network, schema)
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
    """Return the name of the network that suits data which come without one."""
    if schema.kind == "tokens":
        return "lstm"
    if schema.kind == "numbers" and len(schema.shape) == 1:
        return "mlp"
    # Five layers of the large one would leave nothing of an image of a few pixels.
    return "small-cnn" if min(schema.shape[-2:]) < 16 else "cnn"


def network_name(network: str | Builder | SlimNetwork) -> str:
    """Return what a record calls a network; a builder can be imported by it, a network cannot."""
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
