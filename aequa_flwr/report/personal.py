"""A page for one participant, about its own place in a run and nobody else's.

What another participant brought or received must not be on it, nor what it could be worked out
from. So these are left out, however harmless they look in a large federation:

- every measure over all (accuracy of the full model, Pearson, MCG, CGS, IPR), ranks and numbers
  of participants: between two, a mean and one's own number give the other's;
- the number of all training examples, the mean loss and the number trained of each round: the
  same subtraction;
- the accuracies of other widths: the widest is what the largest contributor has;
- contributions as parts of the largest, and contributions that are scores: with one's own width,
  which is such a part, the score gives the largest score, and without the others' it says
  nothing;
- the reasons of failures and of how the run ended: they are texts that may name others, or, for
  an update that was too long, say what is usual among them;
- settings but for the names of the data, the method and the contribution: a partition, a
  behaviour or a seed can say who holds what.

What a participant knows anyway cannot be kept from it: where a width is in proportion to a number
that is its own, such as its examples, it can work out the largest of those numbers.
"""

from collections.abc import Callable, Sequence
from html import escape

from aequa_flwr.errors import UserError
from aequa_flwr.options import kind_of
from aequa_flwr.report.absence import rounds_text
from aequa_flwr.report.chart import Chart, axis, figure
from aequa_flwr.report.document import note, render_document, section, table
from aequa_flwr.report.method import about
from aequa_flwr.report.page import run_title
from aequa_flwr.report.tables import (
    MEASURE_COLUMNS,
    MISSING,
    contribution_text,
    loses,
    percent,
    points,
)
from aequa_flwr.report.words import duration, moment
from aequa_flwr.results import UNDELIVERED, HeldOutAccuracies, ParticipantRecord, RunRecord

# Beginnings of reasons that can be told without their rest, and how.
_TOLD = {
    "no reply in time": "no reply came in time",
    "its update has norm": "its update was longer than that round allowed",
    "no standalone model arrived": "its standalone model did not arrive",
    "it never took part": "it never took part in a round",
    UNDELIVERED: "its reward was not delivered; ask the operator to send it again",
}
_NOT_TOLD = "its reply could not be used; the operator's record has the reason"
_ALONE, _REWARD = "Standalone model", "Reward"


class UnknownParticipantError(UserError):
    """A name that nobody in the run has."""


def render_personal_page(record: RunRecord, name: str) -> str:
    """Return the page of the participant ``name``; UserError if nobody in the run is called so."""
    index = next((i for i, p in enumerate(record.participants) if p.name == name), None)
    if index is None:
        raise UnknownParticipantError(f"No participant of this run is called {name!r}.")
    own = record.participants[index]
    sections = (
        _header(record, own),
        _place(record, own),
        _comparison(own),
        _rounds(record, index),
        _check(record, own),
    )
    return render_document(f"{name}: {run_title(record)}", sections, sorts=False)


def _header(record: RunRecord, own: ParticipantRecord) -> str:
    facts: list[str] = [run_title(record), record.status]
    if record.times.started:
        facts.append(f"started {moment(record.times.started)}")
    if record.times.seconds:
        facts.append(f"took {duration(record.times.seconds)}")
    css = "failed" if loses(own) else escape(record.status)
    return (
        f'<header>\n<h1>{escape(own.name)}</h1>\n<p class="verdict {css}">'
        f'{escape(personal_verdict(record, own))}</p>\n<p class="facts">'
        f"{escape(' · '.join(facts))}</p>\n</header>\n"
    )


def personal_verdict(record: RunRecord, own: ParticipantRecord) -> str:
    """Return what the participant receives, in one sentence."""
    if own.width is None:
        ended = "" if record.status == "completed" else f"; the run is {record.status}"
        return f"{own.name} has no reward from this run{ended}."
    reward = "a model of its own" if not about(record).sub_networks else _share(own.width)
    if own.reward_accuracy is None:
        return f"{own.name} receives {reward}; its accuracy was not measured."
    text = f"{own.name} receives {reward} with an accuracy of {percent(own.reward_accuracy)}"
    if own.gain is None:
        return f"{text}; it has no standalone model to compare with."
    if own.gain == 0:
        return f"{text}, the same as its standalone model."
    difference = f"{100 * abs(own.gain):.2f} percentage points"
    return f"{text}, {difference} {'more' if own.gain > 0 else 'less'} than its standalone model."


def _share(width: float) -> str:
    return "the full model" if width == 1 else f"a sub-model of width {width:.3f}"


def _place(record: RunRecord, own: ParticipantRecord) -> str:
    """Return its own numbers with what each means."""
    untouched = own.held_out or HeldOutAccuracies(None, float("nan"), None)
    unit = record.contribution_unit
    known = _row("Examples", "as reported when it joined", f"{own.num_examples:,}")
    rows = ""
    if unit in ("examples", "fraction"):
        contribution = contribution_text(own.contribution, unit)
        known += _row("Contribution", _about_contribution(record), contribution)
    if own.width is not None and about(record).sub_networks:
        meaning = "the fraction of the full network's channels in the reward; 1 is all of them"
        known += _row("Width", meaning, f"{own.width:.3f}")
    if unit == "accuracy":
        meaning, alone = _about_contribution(record), untouched.standalone_accuracy
        rows += _measured("Contribution", meaning, own.contribution, alone)
    else:
        meaning = "of the model that it trained alone"
        rows += _measured(
            "Standalone accuracy", meaning, own.standalone_accuracy, untouched.standalone_accuracy
        )
    meaning = "of the model that it receives"
    rows += _measured("Reward accuracy", meaning, own.reward_accuracy, untouched.reward_accuracy)
    meaning = "reward accuracy minus standalone accuracy, in percentage points (pp)"
    rows += _measured("Gain", meaning, own.gain, untouched.gain, text=points)
    place = section(
        "Contribution and reward", f'<table class="measures">\n<tbody>\n{known}</tbody>\n</table>\n'
    )
    if not rows:
        return place
    head = "".join(f'<th scope="col">{text}</th>' for text in MEASURE_COLUMNS)
    return place + section(
        "Accuracy",
        f'<table class="measures">\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}</tbody>\n</table>\n"
        + note(
            "Accuracy is balanced: every class counts the same. The validation numbers may be "
            "optimistic, because the reward was chosen on the same data. Nothing was chosen on "
            "the held-out data.",
            about(record).says if not about(record).sub_networks else "",
        ),
    )


def _row(what: str, meaning: str, *values: str) -> str:
    """Return a row with a cell for each value."""
    cells = "".join(f"<td>{escape(value)}</td>" for value in values)
    return f'<tr><th scope="row">{what}<small>{escape(meaning)}</small></th>{cells}</tr>\n'


def _measured(
    what: str,
    meaning: str,
    value: float | None,
    held_out: float | None,
    *,
    text: Callable[[float | None], str] = percent,
) -> str:
    texts = text(value), text(held_out)
    return "" if texts == (MISSING, MISSING) else _row(what, meaning, *texts)


def _about_contribution(record: RunRecord) -> str:
    method = kind_of(str(record.config.get("contribution", "standalone")))
    return {
        "accuracy": "the accuracy of the model that it trained alone",
        "examples": "the number of its examples",
    }.get(record.contribution_unit, f"a fraction, assessed by the method {method}")


def _comparison(own: ParticipantRecord) -> str:
    """Return the accuracies of its standalone model and its reward as bars on the same scale."""
    pairs = [
        (label, value)
        for label, value in (
            (_ALONE, own.standalone_accuracy),
            (_REWARD, own.reward_accuracy),
        )
        if value is not None
    ]
    if len(pairs) < 2:
        return ""
    bars = "".join(
        f'<dt>{escape(label)}</dt><dd><meter min="0" max="1" value="{value:.4f}" '
        f'aria-label="{escape(label)}: {percent(value)}"></meter> {percent(value)}</dd>\n'
        for label, value in pairs
    )
    return section("Compared with its standalone model", f'<dl class="bars">\n{bars}</dl>')


def _rounds(record: RunRecord, index: int) -> str:
    """Return which rounds it took part in, at which widths, and what went wrong."""
    total = len(record.participants)
    widths = [(r.server_round, r.widths[index]) for r in record.rounds if len(r.widths) == total]
    trained = [(number, width) for number, width in widths if width is not None]
    missed = [number for number, width in widths if width is None]
    sentences = []
    if widths:
        sentences.append(f"It took part in {len(trained):,} of {len(widths):,} rounds.")
    if missed:
        sentences.append(f"It missed: {rounds_text(missed)}.")
    problems = _problems(record, record.participants[index].name)
    if widths and not problems:
        sentences.append("None of its replies was refused.")
    content = note(*sentences)
    if problems:
        content += table("What went wrong", ("Rounds", "What happened"), problems, css="words")
    return (section("Rounds", content) if content else "") + _drawn_widths(record, trained)


def _problems(record: RunRecord, name: str) -> list[tuple[str, str]]:
    rounds: dict[str, list[int]] = {}
    for failure in record.failures:
        if failure.participant == name:
            known = (text for start, text in _TOLD.items() if failure.reason.startswith(start))
            rounds.setdefault(next(known, _NOT_TOLD), []).append(failure.server_round)
    return [(rounds_text(numbers), told) for told, numbers in rounds.items()]


def _drawn_widths(record: RunRecord, trained: Sequence[tuple[int, float]]) -> str:
    """Return the widths it was trained at over the rounds, if they changed."""
    if len({width for _, width in trained}) < 2 or not about(record).sub_networks:
        return ""
    chart = Chart(
        axis("Round", [number for number, _ in trained], least_step=1, unit=""),
        axis("Width trained at", [width for _, width in trained], unit=""),
    )
    titles = [f"Round {number}: width {width:.3f}" for number, width in trained]
    (first, before), (last, after) = trained[0], trained[-1]
    description = (
        f"Line of the width that it was trained at over {len(trained):,} rounds: {before:.3f} in "
        f"round {first}, {after:.3f} in round {last}."
    )
    drawing = chart.svg(description, [chart.dotted_line(trained, "gains", titles)])
    return figure("Width over the rounds", drawing, [("gains", "━━", "width trained at")])


def _check(record: RunRecord, own: ParticipantRecord) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in sorted(record.versions.items()))
    reward = (
        "<p>The folder of the reward has a <code>card.json</code> with the same width and "
        "accuracy, and the checksum of the model's file. You can load the model and measure it on "
        'your own data without a server:</p>\n<pre tabindex="0"><code>from '
        "aequa_flwr import load_reward\n\n"
        f"model = load_reward({escape(repr('rewards/' + own.name))})</code></pre>\n"
        if own.width is not None
        else ""
    )
    return section(
        "How to check it",
        f"{reward}<p>This page is about one participant and reveals nothing about the others. The "
        "operator has the report of the whole run, which shows how all were treated."
        "</p>\n" + note(f"Made with {versions}." if versions else ""),
    )
