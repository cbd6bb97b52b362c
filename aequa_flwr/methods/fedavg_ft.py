"""FedAvg-FT: FedAvg plus one local epoch, the paper's way to tell FedAvg's models apart."""

from dataclasses import dataclass
from typing import ClassVar

from aequa_flwr.methods.method import (
    FULL_MODELS,
    FULL_MODELS_USUAL,
    About,
    Method,
    Setup,
    everybody_at,
    widest_for_all,
)


@dataclass(frozen=True)
class FedAvgFt:
    """Uniform averaging of full models; at the end everybody fine-tunes the result alone."""

    about: ClassVar[About] = About(
        title="FedAvg-FT",
        says="A baseline: all trained one model together, and each fine-tuned it alone at the end.",
        tunes=True,
        usual=FULL_MODELS_USUAL,
        allows=FULL_MODELS,
    )

    def build(self, setup: Setup) -> Method:
        """Return the method for one run."""
        return Method(self.about, everybody_at(setup.ladder[-1]), widest_for_all)
