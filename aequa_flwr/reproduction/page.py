"""docs/results.md: does it reproduce the paper? Made from the results file and nothing else."""

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from aequa_flwr.files import write_whole
from aequa_flwr.reproduction.figures import draw_figures, make_figures
from aequa_flwr.reproduction.goals import Goal, judge
from aequa_flwr.reproduction.published import DATASETS, METHODS, Published, load_published
from aequa_flwr.reproduction.results import MACHINE, Line
from aequa_flwr.reproduction.runs import (
    ACCURACY,
    PEARSON,
    Measure,
    Place,
    Runs,
    approach_name,
    approach_of,
    measure_runs,
    place_of,
    seed_of,
    sort_runs,
)
from aequa_flwr.reproduction.tables import Table, escape_markdown, make_tables, to_csv, to_markdown
from aequa_flwr.results import RunRecord

_LINE_LENGTH = 120
_CSV_FILE = "tables.csv"
_FORM = (
    "A cell shows **ours (the paper's)**: the mean ± standard deviation over seeds, or the value "
    "of a single seed. Ours is the sample standard deviation (ddof = 1); the paper does not say "
    "which it uses.",
    "\\[3 of 5 seeds\\]: fewer seeds than other cells of the row.",
    "Bold: the best of ours in its row, or several that look the same. Mean gains are not ranked, "
    "because giving everybody the full model would win.",
    "The last row counts how often a method is best and, in brackets, how often it is bold in the "
    "paper. It counts only rows in which all methods have a value.",
    "*undefined*: one side of a correlation is the same for all participants, or the run lacks "
    "what the measure needs.",
)
_JUDGED = (
    "Goals 1 and 2 are judged in every partition that Aequa was run on, goal 3 against every "
    "method that was run there and has a correlation. All use means over seeds and validation "
    "data, as in the paper. A failed run meets no goal."
)
_GLANCE = (
    "Means over seeds on validation data, with the paper's means in brackets. A correlation is "
    "undefined where a method gives every participant the same model; means are over the seeds "
    "that have one."
)


def render_results(
    lines: Sequence[Line],
    *,
    command: str,
    figures: Mapping[str, str],
    notes: str = "",
    numbers: str = "",
) -> str:
    """Return the page in Markdown; the same lines give the same page.

    ``command`` is how the results were made. ``figures`` has the link to each file of
    ``draw_figures`` that the page is to show. ``notes`` say why results differ from the paper's,
    in Markdown, and are included as they are. ``numbers`` is the link to the tables as CSV.
    """
    runs, published = sort_runs(lines), load_published()
    goals = judge(runs, published)
    sections = [
        "# Does it reproduce the paper?",
        _answer(goals, runs, published),
        _misses(goals),
        _glance(runs, published),
        _reasons(goals, notes),
        _how(lines, command, published),
        f"## Tables\n\n{_list((*_FORM, *_where(numbers)))}",
        *(_table(table) for table in make_tables(runs, published)),
        _figures(runs, figures),
        _failed(lines),
        _replaced(runs),
    ]
    text = "\n\n".join(section.strip() for section in sections if section) + "\n"
    # A path in an error's text may hold half a character, which no file could be written with.
    return text.encode("utf-8", "replace").decode("utf-8")


def save_page(results: Path, lines: Sequence[Line], *, command: str) -> Path:
    """Write the page of a results file beside it, and return where it is.

    x/results.jsonl gives x/results.md; figures and the tables as CSV are in x/results/. Notes are
    taken from x/results-notes.md, if there is one.
    """
    page, folder = results.with_suffix(".md"), results.with_suffix("")
    notes = results.with_name(f"{results.stem}-notes.md")
    figures = draw_figures(lines)
    folder.mkdir(exist_ok=True)
    for name, svg in figures.items():
        write_whole(folder / name, svg)
    write_whole(folder / _CSV_FILE, to_csv(make_tables(sort_runs(lines), load_published())))
    text = render_results(
        lines,
        command=command,
        figures={name: f"{folder.name}/{name}" for name in figures},
        notes=notes.read_text(encoding="utf-8") if notes.exists() else "",
        numbers=f"{folder.name}/{_CSV_FILE}",
    )
    write_whole(page, text)
    return page


def _where(numbers: str) -> tuple[str, ...]:
    return (f"[All cells as CSV]({numbers}), in full precision.",) if numbers else ()


def _list(items: Iterable[str]) -> str:
    return "\n".join(
        textwrap.fill(
            item,
            _LINE_LENGTH,
            initial_indent="- ",
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for item in items
    )


def _wrap(text: str) -> str:
    return textwrap.fill(text, _LINE_LENGTH, break_long_words=False, break_on_hyphens=False)


def _answer(goals: Sequence[Goal], runs: Runs, published: Published) -> str:
    rows = [("", "Goal", "Holds", "In"), ("---",) * 4]
    for number, goal in enumerate(goals, 1):
        name = escape_markdown(goal.sentence)
        rows.append((str(number), name, f"**{goal.answer}**", escape_markdown(_within(goal))))
    return f"{_wrap(_short_answer(goals, runs, published))}\n\n{_rows(rows)}\n\n{_wrap(_JUDGED)}"


def _within(goal: Goal) -> str:
    """Return in how many comparisons a goal holds; nothing if there are none."""
    total = len(goal.verdicts)
    good = total - len(goal.failing)
    if goal.remedied:
        return f"{good} of {total}; {good + len(goal.remedied)} with p_min = 0.1 where it fails"
    return f"{good} of {total}" if total else ""


def _short_answer(goals: Sequence[Goal], runs: Runs, published: Published) -> str:
    judged = (verdict.place for goal in goals for verdict in goal.verdicts)
    if not any(_is_papers(place, published) for place in judged):
        return "There is no answer yet: none of the paper's experiments was run."
    held = sum(goal.answer == "yes" for goal in goals)
    made = sum(len(goal.verdicts) for goal in goals)
    good = made - sum(len(goal.failing) for goal in goals)
    total = sum(len(published.partitions("main", d)) for d in published.datasets("main"))
    whole, some = (len(_places_run(runs, published, rule)) for rule in (all, any))
    methods = "all" if whole == some else f"{whole} of them"
    return (
        f"**{_in_a_word(good, made)}: {good} of {made} comparisons hold.** {held} of {len(goals)} "
        f"goals {'holds' if held == 1 else 'hold'} in every comparison. We ran {some} of the "
        f"{total} rows of the paper's large tables, {methods} with its {len(METHODS)} methods. "
        "This page claims nothing about the other rows."
    )


def _in_a_word(good: int, made: int) -> str:
    if good == made:
        return "Yes, where we ran it"
    if 10 * good >= 9 * made:
        return "Almost everywhere we ran it"
    return "In part" if 2 * good > made else "No"


def _glance(runs: Runs, published: Published) -> str:
    """Return accuracy and correlation of every partition, the paper's beside ours."""
    places = [place for place in runs.places("main") if runs.find("main", place, "aequa")]
    if not places:
        return ""
    others = [method for method in METHODS if method != "aequa"]
    names = [f"Pearson of {METHODS[method]}" for method in others]
    head = ("Data set", "Partition", "Seeds", "Accuracy, %", "Pearson", *names)
    rows = [head, ("---",) * 2 + ("---:",) * (len(head) - 2)]
    for place in places:
        records = runs.find("main", place, "aequa")
        ours = [_with_papers(records, place, measure, published) for measure in (ACCURACY, PEARSON)]
        theirs = [_mean(runs.find("main", place, method), PEARSON) for method in others]
        labels = (*map(escape_markdown, place.names), str(len(records)))
        rows.append((*labels, *ours, *theirs))
    return f"## At a glance\n\n{_wrap(_GLANCE)}\n\n{_rows(rows)}"


def _with_papers(
    records: Sequence[RunRecord], place: Place, measure: Measure, published: Published
) -> str:
    paper = published.value("main", measure.key, *place, "aequa")
    ours = _mean(records, measure)
    return ours if paper is None else f"{ours} ({_first(paper.text)})"


def _mean(records: Sequence[RunRecord], measure: Measure) -> str:
    """Return the mean alone, or in words why there is none."""
    return _first(measure_runs(records, measure).text)


def _first(text: str) -> str:
    """Return a mean without its spread."""
    return text.partition(" ±")[0]


def _places_run(
    runs: Runs, published: Published, rule: Callable[[Iterable[bool]], bool]
) -> list[tuple[str, str]]:
    """Return the rows of the paper in which all, or any, of its methods were completed."""
    return [
        place
        for place in runs.places("main")
        if _is_papers(place, published)
        and rule(
            any(record.status == "completed" for record in runs.find("main", place, method))
            for method in METHODS
        )
    ]


def _is_papers(place: Place, published: Published) -> bool:
    return place.partition in published.partitions("main", place.dataset)


def _rows(rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _misses(goals: Sequence[Goal]) -> str:
    missed = [
        (str(number), *verdict.place.names, verdict.ours, verdict.against)
        for number, goal in enumerate(goals, 1)
        for verdict in goal.failing
    ]
    if not missed:
        return ""
    head = [("Goal", "Data set", "Partition", "Ours", "Against"), ("---",) * 5]
    rows = [*head, *(tuple(map(escape_markdown, row)) for row in missed)]
    return f"Where a goal does not hold:\n\n{_rows(rows)}"


def _reasons(goals: Sequence[Goal], notes: str) -> str:
    unexplained = "The reason is not known yet." if any(goal.failing for goal in goals) else ""
    words = notes.strip() or unexplained
    return f"## Where it differs, and why\n\n{words}" if words else ""


def _how(lines: Sequence[Line], command: str, published: Published) -> str:
    if not lines:
        return "## How it was made\n\nThe results file has no runs."
    hours = sum(line.record.times.seconds for line in lines) / 3600
    seeds = ", ".join(map(str, sorted({seed_of(line.record) for line in lines})))
    packages = sorted({item for line in lines for item in line.record.versions.items()})
    versions = ", ".join(f"{name} {version}" for name, version in packages)
    words = (
        f"{len(lines):,} runs took {hours:.1f} hours in total. Seeds: {seeds} (the paper has "
        f"five). Versions: {escape_markdown(versions)}."
    )
    fence = "````" if "```" in command else "```"
    return (
        f"## How it was made\n\n{fence}sh\n{command.strip()}\n{fence}\n\n{_wrap(words)}\n\n"
        f"{_settings(lines, published)}"
    )


def _settings(lines: Sequence[Line], published: Published) -> str:
    """Return what each experiment was run with on each data set, the paper's rounds beside ours."""
    groups: dict[tuple[str, str], list[RunRecord]] = {}
    for line in lines:
        key = (line.experiment, place_of(line.record).dataset)
        groups.setdefault(key, []).append(line.record)
    names = ("Experiment", "Data set", "Network", "Participants", "Training examples")
    rows = [(*names, "Rounds (paper's)", "Seeds", "Runs", "Hours"), ("---",) * 9]
    for (experiment, dataset), records in sorted(groups.items()):
        of_paper = f" ({published.rounds[dataset]})" if dataset in published.rounds else ""
        examples = {f"{record.data.num_train:,}" for record in records if record.data is not None}
        rows.append(
            (
                escape_markdown(experiment),
                escape_markdown(DATASETS.get(dataset, dataset)),
                _values(records, "network"),
                _values(records, "participants"),
                "; ".join(sorted(examples)),
                _values(records, "rounds") + of_paper,
                _values(records, "seed"),
                str(len(records)),
                f"{sum(record.times.seconds for record in records) / 3600:.1f}",
            )
        )
    return _rows(rows)


def _values(records: Iterable[RunRecord], key: str) -> str:
    """Return all values of a setting, numbers in their order."""
    found = {record.config[key] for record in records if key in record.config}
    ordered = sorted(found, key=lambda value: (isinstance(value, str), value))
    return escape_markdown(", ".join(map(str, ordered)))


def _table(table: Table) -> str:
    source = f" (paper: {table.source})" if table.source else ""
    content = to_markdown(table) or "Not run."
    parts = [
        f"### {escape_markdown(table.title)}{source}",
        _wrap(escape_markdown(table.about)),
        content.strip(),
    ]
    if table.rows and table.absent:
        parts.append(f"Not run at all: {', '.join(table.absent)}.")
    return "\n\n".join(parts)


def _figures(runs: Runs, links: Mapping[str, str]) -> str:
    shown = [figure for figure in make_figures(runs) if figure.name in links]
    if not shown:
        return ""
    parts = ["## Figures"]
    for figure in shown:
        title = escape_markdown(figure.title)
        parts.append(f"### {title}\n\n![{title}]({links[figure.name]})")
        parts.append(_wrap(escape_markdown(figure.about)))
    return "\n\n".join(parts)


def _failed(lines: Sequence[Line]) -> str:
    items = [_item(line, line.record.reason) for line in lines if line.record.status != "completed"]
    return "## Failed runs\n\n" + "\n".join(items) if items else ""


def _replaced(runs: Runs) -> str:
    if not runs.replaced:
        return ""
    words = (
        "The tables show one result for each experiment, data set, partition and method: the mean "
        "over the seeds of the settings that come last in the results file. These runs had other "
        "settings:"
    )
    items = "\n".join(_item(line, _other_settings(line, runs)) for line in runs.replaced)
    return f"## Runs that are not shown\n\n{_wrap(words)}\n\n{items}"


def _other_settings(line: Line, runs: Runs) -> str:
    """Return what a run that is not shown was run with, where the one that is shown was not."""
    record = line.record
    (shown, *_) = runs.find(line.experiment, place_of(record), approach_of(record))
    return ", ".join(
        f"{key} = {value}"
        for key, value in record.config.items()
        if key not in (*MACHINE, "seed") and shown.config.get(key) != value
    )


def _item(line: Line, reason: str) -> str:
    record = line.record
    what = (
        f"{line.experiment}, {', '.join(place_of(record).names)}, "
        f"{approach_name(approach_of(record))}, seed {seed_of(record)}"
    )
    return f"- {escape_markdown(f'{what}: {reason}' if reason else what)}"
