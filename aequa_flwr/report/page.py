"""One self-contained HTML page about a run: no script, and nothing is loaded from anywhere."""

from collections.abc import Sequence
from html import escape

from aequa_flwr.record import RunRecord
from aequa_flwr.report import figures, history
from aequa_flwr.report.baselines import is_baseline, method_name
from aequa_flwr.report.style import CSS
from aequa_flwr.report.tables import (
    MEASURE_COLUMNS,
    measure_rows,
    participant_columns,
    participant_rows,
)
from aequa_flwr.report.words import about_measures, about_participants, verdict

_MEASURE_WORDS = {
    "Accuracy": "How often the full model is right, each class counting the same. Every reward "
    "is a part of this model.",
    "Pearson": "How closely rewards follow contributions: 1 is in perfect proportion, 0 not at "
    "all, below 0 the wrong way round.",
    "Pearson (alone)": "How closely rewards follow what participants reach alone, in the same way.",
    "Pearson (width)": "How closely the widths follow contributions, in the same way; nothing "
    "has to be measured for it.",
    "MCG": "Mean collaboration gain: how much more accurate a reward is than what its "
    "participant brought, in percentage points.",
    "CGS": "Collaboration gain spread: how far apart the gains are (standard deviation); 0 means "
    "everybody gains the same.",
    "IPR": "Incentivized participation rate: the share of participants that do not lose by "
    "taking part.",
}
# Contributions that are no accuracies are not what gains compare with.
_OTHER_UNIT_WORDS = {
    "MCG": "Mean collaboration gain: how much more accurate a reward is than what its "
    "participant has alone, in percentage points.",
}
_BASELINE_WORDS = {
    "Accuracy": "How often the server's model is right, each class counting the same; without a "
    "server the best participant's.",
}
# One bad node can fail every participant in every round; the page must stay readable.
_MOST_FAILURES = 200


def render_page(record: RunRecord) -> str:
    """Return the page of ``record``, whatever state the run is in; always valid UTF-8."""
    title = _title(record)
    sections = (
        _header(record, title),
        _measures(record),
        figures.rewards_against_contributions(record),
        _participants(record),
        f'<div class="pair">{figures.curve(record)}{figures.training(record)}</div>',
        _over_the_rounds(record),
        _failures(record),
        _check(record),
    )
    text = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        # The second fence after the escaping: nothing runs and nothing is fetched.
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{escape(title)}</title>\n<style>{CSS}</style>\n</head>\n<body>\n<main>\n"
        f"{''.join(sections)}</main>\n</body>\n</html>\n"
    )
    # A path in an error's text may hold half a character, which no file could be written with.
    return text.encode("utf-8", "replace").decode("utf-8")


def _title(record: RunRecord) -> str:
    dataset = record.data.dataset if record.data else record.config.get("dataset", "unknown data")
    return f"{method_name(record)} run on {dataset}"


def _header(record: RunRecord, title: str) -> str:
    facts: list[str] = [record.status]
    if record.data:
        facts.append(
            f"{record.data.num_train:,} training, {record.data.num_validation:,} validation and "
            f"{record.data.num_held_out:,} held-out examples"
        )
    if num_evaluations := sum(r.num_evaluations for r in record.rounds):
        facts.append(f"{num_evaluations:,} models measured to assess contributions")
    if record.times.started:
        facts.append(f"started {record.times.started}")
    if record.times.seconds:
        facts.append(f"took {_duration(record.times.seconds)}")
    return (
        f'<header>\n<h1>{escape(title)}</h1>\n<p class="verdict {escape(record.status)}">'
        f'{escape(verdict(record))}</p>\n<p class="facts">{escape(" · ".join(facts))}</p>\n'
        "</header>\n"
    )


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _measures(record: RunRecord) -> str:
    if record.measures is None:
        return ""
    columns = (escape(name).replace(" (", "<br>(") for name in MEASURE_COLUMNS)
    head = "".join(f'<th scope="col">{column}</th>' for column in columns)
    other = {} if record.contribution_unit == "accuracy" else _OTHER_UNIT_WORDS
    words = {**_MEASURE_WORDS, **other, **(_BASELINE_WORDS if is_baseline(record) else {})}
    body = "".join(
        f'<tr><th scope="row">{name}<small>{words[name]}</small></th>'
        f"<td>{validation}</td><td>{held_out}</td></tr>\n"
        for name, validation, held_out in measure_rows(record)
    )
    notes = "\n".join(f'<p class="note">{escape(note)}</p>' for note in about_measures(record))
    return _section(
        "How fair it is",
        f'<table class="measures">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n'
        f"</table>\n{notes}",
    )


def _participants(record: RunRecord) -> str:
    if not record.participants:
        return _section("Participants", "<p>No participant joined.</p>")
    return _section(
        f"Participants ({len(record.participants):,})",
        f'<p class="note">{escape(about_participants(record))}</p>\n'
        + _table("Participants", participant_columns(record), participant_rows(record)),
    )


def _over_the_rounds(record: RunRecord) -> str:
    drawn = history.contributions(record) + history.widths(record)
    return f'<div class="pair">{drawn}</div>' if drawn else ""


def _failures(record: RunRecord) -> str:
    if not record.failures:
        return ""
    rows = [
        (str(f.server_round), f.participant, f.reason) for f in record.failures[:_MOST_FAILURES]
    ]
    left_out = len(record.failures) - len(rows)
    more = f"<p>{left_out:,} more are in record.json.</p>" if left_out else ""
    return _section(
        f"Failures ({len(record.failures):,})",
        '<p class="note">Who could not take part in what. Round 0 is before training.</p>\n'
        + _table("Failures", ("Round", "Participant", "Reason"), rows, css="words")
        + more,
    )


def _check(record: RunRecord) -> str:
    seed = escape(str(record.config.get("seed", "not recorded")))
    config = [(key, str(value)) for key, value in sorted(record.config.items())]
    versions = sorted(record.versions.items())
    return _section(
        "How to check it",
        "<p>Run it again with this configuration and these versions. The seed is "
        f"<strong>{seed}</strong>; on the same kind of processor the same seed gives the same "
        "<code>record.json</code>, except for its times. Every number of this page is in that "
        'file.</p>\n<div class="pair">\n'
        + _table("Configuration", ("Configuration", "Value"), config, css="words")
        + _table("Versions", ("Package", "Version"), versions, css="words")
        + "</div>",
    )


def _section(heading: str, content: str) -> str:
    return f"<section>\n<h2>{escape(heading)}</h2>\n{content}\n</section>\n"


def _table(
    name: str, columns: Sequence[str], rows: Sequence[Sequence[str]], css: str = "numbers"
) -> str:
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    # Focusable, or who has no mouse could not scroll it.
    return (
        f'<div class="scroll" role="region" aria-label="{escape(name)}" tabindex="0">'
        f'<table class="{css}">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n'
        "</table></div>\n"
    )
