"""Several contribution estimators in one run, so that one training serves all of them."""

from collections.abc import Mapping
from dataclasses import dataclass

from aequa_flwr.contribution import (
    ContributionEstimator,
    Floats,
    Ledger,
    Needs,
    Opening,
    RoundEvidence,
    Unit,
)


@dataclass(frozen=True)
class Several:
    """Estimators by name, side by side; the run itself goes by the first of them.

    Each keeps its own part of the ledger, under its name.
    """

    estimators: Mapping[str, ContributionEstimator]

    @property
    def needs(self) -> Needs:
        """What any of them needs."""
        all_needs = [estimator.needs for estimator in self.estimators.values()]
        return Needs(
            standalone=any(needs.standalone for needs in all_needs),
            updates=any(needs.updates for needs in all_needs),
            effects=any(needs.effects for needs in all_needs),
            validation=any(needs.validation for needs in all_needs),
            participants=max(needs.participants for needs in all_needs),
            everybody_first=any(needs.everybody_first for needs in all_needs),
        )

    @property
    def unit(self) -> Unit:
        """The unit of the first."""
        return next(iter(self.estimators.values())).unit

    @property
    def changes(self) -> bool:
        """Whether rounds change any of them."""
        return any(estimator.changes for estimator in self.estimators.values())

    def begin(self, opening: Opening) -> Ledger:
        """Return the ledgers of all before the first round."""
        return self._joined({k: one.begin(opening) for k, one in self.estimators.items()})

    def after_round(self, ledger: Ledger, evidence: RoundEvidence) -> Ledger:
        """Return the ledgers of all after a round."""
        return self._joined(
            {
                kind: estimator.after_round(self.ledger_of(kind, ledger), evidence)
                for kind, estimator in self.estimators.items()
            }
        )

    def contributions(self, ledger: Ledger) -> Floats:
        """Return the contributions by the first."""
        first = next(iter(self.estimators))
        return self.estimators[first].contributions(self.ledger_of(first, ledger))

    def ledger_of(self, kind: str, ledger: Ledger) -> Ledger:
        """Return the part of one estimator."""
        start = f"{kind}|"
        return {k[len(start) :]: value for k, value in ledger.items() if k.startswith(start)}

    def _joined(self, ledgers: Mapping[str, Ledger]) -> dict[str, Floats]:
        return {f"{kind}|{k}": v for kind, one in ledgers.items() for k, v in one.items()}
