"""The trials of an audit: in parallel, each result on disk as soon as it is there."""

import hashlib
import json
import logging
import multiprocessing
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

from aequa_flwr.attacks import Attack
from aequa_flwr.audit.trial import Outcome, Trial, run_trial
from aequa_flwr.errors import UserError
from aequa_flwr.files import write_whole

OUTCOMES_FILE = "outcomes.jsonl"


def trials_of(
    settings: Mapping[str, Any],
    methods: Sequence[str],
    attacks: Mapping[str, Attack],
    seeds: Sequence[int],
) -> list[Trial]:
    """Return every trial of an audit: the honest ones, then attack by attack, all seeds of each."""
    trials = [Trial(settings, tuple(methods), "", seed) for seed in seeds]
    for name, attack in attacks.items():
        for seed in seeds:
            if attack.is_limited:
                trials.append(Trial(settings, tuple(methods), name, seed, honestly=True))
            trials.append(Trial(settings, tuple(methods), name, seed))
    return trials


class Outcomes:
    """The outcomes so far, in a file of the ``folder`` from which an audit goes on.

    Raises UserError if the folder holds the outcomes of another audit.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any], methods: Sequence[str]) -> None:
        self._path = folder / OUTCOMES_FILE
        text = json.dumps([dict(settings), list(methods)], sort_keys=True)
        self._head = json.dumps({"audit": hashlib.sha256(text.encode()).hexdigest()[:16]})
        self.by_key: dict[str, Outcome] = {}
        if self._path.exists():
            self._load()

    def _load(self) -> None:
        head, *lines = self._path.read_text(encoding="utf-8").splitlines() or [""]
        if head != self._head:
            raise UserError(
                f"{self._path} is of an audit with other settings; choose another --output."
            )
        for line in lines:
            try:
                outcome = Outcome.from_json(json.loads(line))
            except (ValueError, KeyError, TypeError):
                raise UserError(f"{self._path} is damaged; remove it to start again.") from None
            self.by_key[outcome.key] = outcome

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome. The file is whole at any time."""
        self.by_key[outcome.key] = outcome
        lines = [self._head, *(json.dumps(one.to_json()) for one in self.by_key.values())]
        write_whole(self._path, ("\n".join(lines) + "\n").encode())


def run_trials(
    trials: Sequence[Trial],
    outcomes: Outcomes,
    *,
    at_once: int,
    minutes: float,
    tell: Callable[[int, int, str], None],
) -> bool:
    """Run the trials that have no outcome yet; return whether there was time for all of them.

    ``tell`` receives how many are done, how many there are, and the last one. After ``minutes``
    no more are started. An honest trial that fails ends the audit with its reason.
    """
    left = [trial for trial in trials if trial.key not in outcomes.by_key]
    deadline = time.monotonic() + 60.0 * minutes

    def may_start(trial: Trial) -> bool:
        # Honest federations are what all others are compared with: they always run.
        return not trial.attack or time.monotonic() < deadline

    # Not forked: torch's threads do not survive that.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(at_once, context, initializer=_be_quiet) as pool:
        try:
            running: set[Future[Outcome]] = set()
            while left or running:
                while left and len(running) < at_once and may_start(left[0]):
                    running.add(pool.submit(run_trial, left.pop(0)))
                if not running:
                    break
                done, running = wait(running, return_when=FIRST_COMPLETED)
                _keep(done, outcomes)
                tell(len(trials) - len(left) - len(running), len(trials), _last(done))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise
    return not left


def _keep(done: Iterable[Future[Outcome]], outcomes: Outcomes) -> None:
    for future in done:
        outcome = future.result()
        if outcome.failed and outcome.is_honest:
            raise UserError(
                f"The honest federation failed, so nothing can be compared with it: "
                f"{outcome.failed}"
            )
        outcomes.add(outcome)


def _last(done: Iterable[Future[Outcome]]) -> str:
    return max((future.result() for future in done), key=lambda one: one.seconds).title


def _be_quiet() -> None:
    # Hundreds of runs would each log what they are about to do.
    logging.disable(logging.WARNING)
    # Ctrl-C reaches every process of a terminal; the audit itself ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
