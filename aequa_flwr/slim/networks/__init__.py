"""One file for each family of networks; here they are found by name."""

from collections.abc import Callable, Mapping

import torch

from aequa_flwr.slim.network import SlimNetwork
from aequa_flwr.slim.networks.cnn import cnn, small_cnn

Builder = Callable[[tuple[int, int, int], int], SlimNetwork]

BUILDERS: Mapping[str, Builder] = {"cnn": cnn, "small-cnn": small_cnn}


def build_network(
    name: str, input_shape: tuple[int, int, int], num_classes: int, *, init_seed: int = 0
) -> SlimNetwork:
    """Build the network ``name`` with torch's default initial weights drawn from ``init_seed``.

    torch's global random state is left as it was.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(init_seed)
        return BUILDERS[name](input_shape, num_classes)


__all__ = ["BUILDERS", "Builder", "build_network", "cnn", "small_cnn"]
