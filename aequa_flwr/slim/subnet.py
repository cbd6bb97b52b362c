"""Extract a sub-network's parameters from the full ones, and embed them back."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from aequa_flwr.slim.width import Layouts, prefix

NDArray = npt.NDArray[np.float32]
Params = Mapping[str, NDArray]


def extract(params: Params, layouts: Layouts, width: float) -> dict[str, NDArray]:
    """Return the parameters of the sub-network of ``width``, as contiguous copies.

    Nothing else of the full tensors is reachable through the result, not even through a view's
    base.
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


def stack_updates(pairs: Sequence[tuple[Params, Params]]) -> dict[str, NDArray]:
    """Return the updates ``trained - received`` of all pairs, stacked tensor by tensor.

    ``pairs`` holds (received, trained) for each participant. A tensor that a participant does not
    send (BatchNorm's) counts as unchanged. The sign of an update is fixed here and nowhere else.
    """
    return {
        key: np.stack([trained.get(key, start[key]) - start[key] for start, trained in pairs])
        for key in (pairs[0][0] if pairs else ())
    }
