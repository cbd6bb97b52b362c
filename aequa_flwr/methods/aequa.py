"""Aequa with post-training rewards (paper, sections 4.1 and 4.2)."""

from dataclasses import dataclass
from typing import ClassVar

from aequa_flwr.methods.method import About, Method, Setup, Standing, everybody_at


@dataclass(frozen=True)
class Aequa:
    """Everybody trains the full model; at the end a fair allocation chooses the rewards."""

    about: ClassVar[About] = About(
        title="Aequa",
        says="All participants trained the full model; rewards are cut from it at the end.",
        sub_networks=True,
        entrusts=True,
        usual={"p-min": "auto", "contribution": "standalone", "allocation": "accuracy"},
        allows={"allocation": ("accuracy", "width")},
    )

    def build(self, setup: Setup) -> Method:
        """Return the method for one run. Raises ValueError without an allocation."""
        if setup.ending is None:
            raise ValueError("post-training rewards need an allocation")
        allocation = setup.ending

        def ends_with(standing: Standing) -> dict[str, int]:
            return allocation.levels(standing.contributions, standing.accuracies)

        return Method(self.about, everybody_at(setup.ladder[-1]), ends_with)
