"""From names and parameters to the arrays that an estimator receives, and back."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from aequa_flwr.contribution.effects import Probe, effects_of
from aequa_flwr.contribution.estimator import (
    ContributionEstimator,
    Effects,
    Floats,
    Ledger,
    Opening,
    RoundEvidence,
    Score,
)
from aequa_flwr.slim import Layouts, NDArray, Params, extract, is_switchable, stack_updates

# From (received sub-model, stacked updates) to a function that measures mixtures of them.
Scorer = Callable[[Params, Mapping[str, NDArray]], Score]
# Progress is reported each time this many mixtures have been measured.
_TELL_EVERY = 64


@dataclass(frozen=True)
class Assessor:
    """An estimator applied to named participants.

    ``width`` is that of the assessed sub-model, the widest that every participant trains.
    ``scorer`` and ``probe`` are None if the server has no validation data.
    """

    estimator: ContributionEstimator
    width: float
    layouts: Layouts
    classes: int
    seed: int
    scorer: Scorer | None = None
    probe: Probe | None = None

    @property
    def individual_width(self) -> float | None:
        """The width of the individual sub-models that the estimator needs; None if none.

        A participant that trains a narrower one returns all of that.
        """
        needs = self.estimator.needs
        if needs.effects:
            return 1.0
        return self.width if needs.updates else None

    @property
    def probes(self) -> bool:
        """Whether the estimator looks at the model's answers, and there is a probe."""
        return self.probe is not None and self.estimator.needs.effects

    def begin(
        self,
        num_examples: Mapping[str, int],
        standalone: Mapping[str, float],
        answers: Mapping[str, Floats] | None = None,
    ) -> Ledger:
        """Return the ledger before the first round; participants are those of ``num_examples``.

        ``answers`` are those of the models trained alone, as far as they are known.
        """
        alone = [standalone.get(name, np.nan) for name in num_examples]
        opening = Opening(_counts(num_examples), np.array(alone), self.seed)
        if self.probes and self.probe is not None:
            shape = (len(self.probe.labels), self.classes)
            unknown = np.full(shape, np.nan)
            given = [(answers or {}).get(name, unknown) for name in num_examples]
            opening = replace(
                opening, answers=np.array(given, np.float64), labels=self.probe.labels
            )
        return self.estimator.begin(opening)

    def evidence(
        self,
        server_round: int,
        received: Callable[[str], Params],
        trained: Mapping[str, Params],
        num_examples: Mapping[str, int],
        before: Mapping[str, float],
        widths: Mapping[str, float] | None = None,
        earlier: Sequence[Params] = (),
    ) -> RoundEvidence:
        """Return what the server knows after a round.

        ``received`` returns the full model that a participant started from. ``trained`` maps each
        trained participant to its parameters of the ``individual_width``, which are empty if nobody
        needs them. ``before`` are the contributions so far. ``widths`` are those that participants
        trained, and ``earlier`` the server's models of the rounds before, the last one first.
        """
        present = [k for k, name in enumerate(num_examples) if name in trained]
        names = tuple(num_examples)
        pairs = [(names[k], trained[names[k]]) for k in present]
        starts: dict[int, Params] = {}  # one extraction where all received the same model

        def start(name: str) -> Params:
            model = received(name)
            if id(model) not in starts:
                starts[id(model)] = extract(model, self.layouts, self.width)
            return starts[id(model)]

        wanted = all(params for _, params in pairs)
        inside = [(start(n), self._assessed(params)) for n, params in pairs if wanted]
        updates = stack_updates(inside)
        return RoundEvidence(
            server_round=server_round,
            present=np.array(present, dtype=np.int64),
            num_examples=_counts(num_examples),
            seed=self.seed,
            classes=self.classes,
            updates=updates,
            effects=self._effects(received, pairs, widths or {}, earlier),
            switchable=frozenset(n for n, layout in self.layouts.items() if is_switchable(layout)),
            names=names,
            before=before,
        )

    def _assessed(self, params: Params) -> Params:
        # What was sent for the effects is wider. A prefix of a prefix is cut like the whole.
        return extract(params, self.layouts, self.width) if self.probes else params

    def _effects(
        self,
        received: Callable[[str], Params],
        trained: Sequence[tuple[str, Params]],
        widths: Mapping[str, float],
        earlier: Sequence[Params],
    ) -> Effects | None:
        if not self.probes or self.probe is None or not trained:
            return None
        rounds = [(received(name), params, widths[name]) for name, params in trained]
        return effects_of(self.probe, self.layouts, rounds, earlier)

    def assess(
        self,
        ledger: Ledger,
        seen: RoundEvidence,
        server: Params,
        on_scored: Callable[[int], None] = lambda _count: None,
    ) -> tuple[Ledger, int]:
        """Return the ledger after a round, and how many models were measured for it.

        ``server`` is the server's full model before the round, to which mixtures of updates are
        added. ``on_scored`` is called with the number of models measured so far.
        """
        scored = [0]
        if self.scorer is not None and self.estimator.needs.updates:
            start = extract(server, self.layouts, self.width)
            score = _counted(self.scorer(start, seen.updates), scored, on_scored)
            seen = replace(seen, score=score)
        return self.estimator.after_round(ledger, seen), scored[0]

    def contributions(
        self, ledger: Ledger, names: Collection[str], of: Collection[str]
    ) -> dict[str, float]:
        """Return the contributions of those in ``of`` for whom one is known."""
        values = self.estimator.contributions(ledger)
        return {
            name: float(value)
            for name, value in zip(names, values, strict=True)
            if name in of and np.isfinite(value)
        }


def _counts(num_examples: Mapping[str, int]) -> Floats:
    return np.array(list(num_examples.values()), dtype=np.float64)


def _counted(score: Score, scored: list[int], on_scored: Callable[[int], None]) -> Score:
    def counted(weights: Floats) -> tuple[Floats, Floats]:
        parts = []
        for start in range(0, len(weights), _TELL_EVERY):
            parts.append(score(weights[start : start + _TELL_EVERY]))
            scored[0] += len(parts[-1][0])
            on_scored(scored[0])
        accuracies, losses = zip(*parts, strict=True) if parts else ((), ())
        return np.concatenate([*accuracies, []]), np.concatenate([*losses, []])

    return counted
