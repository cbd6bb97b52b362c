"""Time of SlimLSTM, forward and backward, relative to torch's embedding and packed LSTM.

    python benchmarks/recurrent.py

At full width, on texts as long as those of SST: 19 words on average, at most 52.
"""

import numpy as np
import torch
from ratio import Work, interleaved, ratio_row
from torch import nn

from aequa_flwr.slim.networks import SlimLSTM
from aequa_flwr.training import keep_memory

_WORDS, _BATCH, _REPEATS = 18_278, 128, 15


def texts() -> torch.Tensor:
    """Return token ids (batch, 52), 0 after the end of each text; few words are frequent."""
    rng = np.random.default_rng(1)
    tokens = rng.zipf(1.3, (_BATCH, 52)).clip(1, _WORDS - 1)
    lengths = rng.normal(19, 9, _BATCH).clip(2, 52).astype(int)
    lengths[0] = 52
    tokens[np.arange(52) >= lengths[:, None]] = 0
    return torch.from_numpy(tokens)


def main() -> None:
    torch.set_num_threads(1)
    keep_memory()
    ours, tokens = SlimLSTM(_WORDS, 300, 256), texts()
    torchs = ours.plain(1.0).build()

    def both_ways(module: nn.Module, *width: float) -> Work:
        def work() -> None:
            module.zero_grad()
            module(tokens, *width).sum().backward()

        return work

    works = {"ours": both_ways(ours, 1.0), "torch": both_ways(torchs)}
    taken = interleaved(works, _REPEATS)
    print(ratio_row("SlimLSTM / torch's own packed LSTM", taken["ours"], taken["torch"]))


if __name__ == "__main__":
    main()
