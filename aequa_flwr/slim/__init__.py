"""Slimmable networks: what a width is, layers that run at any, sub-networks in and out."""

from aequa_flwr.slim.subnet import NDArray, Params, embed, extract
from aequa_flwr.slim.width import (
    Axis,
    Layout,
    Layouts,
    Levels,
    channels,
    distinct_widths,
    prefix,
    shape_at,
    widest_below,
)

__all__ = [
    "Axis",
    "Layout",
    "Layouts",
    "Levels",
    "NDArray",
    "Params",
    "channels",
    "distinct_widths",
    "embed",
    "extract",
    "prefix",
    "shape_at",
    "widest_below",
]
