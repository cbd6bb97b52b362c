"""Extract a sub-network's parameters from the full ones, and embed them back."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from aequa_flwr.slim.width import Layouts, prefix

NDArray = npt.NDArray[np.float32]
Params = Mapping[str, NDArray]


def extract(params: Params, layouts: Layouts, width: float) -> dict[str, NDArray]:
    """Return the parameters of the sub-network of ``width``: contiguous copies, sliced shapes.

    Nothing of the rest is reachable through the result, not even through a view's base.
    """
    return {
        name: np.array(value[prefix(layouts[name], width)], order="C")
        for name, value in params.items()
    }


def embed(sub_params: Params, layouts: Layouts, width: float, onto: Params) -> dict[str, NDArray]:
    """Return a copy of ``onto`` whose sub-network of ``width`` is ``sub_params``.

    Entries outside the sub-network keep their value from ``onto``, which stays untouched.
    """
    params = {name: value.copy() for name, value in onto.items()}
    for name, value in sub_params.items():
        params[name][prefix(layouts[name], width)] = value
    return params
