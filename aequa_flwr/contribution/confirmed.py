"""Standalone accuracy, as far as the rounds confirm it: training alone once does not pay."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from aequa_flwr.contribution.estimator import (
    Effects,
    Floats,
    Ledger,
    Needs,
    Opening,
    RoundEvidence,
    Unit,
)

# The columns of what is summed over rounds, and how much slower than ``memory`` each fades.
_HABIT, _USUAL_HABIT, _ORIGIN, _USUAL_ORIGIN, _CHANCE, _HARM = range(6)
_MEMORY = (1.0, 1.0, 0.25, 0.25, 0.25, 1.0)
# Mean change of the log-likelihood, in nats: none of it counts below the first, all of it above.
_HARMLESS, _HARMFUL = 0.2, 0.4
# Fewer participants in a round cannot be compared with each other.
_LEAST_PRESENT = 3
# An own effect this much shorter than the median one is none.
_IDLE = 0.02
# A log-likelihood that changes by more nats counts as this: one wild answer is not the verdict.
_MOST_NATS = 3.0
# Answers are softened by this, so that what a model is sure of does not hide all else.
_TEMPERATURE = 3.0


@dataclass(frozen=True, config=ConfigDict(allow_inf_nan=False))
class Confirmed:
    """The standalone accuracy, scaled by a gate in [0, 1] that honest participants pass at 1.

    The server watches what each update changes in the model's answers to a few of its own
    examples. Three signs are judged over many rounds. They are relative to the median of all, so
    most participants must be honest.

    habit
        The participant's own part of the change points the same way from round to round, because
        it trains on the same data. That of an idle participant, of noise or of a replay does not.
    origin
        It points to what its standalone model answers, more than to what others' do. An update that
        was made without the data, or against them, does not.
    harm
        Where its standalone model is right, the true class does not become much less likely. With
        flipped labels it does.

    The contribution is chance + gate x (standalone accuracy - chance).
    """

    memory: float = Field(default=0.8, ge=0.0, lt=1.0, description="weight of earlier rounds")
    enough: float = Field(
        default=0.2, gt=0.0, le=1.0, description="share of the median that passes"
    )
    nothing: float = Field(default=0.1, ge=0.0, lt=1.0, description="share that counts as nothing")

    needs: ClassVar[Needs] = Needs(standalone=True, effects=True, validation=True)
    # An accuracy in [0, 1].
    unit: ClassVar[Unit] = "accuracy"
    changes: ClassVar[bool] = True

    def begin(self, opening: Opening) -> Ledger:
        """Return a ledger of the standalone accuracies, in which nothing has been watched yet."""
        count = len(opening.standalone)
        answers, labels = opening.answers, opening.labels
        if answers is None or labels is None:
            answers, labels = np.zeros((count, 1, 1)), np.zeros(1, np.int64)
        chance = 1.0 / answers.shape[2]
        zeros = np.zeros(count)
        return {
            "accuracy": opening.standalone,
            "chance": np.full(count, chance),
            "fingerprint": _fingerprints(answers),
            "competence": _competence(answers, labels),
            "habit": np.zeros((count, answers.shape[1] * answers.shape[2])),
            "sums": np.zeros((count, len(_MEMORY))),
            "passed": zeros,
            "judged": zeros.copy(),
        }

    def after_round(self, ledger: Ledger, evidence: RoundEvidence) -> Ledger:
        """Return the ledger with one more round of signs for those present."""
        effects, present = evidence.effects, evidence.present
        if effects is None or len(present) < _LEAST_PRESENT:
            return ledger
        own = _own_parts(effects)
        habits = ledger["habit"][present]
        fingerprints = ledger["fingerprint"][present]
        known = np.logical_not(np.isnan(fingerprints).any(axis=1))
        signs = np.zeros((len(present), len(_MEMORY)))
        signs[:, _HABIT], _ = _above_others(own, habits)
        signs[:, _USUAL_HABIT] = np.median(signs[:, _HABIT])
        if known.sum() >= _LEAST_PRESENT:
            origin, chance = _above_others(own, _of_its_own(fingerprints, effects, known))
            # Weighted by how much it says: later rounds tell participants apart less and less.
            usual = max(0.0, float(np.median(origin[known])))
            signs[:, _ORIGIN : _CHANCE + 1] = (
                usual
                * np.stack([origin, np.full(len(origin), usual), chance], axis=1)
                * known[:, None]
            )
        signs[:, _HARM] = _harm(effects, ledger["competence"][present])
        sums = ledger["sums"].copy()
        keep = self.memory ** np.array(_MEMORY)
        sums[present] = keep * sums[present] + (1.0 - keep) * signs
        habit = ledger["habit"].copy()
        habit[present] = self.memory * habits + (1.0 - self.memory) * own
        gate, weight = self._judge(sums[present])
        passed, judged = ledger["passed"].copy(), ledger["judged"].copy()
        passed[present] += weight * gate
        judged[present] += weight
        return {**ledger, "habit": habit, "sums": sums, "passed": passed, "judged": judged}

    def _judge(self, sums: Floats) -> tuple[Floats, Floats]:
        """Return how far each passes now, in [0, 1], and how much this says.

        It says as much as the median participant can be told from one that does nothing.
        """
        habit, usual_habit, origin, usual_origin, chance, harm = sums.T
        weight = np.maximum(usual_habit, 0.0)
        gate = np.minimum(
            self._ramp(habit, usual_habit),
            # With little data, an honest update may point elsewhere by chance.
            np.where(usual_origin > 0.0, self._ramp(origin + chance, usual_origin), 1.0),
        )
        return gate * np.clip((harm + _HARMFUL) / (_HARMFUL - _HARMLESS), 0.0, 1.0), weight

    def _ramp(self, value: Floats, usual: Floats) -> Floats:
        share = value / np.maximum(usual, 1e-9)
        return np.clip((share - self.nothing) / (self.enough - self.nothing), 0.0, 1.0)

    def contributions(self, ledger: Ledger) -> Floats:
        """Return the confirmed accuracies; NaN for a participant that could not train alone."""
        chance, accuracy = ledger["chance"], ledger["accuracy"]
        judged = ledger["judged"]
        gate = np.where(judged > 0.0, ledger["passed"] / np.where(judged > 0.0, judged, 1.0), 1.0)
        above = np.maximum(accuracy - chance, 0.0)
        return accuracy - (1.0 - gate) * above


def _centred(answers: Floats) -> Floats:
    """Return answers (..., V, C) without their means over classes and over examples.

    An update that makes one class more likely everywhere says nothing about the data it is from.
    """
    centred: Floats = answers - answers.mean(axis=-1, keepdims=True)
    centred = centred - centred.mean(axis=-2, keepdims=True)
    return centred.reshape(len(centred), -1)


def _softened(answers: Floats, temperature: float) -> Floats:
    scaled = answers / temperature
    powers = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def _fingerprints(answers: Floats) -> Floats:
    """Return what the standalone models answer, (N, V C)."""
    return _centred(_softened(answers, _TEMPERATURE))


def _competence(answers: Floats, labels: npt.NDArray[np.int64]) -> Floats:
    """Return the weight of each example for each participant: how right its own model is there.

    A participant whose model is not known counts as equally right everywhere.
    """
    right = _softened(answers, 1.0)[:, np.arange(len(labels)), labels]
    right = np.where(np.isnan(right), 1.0, right)
    weights: Floats = right / right.sum(axis=1, keepdims=True)
    return weights


def _own_parts(effects: Effects) -> Floats:
    """Return the direction of each participant's own part of the change, (n, V C); 0 if idle.

    Without what the others changed in this round, and without being only more or less sure of what
    the model answers anyway.
    """
    change, before = _centred(effects.innovation), _centred(effects.before)
    units = _units(change)
    total = units.sum(axis=0)
    own = np.stack(
        [
            _without(one, [total - unit, answers])
            for one, unit, answers in zip(change, units, before, strict=True)
        ]
    )
    lengths = np.linalg.norm(own, axis=1)
    return np.where((lengths > _IDLE * np.median(lengths))[:, None], _units(own), 0.0)


def _of_its_own(fingerprints: Floats, effects: Effects, known: npt.NDArray[np.bool_]) -> Floats:
    """Return how each standalone model differs from the mean of all, without mere sureness."""
    mean = fingerprints[known].mean(axis=0)
    before = _centred(effects.before).mean(axis=0)
    wrong = _centred(
        np.eye(effects.before.shape[2])[effects.labels] - _softened(effects.before, 1.0)
    ).mean(axis=0)
    return np.stack(
        [
            _without(one - mean, [before, wrong]) if there else np.zeros_like(mean)
            for one, there in zip(fingerprints, known, strict=True)
        ]
    )


def _above_others(own: Floats, targets: Floats) -> tuple[Floats, Floats]:
    """Return how much better each points to its own target than to those of the others.

    The second array is the spread of the others, which is what chance alone gives.
    """
    units = _units(targets)
    cosines = own @ units.T
    there = np.linalg.norm(units, axis=1) > 0.0
    others = there[None, :] & ~np.eye(len(own), dtype=bool)
    counts = np.maximum(others.sum(axis=1), 1)
    mean = np.where(others, cosines, 0.0).sum(axis=1) / counts
    squares = np.where(others, (cosines - mean[:, None]) ** 2, 0.0).sum(axis=1) / counts
    return np.where(there, np.diag(cosines) - mean, 0.0), np.sqrt(squares)


def _harm(effects: Effects, competence: Floats) -> Floats:
    """Return the mean change of the log-likelihood where each participant's own model is right."""
    rows = np.arange(len(effects.labels))
    before = _log_likelihood(effects.before)[:, rows, effects.labels]
    after = _log_likelihood(effects.before + effects.change)[:, rows, effects.labels]
    harm: Floats = (competence * np.clip(after - before, -_MOST_NATS, _MOST_NATS)).sum(axis=1)
    return harm


def _log_likelihood(answers: Floats) -> Floats:
    shifted = answers - answers.max(axis=-1, keepdims=True)
    logs: Floats = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return logs


def _units(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    units: Floats = np.where(lengths > 0.0, vectors / np.where(lengths > 0.0, lengths, 1.0), 0.0)
    return units


def _without(vector: Floats, directions: Sequence[Floats]) -> Floats:
    """Return the part of ``vector`` that is orthogonal to all ``directions``."""
    there = [one for one in directions if np.linalg.norm(one) > 0.0]
    if not there:
        return vector
    basis, _ = np.linalg.qr(np.stack(there, axis=1))
    rest: Floats = vector - basis @ (basis.T @ vector)
    return rest
