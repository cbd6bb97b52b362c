"""One file for each family of networks; here they are found by name."""

from collections.abc import Callable, Mapping

import torch

from aequa_flwr.data.schema import Schema
from aequa_flwr.slim.network import SlimNetwork
from aequa_flwr.slim.networks.cnn import cnn, small_cnn

# A builder takes the schema of the data: the form of an example and the classes.
Builder = Callable[[Schema], SlimNetwork]

BUILDERS: Mapping[str, Builder] = {"cnn": cnn, "small-cnn": small_cnn}


def build_network(name: str, schema: Schema, *, init_seed: int = 0) -> SlimNetwork:
    """Build the network ``name`` with torch's default initial weights drawn from ``init_seed``.

    torch's global random state is left as it was.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(init_seed)
        return BUILDERS[name](schema)


__all__ = ["BUILDERS", "Builder", "build_network", "cnn", "small_cnn"]
