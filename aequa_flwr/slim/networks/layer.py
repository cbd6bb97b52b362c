"""The interface of every layer of a slimmable network, and its input."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from aequa_flwr.slim import Axis, Layout, NDArray, Params
from aequa_flwr.slim.networks.plain import PlainLayer


@dataclass(frozen=True)
class Nested:
    """The activations of one batch at several widths, while they are one tensor.

    ``tensor`` holds those of the widest width. Each narrower width has the prefix that ``axis``
    gives along dimension 1. None means that all widths see the whole tensor, as with the network's
    input.
    """

    tensor: Tensor
    axis: Axis | None

    def split(self, widths: Sequence[float]) -> tuple[Tensor, ...]:
        """Return the activations of each width."""
        if self.axis is None:
            return (self.tensor,) * len(widths)
        return tuple(self.tensor[:, : self.axis.extent(width)] for width in widths)


Together = Nested | tuple[Tensor, ...]


class SlimLayer(nn.Module):
    """What a layer must offer to be part of a slimmable network."""

    @abstractmethod
    def forward(self, x: Tensor, width: float) -> Tensor:
        """Run at ``width`` on sliced views, so that a narrow width really computes less."""

    def forward_joint(self, x: Nested, widths: Sequence[float]) -> Together:
        """Run at all ``widths`` (ascending) at once; equals one forward for each width."""
        return self.forward_apart(x.split(widths), widths)

    def forward_apart(self, xs: Sequence[Tensor], widths: Sequence[float]) -> tuple[Tensor, ...]:
        """Run at each of ``widths`` (ascending), each on its own input."""
        return tuple(self(x, width) for x, width in zip(xs, widths, strict=True))

    @property
    @abstractmethod
    def layouts(self) -> dict[str, Layout]:
        """The layout of each tensor of the state dict, by its name."""

    @abstractmethod
    def plain(self, width: float) -> PlainLayer:
        """Return the plain torch layer that equals this one at ``width``."""

    def plain_params(self, sub_params: Params, width: float) -> dict[str, NDArray]:
        """Return the tensors of the plain layer, from those of the sub-network of ``width``."""
        return dict(sub_params)
