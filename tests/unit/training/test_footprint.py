"""What a training step keeps in memory."""

import pytest
import torch

from aequa_flwr.slim.networks import HOMES, build_network
from aequa_flwr.training.footprint import saved_bytes


@pytest.mark.parametrize("name", HOMES)
def test_what_a_step_keeps_is_of_the_size_of_its_activations(name: str) -> None:
    schema = HOMES[name]
    network = build_network(name, schema)
    outputs = 0

    def count(_module: object, _inputs: object, output: object) -> None:
        nonlocal outputs
        outputs += sum(t.nbytes for t in [output] if isinstance(t, torch.Tensor))

    for module in network.modules():
        module.register_forward_hook(count)
    x = torch.ones(2, *schema.shape, dtype=torch.int64 if schema.kind == "tokens" else None)
    network(x, 1.0)
    # Kept by both passes, and their gradients; the whole network is a module, too. An LSTM keeps
    # the gates of every word, which are no module's output.
    most = 20 if schema.kind != "tokens" else 200
    assert outputs / 2 / 4 < saved_bytes(network, schema) < most * max(outputs / 2, 2000)
