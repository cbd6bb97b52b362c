"""Slimmable networks: what a width means, and how sub-networks are extracted and embedded."""

from aequa_flwr.slim.subnet import NDArray, Params, embed, extract, stack_updates
from aequa_flwr.slim.width import (
    Axis,
    BnRows,
    Layout,
    Layouts,
    bn_rows_held,
    bn_widths_of,
    channel_counts,
    channels,
    distinct_widths,
    is_switchable,
    prefix,
    shape_at,
    widest_below,
)

__all__ = [
    "Axis",
    "BnRows",
    "Layout",
    "Layouts",
    "NDArray",
    "Params",
    "bn_rows_held",
    "bn_widths_of",
    "channel_counts",
    "channels",
    "distinct_widths",
    "embed",
    "extract",
    "is_switchable",
    "prefix",
    "shape_at",
    "stack_updates",
    "widest_below",
]
