"""`aequa deliver`: send the rewards of an earlier run to sites that were offline when it ended."""

import logging
import shutil
from dataclasses import replace
from pathlib import Path

from flwr.serverapp import Grid

from aequa_flwr.errors import UserError
from aequa_flwr.federation import Exchange, RewardTask, Roster, deliver, gather, load_roster
from aequa_flwr.report import render_page
from aequa_flwr.results import (
    REPORT_FILE,
    REWARDS_FOLDER,
    ROSTER_FILE,
    UNDELIVERED,
    load_record,
    save_record,
)
from aequa_flwr.rewards import load_card, load_tensors
from aequa_flwr.settings import RunConfig

logger = logging.getLogger(__name__)


def deliver_again(grid: Grid, run: Path, config: RunConfig) -> None:
    """Send the rewards that are still in the folder of ``run`` to their participants' nodes.

    A reward is removed once its participant has stored it. Raises UserError if any is left.
    """
    record = load_record(run)
    roster = Roster(
        None, load_roster(Path(config.roster).expanduser() if config.roster else run / ROSTER_FILE)
    )
    waiting = sorted(path.name for path in (run / REWARDS_FOLDER).glob("*") if path.is_dir())
    waiting = [name for name in waiting if name in roster.bound]
    if not waiting:
        raise UserError(f"All rewards of {run} have been delivered.")
    exchange = Exchange(grid)
    gather(
        grid,
        exchange,
        roster,
        # Nodes of other participants may be connected as well.
        expected=len(roster.bound),
        timeout_s=config.join_timeout_s,
        on_joined=lambda count, left: logger.info("%d joined, %.0f s left", count, left),
    )
    there = [name for name in waiting if name in roster.storing]

    def task(name: str) -> RewardTask:
        folder = run / REWARDS_FOLDER / name
        card = load_card(folder)
        return RewardTask(card.to_json(), load_tensors(folder, card))

    failed = deliver(exchange, roster.nodes, task, there, config.round_timeout_s)
    failed |= dict.fromkeys((name for name in waiting if name not in there), "it is not connected")
    delivered = [name for name in waiting if name not in failed]
    for name in delivered:
        shutil.rmtree(run / REWARDS_FOLDER / name)
    failures = tuple(
        failure
        for failure in record.failures
        if not (failure.participant in delivered and failure.reason.startswith(UNDELIVERED))
    )
    record = replace(record, failures=failures)
    save_record(run, record)
    (run / REPORT_FILE).write_text(render_page(record), encoding="utf-8")
    if failed:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in failed.items())
        raise UserError(f"{len(failed)} of {len(waiting)} rewards were not delivered: {reasons}.")
