"""User-defined networks: import the builder, and check what it builds."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from aequa_flwr.data import Schema, num_outputs
from aequa_flwr.options import CannotImportError, import_named, in_short
from aequa_flwr.slim import BnRows, embed, extract, shape_at
from aequa_flwr.slim.networks.network import NetworkError, SlimNetwork
from aequa_flwr.slim.networks.plain import build_plain

_WIDTHS = (0.3, 0.55, 1.0)
_BATCH = 3


def import_builder(name: str) -> Callable[[Schema], object]:
    """Import and return the function ``package.module:function``. Raises NetworkError."""
    try:
        builder = import_named(name)
    except CannotImportError as error:
        raise NetworkError(
            f"The network {name} cannot be imported ({error}); it must be module:function of a "
            "package that is installed on every machine, or is where the run is started."
        ) from error
    if not callable(builder):
        raise NetworkError(f"The network {name} is not a function that takes a schema.")
    checked: Callable[[Schema], object] = builder
    return checked


def check_network(name: str, builder: Callable[[Schema], object], schema: Schema) -> SlimNetwork:
    """Build the network and return it if it can be slimmed. Raises NetworkError with the reason.

    At three widths, its logits must equal those of the plain network made from its sub-network. If
    slicing were wrong anywhere, a reward would not be the model that was measured.
    """
    try:
        network = builder(schema)
    except NetworkError:
        raise
    except (Exception, SystemExit) as error:  # the user's code
        raise NetworkError(f"The network {name} cannot be built: {in_short(error)}.") from error
    if not isinstance(network, SlimNetwork):
        raise NetworkError(
            f"The network {name} returned {type(network).__name__}; build a SlimNetwork of slim "
            "layers (aequa_flwr.slim.networks.layers)."
        )
    training = network.training
    network.eval()
    try:
        _check_layouts(name, network)
        for width in _WIDTHS:
            _check_width(name, network, schema, width)
    except NetworkError:
        raise
    except Exception as error:  # a user-defined layer, or layers that do not fit each other
        reason = " ".join(str(error).split())[:300]
        where = _failing_layer(network, schema)
        raise NetworkError(f"The network {name} cannot be slimmed{where}: {reason}.") from error
    return network.train(training)


def _failing_layer(network: SlimNetwork, schema: Schema) -> str:
    """Return the first layer that cannot run, with the usual cause; empty if all can."""
    for width in _WIDTHS:
        x = _inputs(schema)
        for name, layer in network.parts.items():
            try:
                x = layer(x, width)
            except Exception:  # which one it was is all that matters here
                return f" (layer {name} at width {width:g}; look at slim_in, in_block and sizes)"
    return ""


def _check_layouts(name: str, network: SlimNetwork) -> None:
    shapes = {key: tuple(value.shape) for key, value in network.state_dict().items()}
    if shapes != {key: shape_at(layout) for key, layout in network.layouts.items()}:
        odd = sorted(shapes.keys() ^ network.layouts.keys()) or sorted(shapes)
        raise NetworkError(
            f"The network {name} cannot be slimmed: the layouts of its layers do not describe "
            f"their tensors ({', '.join(odd[:3])})."
        )
    bn_rows = {layout[0] for layout in network.layouts.values() if isinstance(layout[0], BnRows)}
    if len(bn_rows) > 1:
        raise NetworkError(
            f"The network {name} has BatchNorm of different widths; use the same widths for all."
        )
    if network.num_parameters(_WIDTHS[0]) == network.num_parameters():
        raise NetworkError(f"The network {name} has nothing that shrinks with the width.")


def _check_width(name: str, network: SlimNetwork, schema: Schema, width: float) -> None:
    whole = network.dump()
    sub_params = extract(whole, network.layouts, width)
    back = extract(embed(sub_params, network.layouts, width, whole), network.layouts, width)
    if any(not np.array_equal(back[key], value) for key, value in sub_params.items()):
        raise NetworkError(f"The network {name} loses values between extract and embed.")
    x = _inputs(schema)
    with torch.no_grad():
        logits = network(x, width)
        expected = (_BATCH, num_outputs(schema))
        if logits.shape != expected:
            raise NetworkError(
                f"The network {name} returns shape {tuple(logits.shape)} for {_BATCH} examples; "
                f"it must be {expected}: {expected[1]} numbers for each example."
            )
        plain = build_plain(network.plain(width), network.plain_params(sub_params, width))(x)
        nested = network.forward_nested(x, (width, 1.0))[0]
    for other, what in ((plain, "the plain network"), (nested, "the one-pass form")):
        if not torch.allclose(logits, other, rtol=1e-4, atol=1e-5):
            raise NetworkError(
                f"The network {name} cannot be slimmed: at width {width:g} {what} of its "
                "sub-network gives different logits."
            )


def _inputs(schema: Schema) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    if schema.kind == "tokens":
        return torch.randint(1, schema.num_tokens, (_BATCH, *schema.shape), generator=generator)
    return torch.randn(_BATCH, *schema.shape, generator=generator)
