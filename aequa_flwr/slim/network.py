"""A slimmable network: slim layers in a row, and everything a run asks of them."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from aequa_flwr.slim.layers import Nested, SlimLayer
from aequa_flwr.slim.plain import PlainLayer
from aequa_flwr.slim.subnet import NDArray, Params
from aequa_flwr.slim.width import Layout, distinct_widths, prefix, widest_below


class SlimNetwork(nn.Module):
    """Named slim layers applied one after the other.

    Its parameters keep their full shape for the whole run; a participant of a smaller width
    uses and touches only the prefix of each.
    """

    def __init__(self, layers: Mapping[str, SlimLayer]) -> None:
        super().__init__()
        for name, layer in layers.items():
            self.add_module(name, layer)
        self._layers = dict(layers)

    def forward(self, x: Tensor, width: float = 1.0) -> Tensor:
        """Return the logits of the sub-network of ``width``."""
        for layer in self._layers.values():
            x = layer(x, width)
        return x

    def forward_nested(self, x: Tensor, widths: Sequence[float]) -> tuple[Tensor, ...]:
        """Return the logits at each of ``widths`` (ascending): the one-pass sandwich.

        Equal to one forward for each width; the first two layers with weights are paid once.
        """
        nested = Nested((x,), shared=True)
        for layer in self._layers.values():
            nested = layer.forward_nested(nested, widths)
        return nested.tensors

    @property
    def layouts(self) -> dict[str, Layout]:
        """The layout of every parameter, by its name in the state dict."""
        return {
            f"{name}.{parameter}": layout
            for name, layer in self._layers.items()
            for parameter, layout in layer.layouts().items()
        }

    def levels(self, p_min: float, p_max: float) -> tuple[float, ...]:
        """Return the ladder of rewards: every distinct sub-network of [p_min, p_max]."""
        return distinct_widths(self.layouts, p_min, p_max)

    def draws_from(self, p_min: float) -> float:
        """Return where the random widths of training begin, so that ``p_min`` itself is trained.

        Where p_min gives a layer a whole number of channels, it is the upper end of the widths
        of its sub-network, and a draw from [p_min, p_max] meets it with probability 0. Drawn
        from the lower end, the narrowest level gets its share like every other.
        """
        return widest_below(self.layouts, p_min)

    def plain(self, width: float) -> list[tuple[str, PlainLayer]]:
        """Describe the ordinary network that this one is at ``width``."""
        return [(name, layer.plain(width)) for name, layer in self._layers.items()]

    def load(self, sub_params: Params, width: float = 1.0) -> None:
        """Copy parameters of ``width`` into the prefixes in place; the rest stays as it is."""
        layouts = self.layouts
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                value = torch.from_numpy(sub_params[name])
                parameter[prefix(layouts[name], width)].copy_(value)

    def dump(self, width: float = 1.0) -> dict[str, NDArray]:
        """Return copies of the parameters of the sub-network of ``width``."""
        layouts = self.layouts
        return {
            name: np.array(
                parameter.detach()[prefix(layouts[name], width)].cpu().numpy(), order="C"
            )
            for name, parameter in self.named_parameters()
        }
