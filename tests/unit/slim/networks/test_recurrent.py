from dataclasses import replace

import numpy as np
import pytest
import torch

from aequa_flwr.slim import embed, extract
from aequa_flwr.slim.networks import SlimLSTM, build_network, build_plain
from tests.property.networks import SCHEMAS


def test_a_text_is_read_to_its_end_whatever_the_padding() -> None:
    schema = replace(SCHEMAS["lstm"], shape=(20,))
    network = build_network("lstm", schema).eval()
    short = torch.tensor([[3, 4, 5], [6, 0, 0]])
    longer = torch.cat([short, torch.zeros(2, 17, dtype=torch.int64)], dim=1)
    torch.testing.assert_close(network(short, 0.6), network(longer, 0.6))
    alone = network(short[1:], 0.6)
    torch.testing.assert_close(network(short, 0.6)[1:], alone)


@pytest.mark.parametrize("width", [1.0, 0.6, 0.1])
@pytest.mark.parametrize("lengths", [(9, 1, 4, 0, 9, 3), (5, 5, 5), (1,), (0, 0)])
def test_an_lstms_gradients_are_those_of_torchs_own(lengths: tuple[int, ...], width: float) -> None:
    layer = SlimLSTM(20, 5, 8)
    tokens = torch.arange(len(lengths) * 10).reshape(-1, 10) % 19 + 1
    for row, length in enumerate(lengths):
        tokens[row, length:] = 0
    full = {key: value.numpy() for key, value in layer.state_dict().items()}
    sub = extract(full, layer.layouts, width)
    plain = build_plain(layer.plain(width), layer.plain_params(sub, width))
    ours, torchs = layer(tokens, width), plain(tokens)
    torch.testing.assert_close(ours, torchs)
    for states in (ours, torchs):
        torch.sin(states).sum().backward()  # type: ignore[no-untyped-call]
    gradients = {key: tensor.grad for key, tensor in layer.named_parameters()}
    found = {key: grad.numpy() for key, grad in gradients.items() if grad is not None}
    expected = {key: tensor.grad for key, tensor in plain.named_parameters()}
    assert found.keys() == full.keys()
    for key, grad in layer.plain_params(extract(found, layer.layouts, width), width).items():
        torch.testing.assert_close(torch.from_numpy(grad), expected[key])
    # Nothing of what is wider moves.
    still = {key: np.zeros_like(grad) for key, grad in found.items()}
    moved = embed(extract(found, layer.layouts, width), layer.layouts, width, still)
    assert all(np.array_equal(moved[key], found[key]) for key in found)
