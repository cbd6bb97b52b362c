"""The paper's tables with our numbers beside the paper's; to Markdown and CSV."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from aequa_flwr.reproduction.plans import HELD_OUT_PLANS, PLANS, Plan
from aequa_flwr.reproduction.published import METHODS, Published, Value, best_of
from aequa_flwr.reproduction.runs import (
    ACCURACY,
    CGS,
    MCG,
    PEARSON,
    Measure,
    Outcome,
    Place,
    Runs,
    approach_name,
    measure_runs,
    paper_order,
)
from aequa_flwr.reproduction.split import KEPT_MEASURES, WAYS

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~$&])")
_CSV_COLUMNS = (
    *("table", "source", "data set", "partition", "approach", "measure", "state", "ours"),
    *("ours spread", "seeds", "best of ours", "paper", "paper spread"),
)


@dataclass(frozen=True)
class Cell:
    """Our number and the paper's, and whether each is the best of those it compares with."""

    place: Place
    approach: str
    outcome: Outcome
    paper: Value | None = None
    best: bool = False
    papers_best: bool = False


@dataclass(frozen=True)
class Wins:
    """How often a column is the best in the ``rows`` that have all methods, ours and the paper's.

    ``columns`` have a count of ours and one of the paper's; None where nothing is ranked.
    """

    rows: int
    columns: tuple[tuple[int, int] | None, ...]


@dataclass(frozen=True)
class Table:
    """A table of the paper; ``source`` names it, ``about`` says what the numbers are.

    ``absent`` are data sets that the paper has here and nobody ran.
    """

    title: str
    source: str
    about: str
    head: tuple[str, ...]
    rows: tuple[tuple[tuple[str, ...], tuple[Cell, ...]], ...]
    wins: Wins | None = None
    absent: tuple[str, ...] = ()


TRAINING_TIME_MEASURES = (ACCURACY, PEARSON, MCG, CGS)


def make_tables(runs: Runs, published: Published) -> tuple[Table, ...]:
    """Return all tables of the paper, whatever of them was run."""
    return (
        *(_compare(plan, runs, published) for plan in PLANS),
        compare_training_time(runs),
        _compare_kept(runs),
        *(_compare(plan, runs, published) for plan in HELD_OUT_PLANS),
    )


def _compare(plan: Plan, runs: Runs, published: Published) -> Table:
    # Without a number of the paper's, a row of which nothing was run says nothing.
    places = (
        _places(plan.experiment, runs, published)
        if plan.source
        else list(runs.places(plan.experiment))
    )
    grid = [_cells(plan, place, runs, published) for place in places]
    present = {place.dataset for place in places}
    several = len(plan.measures) > 1
    head = tuple(
        _column(plan, method, measure, several)
        for method in plan.methods
        for measure in plan.measures
    )
    return Table(
        plan.title,
        plan.source,
        plan.about,
        ("Data set", "Partition", *head),
        tuple((place.names, tuple(row)) for place, row in zip(places, grid, strict=True)),
        _count_wins(grid, plan.ranked),
        tuple(
            Place(dataset, "").names[0]
            for dataset in published.datasets(plan.experiment)
            if dataset not in present
        ),
    )


def _column(plan: Plan, method: str, measure: Measure, several: bool) -> str:
    if len(plan.methods) == 1:
        return measure.name
    return f"{METHODS[method]} {measure.name}" if several else METHODS[method]


def _places(experiment: str, runs: Runs, published: Published) -> list[Place]:
    """Return every row of the data sets that were run: the paper's, and others that were run."""
    found = runs.places(experiment)
    papers = {
        Place(dataset, partition)
        for dataset in {place.dataset for place in found}
        for partition in published.partitions(experiment, dataset)
    }
    return sorted({*papers, *found}, key=paper_order)


def _cells(plan: Plan, place: Place, runs: Runs, published: Published) -> list[Cell]:
    cells = []
    for method in plan.methods:
        records = runs.find(plan.experiment, place, method)
        for measure in plan.measures:
            cell = Cell(place, method, measure_runs(records, measure, held_out=plan.held_out))
            row = published.row(plan.experiment, measure.key, *place)
            if row is not None and not plan.held_out:
                paper, best = row.values.get(method), method in row.best
                cell = replace(cell, paper=paper, papers_best=best)
            cells.append(cell)
    return mark_best(cells, plan.ranked)


def mark_best(cells: Sequence[Cell], ranked: Iterable[str]) -> list[Cell]:
    """Return ``cells`` with the best of each ranked measure marked, all of them in a tie.

    What looks the same is the same: values compare as they are shown. One alone is no best.
    """
    best: dict[str, frozenset[str]] = {}
    for key in ranked:
        shown = {
            cell.approach: round(mean, cell.outcome.measure.digits)
            for cell in cells
            if cell.outcome.measure.key == key and (mean := cell.outcome.mean) is not None
        }
        best[key] = best_of(shown, key) if len(shown) > 1 else frozenset()
    return [
        replace(cell, best=cell.approach in best.get(cell.outcome.measure.key, ()))
        for cell in cells
    ]


def _count_wins(grid: Sequence[Sequence[Cell]], ranked: Iterable[str]) -> Wins | None:
    """Return how often each is the best; None if no row has all methods, ours and the paper's."""
    complete = [row for row in grid if all(cell.outcome.values and cell.paper for cell in row)]
    counts = [
        (sum(cell.best for cell in column), sum(cell.papers_best for cell in column))
        if column[0].outcome.measure.key in ranked
        else None
        for column in zip(*complete, strict=True)
    ]
    return Wins(len(complete), tuple(counts)) if any(counts) else None


def training_time_cells(place: Place, runs: Runs) -> dict[str, list[Cell]]:
    """Return the four measures of each approach at ``place``, the best of each marked.

    The other methods and Aequa's post-training rewards are those of the main experiment.
    """
    rewarded = [a for a in runs.approaches("training-time", place) if "+" in a]
    approaches = [*METHODS, *rewarded]
    cells = [
        Cell(place, approach, measure_runs(runs.find("training-time", place, approach), measure))
        for approach in approaches
        for measure in TRAINING_TIME_MEASURES
    ]
    marked = mark_best(cells, [measure.key for measure in TRAINING_TIME_MEASURES])
    return {a: [cell for cell in marked if cell.approach == a] for a in approaches}


def compare_training_time(runs: Runs) -> Table:
    """Return training-time rewards beside all else, a row for each approach."""
    return Table(
        "Training-time rewards",
        "Figures 3 and 4, which have no numbers",
        "Aequa allocates rewards after training; Aequa + a contribution method limits participants "
        "while training. Accuracy in per cent, Pearson against standalone accuracies, gains in "
        "percentage points. The paper's figures are for CIFAR-10, homogeneous and with quantity "
        "skew. It says that Aequa is best in all measures, Aequa + CGSV second, and Aequa + "
        "ShapFed comparable.",
        ("Data set", "Partition", "Approach", *(m.name for m in TRAINING_TIME_MEASURES)),
        tuple(
            ((*place.names, approach_name(approach)), tuple(cells))
            for place in runs.places("training-time")
            for approach, cells in training_time_cells(place, runs).items()
        ),
        absent=() if runs.places("training-time") else ("CIFAR-10",),
    )


def _compare_kept(runs: Runs) -> Table:
    """Return what participants could have kept, a row for each way to reward."""
    rows = []
    for place in runs.places("exposed"):
        cells = [
            Cell(place, way, measure_runs(runs.find("exposed", place, way), measure))
            for way in WAYS
            for measure in KEPT_MEASURES
        ]
        marked = mark_best(cells, ["kept-pearson"])
        rows += [
            ((*place.names, WAYS[way]), tuple(cell for cell in marked if cell.approach == way))
            for way in WAYS
        ]
    return Table(
        "What each could have kept",
        "",
        "Without trusted hardware a participant keeps the best model that it was ever sent. "
        "Pearson between the accuracies of these models and standalone ones, their mean gain and "
        "its spread in percentage points, and how much better than the reward the worst of them "
        "is. The best level is the most accurate model of the run in per cent. Earned rewards are "
        "allocated in every round, Algorithm 2 gives widths in proportion to contributions.",
        ("Data set", "Partition", "Rewards", *(measure.name for measure in KEPT_MEASURES)),
        tuple(rows),
        absent=() if rows else ("MNIST", "Fashion-MNIST"),
    )


def escape_markdown(text: str) -> str:
    """Return ``text`` as one line that Markdown shows as it is, in a table too."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def to_markdown(table: Table) -> str:
    """Return the table alone, without its title and words; empty if it has no rows."""
    if not table.rows:
        return ""
    labels = len(table.rows[0][0])
    lines = [
        table.head,
        ("---",) * labels + ("---:",) * (len(table.head) - labels),
        *(
            (*map(escape_markdown, names), *(_cell_text(cell, most) for cell in cells))
            for names, cells in table.rows
            for most in [max(len(cell.outcome.values) for cell in cells)]
        ),
    ]
    if table.wins is not None:
        label = f"Times best, of {table.wins.rows}"
        lines.append((label, *[""] * (labels - 1), *_wins(table.wins)))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _wins(wins: Wins) -> list[str]:
    most = max(counts[0] for counts in wins.columns if counts is not None)
    return [
        "" if counts is None else f"{_bold(str(counts[0]), counts[0] == most)} ({counts[1]})"
        for counts in wins.columns
    ]


def _cell_text(cell: Cell, most: int) -> str:
    outcome = cell.outcome
    text = _bold(outcome.text, cell.best)
    if outcome.values and (notes := _notes(outcome, most)):
        text += f" \\[{', '.join(notes)}\\]"
    return text if cell.paper is None else f"{text} ({cell.paper.text})"


def _bold(text: str, bold: bool) -> str:
    return f"**{text}**" if bold else text


def _notes(outcome: Outcome, most: int) -> list[str]:
    notes = []
    if len(outcome.values) < most:
        notes.append(f"{len(outcome.values)} of {most} seeds")
    if outcome.num_undefined:
        notes.append(f"{outcome.num_undefined} undefined")
    if outcome.num_failed:
        notes.append(f"{outcome.num_failed} failed")
    return notes


def to_csv(tables: Iterable[Table]) -> str:
    """Return every cell of ``tables`` as a line, in full precision; what is unknown is empty."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_CSV_COLUMNS)
    for table in tables:
        for _, cells in table.rows:
            writer.writerows(_csv_line(table, cell) for cell in cells)
    return file.getvalue()


def _csv_line(table: Table, cell: Cell) -> list[object]:
    outcome, paper = cell.outcome, cell.paper
    return [
        table.title,
        table.source,
        *cell.place,
        cell.approach,
        outcome.measure.key,
        outcome.state,
        outcome.mean,
        outcome.spread,
        len(outcome.values),
        int(cell.best),
        None if paper is None else paper.mean,
        None if paper is None else paper.spread,
    ]
