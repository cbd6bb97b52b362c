"""The validation and held-out data, on which the server measures models."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch

from aequa_flwr.contribution import Probe
from aequa_flwr.results import Measured
from aequa_flwr.slim import NDArray, Params
from aequa_flwr.slim.networks import SlimNetwork
from aequa_flwr.training.calibrate import calibrate
from aequa_flwr.training.compute import Compute, Resident
from aequa_flwr.training.evaluate import balanced_accuracies
from aequa_flwr.training.mixtures import Mixtures, subset

Floats = npt.NDArray[np.float64]
Score = Callable[[Floats], tuple[Floats, Floats]]


@dataclass(frozen=True)
class ServerData:
    """The server's validation and held-out data, and the network to measure models with.

    Everything is chosen on ``validation``; nothing is ever chosen on ``held_out``.
    """

    network: SlimNetwork
    compute: Compute
    validation: Resident
    held_out: Resident | None

    def measure(self, params: Params, widths: Sequence[float]) -> list[Measured]:
        """Return the accuracies of full-shape ``params`` at each of ``widths`` (ascending)."""
        self.network.load(params)
        tuned = balanced_accuracies(self.network, widths, self.validation, self.compute)
        if self.held_out is None:
            return [Measured(accuracy, None) for accuracy in tuned]
        untouched = balanced_accuracies(self.network, widths, self.held_out, self.compute)
        return [Measured(*pair) for pair in zip(tuned, untouched, strict=True)]

    def few(self, most_examples: int) -> "ServerData":
        """Return the same without held-out data, on at most ``most_examples`` (0: all)."""
        return replace(self, validation=subset(self.validation, most_examples), held_out=None)

    def probe(self, most_examples: int) -> Probe:
        """Return a probe of at most ``most_examples`` of the validation data."""
        data = subset(self.validation, most_examples)

        @torch.inference_mode()
        def answers(params: Params, width: float) -> Floats:
            self.network.load(params, width)
            self.network.eval()
            x, _ = data.batch(slice(None))
            with self.compute.autocast():
                outputs = self.network(x, width)
            return np.asarray(outputs.double().cpu())

        return Probe(answers, data.labels.cpu().numpy())

    def scorer(
        self, width: float, most_examples: int
    ) -> Callable[[Params, Mapping[str, NDArray]], Score]:
        """Return a function that scores mixtures of updates to the sub-model of ``width``.

        Scores use at most ``most_examples`` of the validation data; 0: all.
        """

        def score(received: Params, updates: Mapping[str, NDArray]) -> Score:
            return Mixtures(
                self.network,
                width,
                received,
                updates,
                self.validation,
                self.compute,
                most_examples=most_examples,
            ).score

        return score

    def calibrate(
        self, params: Params, widths: Sequence[float], trained: Collection[int]
    ) -> dict[str, NDArray]:
        """Return ``params`` with BatchNorm statistics of ``widths`` from the validation inputs.

        ``trained`` are the BatchNorm rows that at least one participant trained.
        """
        self.network.load(params)
        for width in widths:
            calibrate(self.network, width, trained, self.validation, self.compute)
        return self.network.dump()
