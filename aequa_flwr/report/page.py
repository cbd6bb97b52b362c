"""One self-contained HTML page about a run: nothing is loaded from anywhere."""

from html import escape

from aequa_flwr.report import figures, history
from aequa_flwr.report.absence import who_was_missing
from aequa_flwr.report.checking import how_to_check
from aequa_flwr.report.document import note, render_document, section, table
from aequa_flwr.report.method import about
from aequa_flwr.report.scatter import rewards_against_contributions
from aequa_flwr.report.tables import (
    MEASURE_COLUMNS,
    measure_rows,
    participant_columns,
    participant_rows,
)
from aequa_flwr.report.words import (
    about_measures,
    about_participants,
    duration,
    moment,
    verdict,
)
from aequa_flwr.results import RunRecord

FAIRNESS = "Fairness"
# The question that a measure answers, and how to read it.
_MEASURE_WORDS = {
    "Accuracy": (
        "How accurate is the full model?",
        "Balanced accuracy: the mean recall over the classes. Every reward is a part of this "
        "model.",
    ),
    "Pearson": (
        "Do rewards follow contributions?",
        "Correlation of rewards and contributions: 1 means all on one rising line, 0 no relation, "
        "below 0 the opposite order.",
    ),
    "Pearson (standalone)": (
        "Do rewards follow standalone accuracies?",
        "The same, with the accuracy of the standalone model as the contribution.",
    ),
    "Pearson (width)": (
        "Do widths follow contributions?",
        "The same for widths; it needs no validation data.",
    ),
    "MCG": (
        "How much do participants gain?",
        "Mean collaboration gain: how much more accurate rewards are than standalone models, in "
        "percentage points (pp).",
    ),
    "CGS": (
        "Do all gain the same?",
        "Collaboration gain spread: the standard deviation of the gains, in percentage points "
        "(pp). 0 means that all gain the same.",
    ),
    "IPR": (
        "How many do not lose?",
        "Incentivized participation rate: the share of participants whose reward is at least as "
        "accurate as their standalone model.",
    ),
}
_BASELINE_WORDS = {
    "Accuracy": (
        "How accurate is the server's model?",
        "Balanced accuracy: the mean recall over the classes. Without a server's model, that of "
        "the best participant.",
    ),
}
_NO_REWARDS = "There is no result yet: rewards are allocated after the last round."


def render_page(record: RunRecord) -> str:
    """Return the page of ``record``, whatever state the run is in; always valid UTF-8."""
    title = run_title(record)
    sections = (
        _header(record, title),
        _measures(record),
        rewards_against_contributions(record),
        _participants(record),
        _side_by_side(
            figures.curve(record),
            history.contributions(record),
            history.widths(record),
            figures.training(record, history.unchanged(record)),
        ),
        who_was_missing(record),
        how_to_check(record),
    )
    return render_document(title, sections)


def run_title(record: RunRecord) -> str:
    """Return the method and the data set of a run."""
    dataset = record.data.dataset if record.data else record.config.get("dataset", "unknown data")
    return f"{about(record).title} run on {dataset}"


def _header(record: RunRecord, title: str) -> str:
    return (
        f'<header>\n<h1>{escape(title)}</h1>\n<p class="verdict {escape(record.status)}">'
        f'{escape(verdict(record))}</p>\n<p class="facts">{escape(" · ".join(_facts(record)))}'
        "</p>\n</header>\n"
    )


def _facts(record: RunRecord) -> list[str]:
    facts: list[str] = [record.status]
    if record.data:
        facts.append(
            f"{record.data.num_train:,} training, {record.data.num_validation:,} validation and "
            f"{record.data.num_held_out:,} held-out examples"
        )
    if num_evaluations := sum(r.num_evaluations for r in record.rounds):
        facts.append(f"{num_evaluations:,} models measured to assess contributions")
    if record.times.started:
        facts.append(f"started {moment(record.times.started)}")
    if times := record.times.resumed:
        often = "" if len(times) == 1 else f" {len(times):,} times, last"
        facts.append(f"interrupted and resumed{often} {moment(times[-1])}")
    if record.times.seconds:
        facts.append(f"took {duration(record.times.seconds)}")
    return facts


def _measures(record: RunRecord) -> str:
    if record.measures is None:
        waits = record.participants and record.status != "completed"
        return section(FAIRNESS, note(_NO_REWARDS)) if waits else ""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in MEASURE_COLUMNS)
    words = {**_MEASURE_WORDS, **(_BASELINE_WORDS if not about(record).sub_networks else {})}
    body = "".join(
        f'<tr><th scope="row">{escape(words[name][0])} <span class="measure">{escape(name)}</span>'
        f"<small>{escape(words[name][1])}</small></th><td>{validation}</td><td>{held_out}</td>"
        "</tr>\n"
        for name, validation, held_out in measure_rows(record)
    )
    return section(
        FAIRNESS,
        f'<table class="measures">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n'
        f"</table>\n{''.join(note(text) for text in about_measures(record))}",
    )


def _participants(record: RunRecord) -> str:
    if not record.participants:
        return section("Participants", "<p>No participant joined.</p>")
    columns, rows = participant_columns(record), participant_rows(record)
    return section(
        f"Participants ({len(record.participants):,})",
        note(about_participants(record))
        + table("Participants", columns, rows, css="numbers sortable"),
    )


def _side_by_side(*drawings: str) -> str:
    drawn = "".join(drawings)
    return f'<div class="pair">{drawn}</div>\n' if drawn else ""
