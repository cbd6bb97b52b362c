"""The paper's LSTM for text (SST)."""

from aequa_flwr.data.schema import Schema
from aequa_flwr.slim.layers import Channelwise, SlimLinear
from aequa_flwr.slim.network import NetworkError, SlimNetwork
from aequa_flwr.slim.recurrent import SlimLSTM


def lstm(schema: Schema, *, embedding_size: int = 300, hidden_size: int = 256) -> SlimNetwork:
    """Build an embedding, one LSTM and three linear layers."""
    if schema.kind != "tokens":
        raise NetworkError(
            "The network lstm takes text, and the examples are "
            f"{schema.kind}; choose another with --set network=..., `aequa networks` lists them."
        )
    half, quarter = hidden_size // 2, hidden_size // 4
    return SlimNetwork(
        {
            "lstm": SlimLSTM(schema.num_tokens, embedding_size, hidden_size),
            "fc1": SlimLinear(hidden_size, half),
            "relu1": Channelwise("ReLU"),
            "fc2": SlimLinear(half, quarter),
            "relu2": Channelwise("ReLU"),
            "fc3": SlimLinear(quarter, schema.num_classes, slim_out=False),
        }
    )
