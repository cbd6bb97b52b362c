"""Standalone: no federation at all, the floor that every method is compared with."""

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
class Standalone:
    """Each participant ends with the model it trained alone."""

    about: ClassVar[About] = About(
        title="Standalone",
        says="A baseline: each participant trained alone, and nothing was shared.",
        training="alone",
        usual=FULL_MODELS_USUAL,
        allows={**FULL_MODELS, "standalone-from": ("",), "participation": ("all",)},
    )

    def build(self, setup: Setup) -> Method:
        """Return the method for one run."""
        return Method(self.about, everybody_at(setup.ladder[-1]), widest_for_all)
