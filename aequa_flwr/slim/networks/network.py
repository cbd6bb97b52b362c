"""A slimmable network: slim layers in sequence, and everything a run needs of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from aequa_flwr.errors import UserError
from aequa_flwr.slim import (
    BnRows,
    NDArray,
    Params,
    bn_rows_held,
    bn_widths_of,
    channel_counts,
    channels,
    distinct_widths,
    shape_at,
    widest_below,
)
from aequa_flwr.slim.networks.layer import Nested, SlimLayer, Together
from aequa_flwr.slim.networks.layers import Composite
from aequa_flwr.slim.networks.plain import PlainLayer

# None is the whole tensor: slicing takes longer than copying a small one.
_Prefixes = list[tuple[str, Tensor, tuple[slice, ...] | None]]


class NetworkError(UserError):
    """A network that cannot be found, built or slimmed."""


class SlimNetwork(Composite):
    """Named slim layers applied one after the other; a network is a layer, so networks nest.

    Its tensors keep their full shape for the whole run. A participant with a smaller width uses and
    changes only the prefix of each. Without layers it is the identity.
    """

    def __init__(self, layers: Mapping[str, SlimLayer]) -> None:
        super().__init__()
        self.add_parts(layers)
        self._layers = dict(layers)
        self._prefixes: tuple[float, _Prefixes] | None = None

    @property
    def parts(self) -> Mapping[str, SlimLayer]:
        """The layers by name, in their order."""
        return self._layers

    def forward(self, x: Tensor, width: float = 1.0) -> Tensor:
        """Return the logits of the sub-network of ``width``."""
        return _run(self._layers.values(), x, width)

    def forward_joint(self, x: Nested, widths: Sequence[float]) -> Together:
        """Run all widths together as far as they share activations, then each to the end."""
        layers = list(self._layers.values())
        together: Together = x
        for done, layer in enumerate(layers):
            if not isinstance(together, Nested):
                return _run_apart(layers[done:], together, widths)
            together = layer.forward_joint(together, widths)
        return together

    def forward_apart(self, xs: Sequence[Tensor], widths: Sequence[float]) -> tuple[Tensor, ...]:
        """Run each width on its own input."""
        return _run_apart(self._layers.values(), tuple(xs), widths)

    def forward_nested(self, x: Tensor, widths: Sequence[float]) -> tuple[Tensor, ...]:
        """Return the logits at each of ``widths`` (ascending): the one-pass sandwich.

        Equal to one forward for each width. The first two layers with weights are computed once. So
        is a sub-network that several widths share (BatchNorm then counts the batch once).
        """
        networks = [self._same(width) for width in widths]
        distinct = [widths[k] for k, own in enumerate(networks) if own not in networks[:k]]
        together = self.forward_joint(Nested(x, None), distinct)
        logits = together.split(distinct) if isinstance(together, Nested) else together
        known = dict(zip(dict.fromkeys(networks), logits, strict=True))
        return tuple(known[own] for own in networks)

    def _same(self, width: float) -> tuple[int, ...]:
        """Return a key that is equal for two widths exactly if they give the same sub-network."""
        fulls, bn_widths = self._sizes
        bn_row = () if bn_widths is None else (BnRows(bn_widths).extent(width),)
        return *bn_row, *(channels(width, full) for full in fulls)

    @cached_property
    def _sizes(self) -> tuple[tuple[int, ...], tuple[float, ...] | None]:
        """How many channels its layers have, and the widths of its BatchNorm."""
        layouts = self.layouts
        return tuple(sorted(channel_counts(layouts))), bn_widths_of(layouts)

    def ladder(self, p_min: float, p_max: float, *, most: int = 64) -> tuple[float, ...]:
        """Return the ladder of rewards: every distinct sub-network of [p_min, p_max].

        A network with hundreds of units has hundreds of them. They are thinned out evenly to
        ``most``. With BatchNorm, only the widths with their own statistics count. Raises
        NetworkError if there is none.
        """
        layouts = self.layouts
        bn_widths = bn_widths_of(layouts)
        if bn_widths is None:
            return _thinned(distinct_widths(layouts, p_min, p_max), most)
        ladder = _between(bn_widths, p_min, p_max)
        if not ladder:
            raise NetworkError(
                f"The network has no level from p-min = {p_min:g} to p-max = {p_max:g}; its "
                f"levels are {', '.join(f'{width:g}' for width in bn_widths)}."
            )
        return ladder

    @cached_property
    def has_batch_norm(self) -> bool:
        """Whether it has switchable BatchNorm, which only some widths have statistics for."""
        return bn_widths_of(self.layouts) is not None

    def bn_row_of(self, width: float) -> int | None:
        """Return the row of BatchNorm that ``width`` uses; None without BatchNorm."""
        held = bn_rows_held(self.layouts, width)
        return held - 1 if held else None

    @cached_property
    def trainable(self) -> tuple[nn.Parameter, ...]:
        """The parameters that training changes, in a fixed order; cached, as the prefixes are."""
        return tuple(self.parameters())

    def draw(
        self, rng: np.random.Generator, p_min: float, width: float, count: int
    ) -> npt.NDArray[np.float64]:
        """Return ``count`` random widths to train at, from ``p_min`` to ``width``.

        With BatchNorm they are among its widths. Otherwise they are drawn from the interval that
        begins where the sub-network of p_min does. If p_min gives a layer a whole number of
        channels, p_min is the upper end of the widths of its sub-network. A draw from [p_min,
        width] would then meet this sub-network with probability 0.
        """
        layouts = self.layouts
        bn_widths = bn_widths_of(layouts)
        if bn_widths is not None:
            return rng.choice(_between(bn_widths, p_min, width) or (width,), size=count)
        return rng.uniform(widest_below(layouts, p_min), width, size=count)

    def plain(self, width: float) -> PlainLayer:
        """Describe the plain network that equals this one at ``width``."""
        return PlainLayer(
            "Sequential",
            children=tuple((name, layer.plain(width)) for name, layer in self._layers.items()),
        )

    def num_parameters(self, width: float = 1.0) -> int:
        """Return the number of parameters of the plain network of ``width``."""
        with torch.device("meta"):  # nothing is allocated or drawn
            return sum(value.numel() for value in self.plain(width).build().parameters())

    def load(self, sub_params: Params, width: float = 1.0) -> None:
        """Copy the tensors of a sub-network of ``width`` into the prefixes, in place."""
        with torch.no_grad():
            for name, tensor, held in self._prefixes_of(width):
                inside = tensor if held is None else tensor[held]
                inside.copy_(torch.from_numpy(sub_params[name]))

    def dump(self, width: float = 1.0) -> dict[str, NDArray]:
        """Return copies of the tensors of the sub-network of ``width``."""
        return {
            name: np.array((tensor if held is None else tensor[held]).numpy(force=True), order="C")
            for name, tensor, held in self._prefixes_of(width)
        }

    def _prefixes_of(self, width: float) -> _Prefixes:
        """Return each tensor with its name and the prefix that a sub-network of ``width`` holds.

        The result is cached for the last width. Thousands of participants are loaded and dumped one
        after the other, and walking all layers takes as long as a step of training.
        """
        if self._prefixes is None or self._prefixes[0] != width:
            found: _Prefixes = []
            for name, tensor in self.state_dict(keep_vars=True).items():
                shape = shape_at(self.layouts[name], width)
                held = None if shape == tensor.shape else tuple(map(slice, shape))
                found.append((name, tensor, held))
            self._prefixes = width, found
        return self._prefixes[1]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Move or convert all tensors, and clear what is cached about the old ones."""
        self._prefixes = None
        self.__dict__.pop("trainable", None)
        moved: Self = super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return moved


def _run(layers: Iterable[SlimLayer], x: Tensor, width: float) -> Tensor:
    for layer in layers:
        x = layer(x, width)
    return x


def _run_apart(
    layers: Iterable[SlimLayer], xs: tuple[Tensor, ...], widths: Sequence[float]
) -> tuple[Tensor, ...]:
    if not torch.is_grad_enabled():
        # When many widths are measured, only the activations of one are in memory at a time.
        layers = list(layers)
        return tuple(_run(layers, x, width) for x, width in zip(xs, widths, strict=True))
    for layer in layers:
        xs = layer.forward_apart(xs, widths)
    return xs


def _thinned(widths: tuple[float, ...], most: int) -> tuple[float, ...]:
    if len(widths) <= most:
        return widths
    chosen = np.rint(np.linspace(0, len(widths) - 1, most)).astype(int)
    return tuple(widths[k] for k in chosen)


def _between(widths: Sequence[float], low: float, high: float) -> tuple[float, ...]:
    return tuple(width for width in widths if low - 1e-6 <= width <= high + 1e-6)
