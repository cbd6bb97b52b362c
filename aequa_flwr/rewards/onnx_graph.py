"""A reward's layers as an ONNX graph, one or a few operators for each.

The graph is written out rather than traced by torch. A card can name sixteen kinds of layers and
no other, so the graph needs only onnx, is the same with every torch, and keeps the layers' names.
The length of texts stays open, which torch's exporter cannot do for packed sequences.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from aequa_flwr.slim.networks import MeanState, Residual

if TYPE_CHECKING:
    import onnx

# The first with Gelu; every onnxruntime since 1.17 runs it.
_OPSET, _IR_VERSION = 20, 9
_INPUT, _OUTPUT = "input", "logits"
# torch stacks an LSTM's gates as input, forget, cell, output; ONNX as input, output, forget, cell.
_GATES = (0, 3, 1, 2)

Array = npt.NDArray[Any]


class _Graph:
    """The nodes of a graph in the order of computation, and its constant tensors."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.known: list[onnx.TensorProto] = []

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Append an operator with one output; return the output's name."""
        from onnx import helper

        name = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def know(self, name: str, value: Tensor | Array) -> str:
        """Store a constant tensor in the file; return its name."""
        from onnx import numpy_helper

        array = value.detach().numpy() if isinstance(value, Tensor) else value
        self.known.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def number(self, value: int | float | list[int], dtype: npt.DTypeLike) -> str:
        """Store a constant number or list of numbers; return its name."""
        return self.know(f"number_{len(self.known)}", np.array(value, dtype=dtype))


# (graph, the layer's path with a dot at its end, the layer, its input's name and shape) to the
# name of its output.
_Writer = Callable[[_Graph, str, Any, str, tuple[int, ...]], str]


def onnx_model(module: nn.Module, example: Tensor, notes: Mapping[str, str]) -> bytes:
    """Return ``module`` as an ONNX file; ``notes`` become its metadata.

    ``example`` is a batch of inputs. The batch size stays open, as does the length of texts. Raises
    ValueError for a layer, or an argument of one, that cannot be expressed.
    """
    import onnx
    from onnx import helper

    graph = _Graph()
    with torch.no_grad():
        end, logits = _write(graph, "", module, _INPUT, example)
    graph.nodes.append(helper.make_node("Identity", [end], [_OUTPUT], name=_OUTPUT))
    kind = onnx.TensorProto.FLOAT if example.is_floating_point() else onnx.TensorProto.INT32
    form = ["length"] if takes_any_length(module) else list(example.shape[1:])
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "reward",
            [helper.make_tensor_value_info(_INPUT, kind, ["batch", *form])],
            [
                helper.make_tensor_value_info(
                    _OUTPUT, onnx.TensorProto.FLOAT, ["batch", *logits.shape[1:]]
                )
            ],
            initializer=graph.known,
        ),
        producer_name="aequa-flwr",
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
    )
    helper.set_model_props(model, dict(notes))
    content: bytes = model.SerializeToString()
    return content


def takes_any_length(module: nn.Module) -> bool:
    """Return whether ``module`` accepts texts of any length."""
    return any(isinstance(layer, MeanState) for layer in module.modules())


def _write(
    graph: _Graph, path: str, module: nn.Module, x: str, value: Tensor
) -> tuple[str, Tensor]:
    """Append ``module``; return the name of its output, and its output for ``value``."""
    if isinstance(module, nn.Sequential):
        for name, child in module.named_children():
            x, value = _write(graph, f"{path}{name}.", child, x, value)
        return x, value
    if isinstance(module, Residual):
        main, total = _write(graph, f"{path}main.", module.main, x, value)
        shortcut, other = _write(graph, f"{path}shortcut.", module.shortcut, x, value)
        return graph.add("Add", main, shortcut), total + other
    writer = _WRITERS.get(type(module))
    if writer is None:
        raise ValueError(f"the layer {type(module).__name__} cannot be written")
    return writer(graph, path, module, x, tuple(value.shape)), module(value)


def _conv(graph: _Graph, path: str, layer: nn.Conv2d, x: str, _shape: tuple[int, ...]) -> str:
    if isinstance(layer.padding, str):
        raise ValueError("a convolution whose padding is a string cannot be written")
    inputs = [x, graph.know(f"{path}weight", layer.weight)]
    if layer.bias is not None:
        inputs.append(graph.know(f"{path}bias", layer.bias))
    return graph.add(
        "Conv",
        *inputs,
        kernel_shape=list(layer.kernel_size),
        strides=list(layer.stride),
        pads=[*layer.padding, *layer.padding],
        dilations=list(layer.dilation),
        group=layer.groups,
    )


def _linear(graph: _Graph, path: str, layer: nn.Linear, x: str, _shape: tuple[int, ...]) -> str:
    # MatMul rather than Gemm, which allows two axes only.
    product = graph.add("MatMul", x, graph.know(f"{path}weight", layer.weight.t()))
    # The type says that there is always one, but a layer may have been built without.
    bias: Tensor | None = layer.bias
    return product if bias is None else graph.add("Add", product, graph.know(f"{path}bias", bias))


def _batch_norm(
    graph: _Graph, path: str, layer: nn.BatchNorm2d, x: str, _shape: tuple[int, ...]
) -> str:
    mean, var = layer.running_mean, layer.running_var
    if mean is None or var is None:
        raise ValueError("BatchNorm without statistics cannot be written")
    scale = torch.ones_like(mean) if layer.weight is None else layer.weight
    offset = torch.zeros_like(mean) if layer.bias is None else layer.bias
    terms = {"weight": scale, "bias": offset, "running_mean": mean, "running_var": var}
    names = [graph.know(f"{path}{name}", term) for name, term in terms.items()]
    return graph.add("BatchNormalization", x, *names, epsilon=layer.eps)


def _max_pool(
    graph: _Graph, _path: str, layer: nn.MaxPool2d, x: str, _shape: tuple[int, ...]
) -> str:
    return graph.add(
        "MaxPool",
        x,
        kernel_shape=_pair(layer.kernel_size),
        strides=_pair(layer.stride),
        pads=_pair(layer.padding) * 2,
        dilations=_pair(layer.dilation),
        ceil_mode=int(layer.ceil_mode),
    )


def _average_pool(
    graph: _Graph, _path: str, layer: nn.AvgPool2d, x: str, _shape: tuple[int, ...]
) -> str:
    if layer.divisor_override is not None:
        raise ValueError("AvgPool2d with divisor_override cannot be written")
    return graph.add(
        "AveragePool",
        x,
        kernel_shape=_pair(layer.kernel_size),
        strides=_pair(layer.stride),
        pads=_pair(layer.padding) * 2,
        ceil_mode=int(layer.ceil_mode),
        count_include_pad=int(layer.count_include_pad),
    )


def _adaptive_pool(
    graph: _Graph, path: str, layer: nn.AdaptiveAvgPool2d, x: str, shape: tuple[int, ...]
) -> str:
    height, width = _pair(layer.output_size)
    if (height, width) == (1, 1):
        return graph.add("GlobalAveragePool", x)
    # Windows may overlap and differ in size, which no ONNX pooling supports. A product with a
    # matrix along each axis gives the same means.
    rows = graph.know(f"{path}rows", _pooling(shape[-2], height).t())
    columns = graph.know(f"{path}columns", _pooling(shape[-1], width))
    return graph.add("MatMul", graph.add("MatMul", rows, x), columns)


def _pooling(size: int, pooled: int) -> Tensor:
    """Return the weight of each entry in each mean, (size, pooled), as in torch's layer."""
    return F.adaptive_avg_pool1d(torch.eye(size)[None], pooled)[0]


def _flatten(graph: _Graph, _path: str, layer: nn.Flatten, x: str, _shape: tuple[int, ...]) -> str:
    if (layer.start_dim, layer.end_dim) != (1, -1):
        raise ValueError("Flatten of anything but whole examples cannot be written")
    return graph.add("Flatten", x, axis=1)


def _mean_state(graph: _Graph, path: str, layer: MeanState, x: str, shape: tuple[int, ...]) -> str:
    """Append the LSTM over all tokens, and a mean that leaves out the padding.

    The padding cannot change the other states, because a state depends on no later token.
    """
    lstm, table = layer.lstm, layer.embedding
    if not isinstance(lstm, nn.LSTM) or not isinstance(table, nn.Embedding):
        raise ValueError("a mean over anything but an embedding and an LSTM cannot be written")
    if lstm.num_layers != 1 or lstm.bidirectional or lstm.proj_size or not lstm.batch_first:
        raise ValueError("an LSTM of more than one layer or direction cannot be written")
    embedded = _embedding(graph, f"{path}embedding.", table, x, shape)
    states = graph.add(
        "LSTM",
        graph.add("Transpose", embedded, perm=[1, 0, 2]),
        graph.know(f"{path}lstm.weight_ih", _onnx_gates(lstm, "weight_ih_l0")),
        graph.know(f"{path}lstm.weight_hh", _onnx_gates(lstm, "weight_hh_l0")),
        *_lstm_bias(graph, path, lstm),
        hidden_size=lstm.hidden_size,
    )  # (length, direction, batch, hidden)
    by_text = graph.add("Transpose", states, perm=[1, 2, 0, 3])
    direction = graph.number([0], np.int64)
    lengths = _lengths(graph, x)
    kept = graph.add("Mul", graph.add("Squeeze", by_text, direction), _is_text(graph, x, lengths))
    total = graph.add("ReduceSum", kept, graph.number([1], np.int64), keepdims=0)
    return graph.add("Div", total, graph.add("Cast", lengths, to=_float()))


def _embedding(
    graph: _Graph, path: str, layer: nn.Embedding, x: str, _shape: tuple[int, ...]
) -> str:
    return graph.add("Gather", graph.know(f"{path}weight", layer.weight), x)


def _lengths(graph: _Graph, tokens: str) -> str:
    """Append the number of tokens of each text without padding, (batch, 1), at least 1."""
    is_word = graph.add("Not", graph.add("Equal", tokens, graph.number(0, np.int32)))
    words = graph.add("Cast", is_word, to=_int64())
    count = graph.add("ReduceSum", words, graph.number([1], np.int64), keepdims=1)
    return graph.add("Max", count, graph.number(1, np.int64))


def _is_text(graph: _Graph, tokens: str, lengths: str) -> str:
    """Append 1 for each position before its text's end and 0 for the rest, (batch, length, 1)."""
    zero, one = graph.number(0, np.int64), graph.number(1, np.int64)
    size = graph.add("Gather", graph.add("Shape", tokens), one)
    before = graph.add("Less", graph.add("Range", zero, size, one), lengths)
    return graph.add(
        "Unsqueeze", graph.add("Cast", before, to=_float()), graph.number([2], np.int64)
    )


def _lstm_bias(graph: _Graph, path: str, lstm: nn.LSTM) -> list[str]:
    if not lstm.bias:
        return []
    both = [_onnx_gates(lstm, name) for name in ("bias_ih_l0", "bias_hh_l0")]
    return [graph.know(f"{path}lstm.bias", torch.cat(both, dim=1))]


def _onnx_gates(lstm: nn.LSTM, name: str) -> Tensor:
    """Return a tensor's gates in ONNX's order, with a leading axis for the direction."""
    gates = lstm.get_parameter(name).detach().chunk(4)
    return torch.cat([gates[k] for k in _GATES])[None]


def _simple(operator: str) -> _Writer:
    return lambda graph, _path, _layer, x, _shape: graph.add(operator, x)


def _pair(value: object) -> list[int]:
    return list(value) if isinstance(value, tuple) else [int(str(value))] * 2


def _float() -> int:
    from onnx import TensorProto

    return int(TensorProto.FLOAT)


def _int64() -> int:
    from onnx import TensorProto

    return int(TensorProto.INT64)


_WRITERS: Mapping[type[nn.Module], _Writer] = {
    nn.AdaptiveAvgPool2d: _adaptive_pool,
    nn.AvgPool2d: _average_pool,
    nn.BatchNorm2d: _batch_norm,
    nn.Conv2d: _conv,
    nn.Embedding: _embedding,
    nn.Flatten: _flatten,
    nn.GELU: _simple("Gelu"),
    nn.Linear: _linear,
    nn.MaxPool2d: _max_pool,
    MeanState: _mean_state,
    nn.ReLU: _simple("Relu"),
    nn.Sigmoid: _simple("Sigmoid"),
    nn.Tanh: _simple("Tanh"),
}
