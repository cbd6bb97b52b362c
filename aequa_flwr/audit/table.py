"""What cheating gains: from the outcomes of an audit to a row for each attack."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from aequa_flwr.attacks import Attack
from aequa_flwr.audit.trial import Outcome, Trial


@dataclass(frozen=True)
class Row:
    """One attack under one contribution method; all numbers are accuracies, one for each seed.

    ``gain`` is what the attacker's reward gains over honesty with the same means, ``over_out`` what
    it gains over staying out. ``others`` is the mean change of the others' rewards and ``model``
    that of the most accurate level. ``ranks`` are (honest, cheating) ranks by contribution.
    """

    attack: str
    title: str
    method: str
    works: bool
    gain: tuple[float, ...] = ()
    over_out: tuple[float, ...] = ()
    others: tuple[float, ...] = ()
    model: tuple[float, ...] = ()
    ranks: tuple[tuple[int, int], ...] = ()
    failed: str = ""

    def word(self, tolerance: float) -> str:
        """Return PAYS, FREE (the same reward without any work), HARMS or no."""
        if self.failed or not self.gain:
            return "failed"
        if fmean(self.gain) > tolerance:
            return "PAYS"
        if not self.works and fmean(self.gain) >= -tolerance:
            return "FREE"
        return "HARMS" if fmean(self.model) < -tolerance else "no"


def rows_of(
    attacks: Mapping[str, Attack],
    methods: Sequence[str],
    seeds: Sequence[int],
    outcomes: Mapping[str, Outcome],
) -> list[Row]:
    """Return the rows of the attacks of which every seed has been tried, in their order."""
    rows = []
    for name, attack in attacks.items():
        found = [outcomes.get(_key(name, seed)) for seed in seeds]
        if any(outcome is None for outcome in found):
            continue
        tried = [outcome for outcome in found if outcome is not None]
        failed = next((outcome.failed for outcome in tried if outcome.failed), "")
        for method in methods:
            row = Row(name, attack.title, method, attack.works, failed=failed)
            if not failed:
                row = _filled(row, attack, tried, [*_honest(name, attack, seeds, outcomes)])
            rows.append(row)
    return rows


def _key(attack: str, seed: int, *, honestly: bool = False) -> str:
    return Trial({}, (), attack, seed, honestly).key


def _honest(
    name: str, attack: Attack, seeds: Iterable[int], outcomes: Mapping[str, Outcome]
) -> Iterable[tuple[Outcome, Outcome]]:
    """Yield for each seed the honest federation, and the one with the attacker's means."""
    for seed in seeds:
        honest = outcomes[_key("", seed)]
        same = _key(name, seed, honestly=True) if attack.is_limited else _key("", seed)
        yield honest, outcomes[same]


def _filled(
    row: Row, attack: Attack, tried: Sequence[Outcome], honest: Sequence[tuple[Outcome, Outcome]]
) -> Row:
    gain, out, others, model, ranks = [], [], [], [], []
    for now, (plain, same) in zip(tried, honest, strict=True):
        judged, before = now.judged[row.method], same.judged[row.method]
        members = [name for name in now.cheats if name in before.rewards]
        rewards = [judged.rewards[name] for name in now.cheats]
        # Who takes part under several names keeps the best of their rewards.
        reward = max(rewards) if len(now.cheats) > attack.members else fmean(rewards)
        gain.append(reward - fmean(before.rewards[name] for name in members))
        out.append(reward - fmean(plain.alone[name] for name in members))
        rest = [name for name in before.rewards if name not in now.cheats]
        changes = [judged.rewards[name] - before.rewards[name] for name in rest]
        others.append(fmean(changes) if changes else 0.0)
        model.append(now.best - same.best)
        first = members[0]
        ranks.append((_rank(before.contributions, first), _rank(judged.contributions, first)))
    return Row(
        row.attack, row.title, row.method, row.works,
        tuple(gain), tuple(out), tuple(others), tuple(model), tuple(ranks),
    )  # fmt: skip


def _rank(contributions: Mapping[str, float], name: str) -> int:
    return 1 + sum(value > contributions[name] for value in contributions.values())
