"""An embedding and an LSTM that run at any width."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from aequa_flwr.slim import Axis, Layout, NDArray, Params
from aequa_flwr.slim.networks.layer import Nested, SlimLayer, Together
from aequa_flwr.slim.networks.plain import PlainLayer

_GATES = 4
# Our names, and where torch's own modules keep the same numbers.
_PLAIN_NAMES = {
    "weight_ih": "lstm.weight_ih_l0",
    "weight_hh": "lstm.weight_hh_l0",
    "bias_ih": "lstm.bias_ih_l0",
    "bias_hh": "lstm.bias_hh_l0",
}


class SlimLSTM(SlimLayer):
    """Tokens (n, length) to the mean of the LSTM's states over each text (n, hidden).

    The hidden units shrink with the width, the embedding does not. torch stacks the four gates in
    one axis, whose prefix would hold the units of one gate and none of another. So the gates have
    their own axis here. The steps are written out, and the input's part of all steps is computed
    once for all widths and once for each different word of a batch. On the CPU, forward and
    backward take a third of the time of torch's own packed LSTM (benchmarks/recurrent.py).
    ``embedding_std`` is the standard deviation of the embedding's initial values.
    """

    def __init__(
        self, num_tokens: int, embedding_size: int, hidden_size: int, *, embedding_std: float = 1.0
    ) -> None:
        super().__init__()
        self.axis = Axis(hidden_size)
        table = torch.randn(num_tokens, embedding_size) * embedding_std
        self.embedding = nn.Parameter(table)
        reference = nn.LSTM(embedding_size, hidden_size)
        for name, plain_name in _PLAIN_NAMES.items():
            stacked = getattr(reference, plain_name.removeprefix("lstm.")).detach()
            by_gate = stacked.reshape(_GATES, hidden_size, *stacked.shape[1:])
            self.register_parameter(name, nn.Parameter(by_gate.clone()))

    def forward(self, x: Tensor, width: float) -> Tensor:
        """Return the mean state of each text at ``width``."""
        packed = _pack(x)
        return self._read(packed, self._project(packed, width), width)

    def forward_joint(self, x: Nested, widths: Sequence[float]) -> Together:
        """Look up and project the tokens once; the steps run apart, as their states differ."""
        packed = _pack(x.tensor)
        wide = self._project(packed, widths[-1])
        return tuple(
            self._read(packed, wide[:, :, : self.axis.extent(width)], width) for width in widths
        )

    def _project(self, packed: PackedSequence, width: float) -> Tensor:
        """Return the input's part of all gates of all steps, (tokens, gates, hidden)."""
        size = self.axis.extent(width)
        weight, bias = self._flat("weight_ih", size), self._flat("bias_ih", size)
        different, where = torch.unique(packed.data, return_inverse=True)
        inputs = F.linear(F.embedding(different, self.embedding), weight, bias)
        return F.embedding(where, inputs).view(-1, _GATES, size)

    def _read(self, packed: PackedSequence, projected: Tensor, width: float) -> Tensor:
        """Run the steps; texts are sorted by length, so finished ones drop off the end."""
        size = self.axis.extent(width)
        inputs = projected.reshape(-1, _GATES * size) + self._flat("bias_hh", size)
        recurrent = self._flat("weight_hh", size, size).t()
        counts = packed.batch_sizes.tolist()
        hidden = cell = total = inputs.new_zeros(counts[0], size)
        means: list[Tensor] = []
        # Split once: the gradient of a slice is as large as the whole tensor, and there would be
        # one for every step. For the same reason there are running sums instead of padded states.
        for step, now in enumerate(torch.split(inputs, counts)):
            count = len(now)
            if count < len(hidden):
                means.append(total[count:] / step)
                hidden, cell, total = hidden[:count], cell[:count], total[:count]
            gates = torch.addmm(now, hidden, recurrent)
            enter, keep, candidate, leave = gates.chunk(_GATES, dim=1)
            cell = keep.sigmoid() * cell + enter.sigmoid() * candidate.tanh()
            hidden = leave.sigmoid() * cell.tanh()
            total = total + hidden
        means.append(total / len(counts))
        assert packed.unsorted_indices is not None  # _pack has sorted the texts
        return torch.cat(means[::-1])[packed.unsorted_indices]

    def _flat(self, name: str, size: int, inputs: int | None = None) -> Tensor:
        """Return the first units of each gate, with the gates stacked as in torch."""
        by_gate: Tensor = getattr(self, name)
        part = by_gate[:, :size] if inputs is None else by_gate[:, :size, :inputs]
        return part.reshape(_GATES * size, *part.shape[2:])

    @property
    def layouts(self) -> dict[str, Layout]:
        """Gates first; each gate's units and, of the recurrent weight, its inputs shrink."""
        tokens, embedding_size = self.embedding.shape
        return {
            "embedding": (tokens, embedding_size),
            "weight_ih": (_GATES, self.axis, embedding_size),
            "weight_hh": (_GATES, self.axis, self.axis),
            "bias_ih": (_GATES, self.axis),
            "bias_hh": (_GATES, self.axis),
        }

    def plain(self, width: float) -> PlainLayer:
        """Return torch's embedding and LSTM of this width."""
        tokens, embedding_size = self.embedding.shape
        table = {"num_embeddings": tokens, "embedding_dim": embedding_size}
        sizes = {"input_size": embedding_size, "hidden_size": self.axis.extent(width)}
        children = (
            ("embedding", PlainLayer("Embedding", table)),
            ("lstm", PlainLayer("LSTM", {**sizes, "batch_first": True})),
        )
        return PlainLayer("MeanState", children=children)

    def plain_params(self, sub_params: Params, width: float) -> dict[str, NDArray]:
        """Stack the gates as torch does."""
        stacked = {
            plain_name: sub_params[name].reshape(-1, *sub_params[name].shape[2:])
            for name, plain_name in _PLAIN_NAMES.items()
        }
        return {"embedding.weight": sub_params["embedding"], **stacked}


def _pack(tokens: Tensor) -> PackedSequence:
    """Pack the texts without their padding; a text of nothing else keeps one padding token."""
    lengths = (tokens != 0).sum(dim=1).clamp(min=1).cpu()
    return pack_padded_sequence(tokens, lengths, batch_first=True, enforce_sorted=False)
