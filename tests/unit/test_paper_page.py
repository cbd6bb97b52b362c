"""The page and its figures: honest, deterministic, and harmless whatever the names are."""

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from aequa_flwr.paper.figures import draw_figures
from aequa_flwr.paper.page import render_results, save_page
from aequa_flwr.paper.results import Line
from aequa_flwr.record import ParticipantRecord
from tests.unit.paper_lines import line, person

METHODS = ("fedavg-ft", "cgsv", "iafl", "aequa")
CURVE = tuple((0.25 + 0.05 * i, 0.8 + 0.01 * i) for i in range(16))


def people(count: int = 10) -> list[ParticipantRecord]:
    return [person(i, 0.6 + 0.2 * i / count, 0.8 + 0.1 * i / count) for i in range(count)]


def grid(
    dataset: str = "mnist", count: int = 10, partitions: Sequence[str] = ("homogeneous",)
) -> list[Line]:
    """One seed of every method, in which every goal holds."""
    return [
        line(
            dataset=dataset,
            partition=partition,
            method=method,
            accuracy=0.985,
            pearson=0.98 if method == "aequa" else 0.3,
            participants=people(count),
            curve=CURVE if method == "aequa" else ((1.0, 0.9),),
        )
        for partition in partitions
        for method in METHODS
    ]


def training_time(contribution: str) -> Line:
    config = {"reward": "training-time", "contribution": contribution}
    return line("training-time", accuracy=0.9, config=config)


def page(*lines: Line, notes: str = "", **links: str) -> str:
    figures = {name.replace("_", "-") + ".svg": link for name, link in links.items()}
    return render_results(lines, command="aequa paper grid.toml", figures=figures, notes=notes)


def section(text: str, heading: str) -> str:
    return text.split(f"## {heading}\n")[1].split("\n## ", maxsplit=1)[0]


def test_the_answer_comes_first() -> None:
    text = page(*grid())
    assert text.startswith(
        "# Does it reproduce the paper?\n\n**All 3 goals hold wherever measured.**"
    )
    words = " ".join(text.split())
    assert "Comparisons made: 5; that hold: 5." in words
    assert "tables: 55; run with at least one method: 1; with all 4: 1." in words
    assert "| 1 | Aequa's accuracy is at most 1 percentage point" in text
    assert "below the paper's | **yes** | 1 of 1 |" in text
    assert "above that of every other method | **yes** | 3 of 3 |" in text
    assert "Where a goal does not hold" not in text
    assert "Where it differs" not in text


def test_what_does_not_hold_is_listed_with_both_numbers() -> None:
    text = page(line(accuracy=0.9, pearson=0.5), line(method="iafl", pearson=0.6))
    assert "**0 of 3 goals hold wherever measured.** Comparisons made: 3; that hold: 0." in text
    assert "| 1 | MNIST | Homogeneous | 90.00 | the paper's 98.60 ± 0.11 |" in text
    assert "| 2 | MNIST | Homogeneous | 0.500 | the paper's 0.97 ± 0.02 |" in text
    assert "| 3 | MNIST | Homogeneous | 0.500 | 0.600 of IAFL |" in text
    assert "Nobody has looked into it yet." in section(text, "Where it differs, and why")


def test_where_another_method_is_above_a_narrower_p_min_is_told() -> None:
    lines = [line(pearson=0.85), line(method="iafl", pearson=0.9), line("narrow", pearson=0.99)]
    told = "| 3 | MNIST | Homogeneous | 0.850 (with p\\_min = 0.1: 0.990) | 0.900 of IAFL |"
    assert told in page(*lines)
    answer = "above that of every other method | **no** | 0 of 1"
    assert f"{answer}; 1 with p\\_min = 0.1 where it fails |" in page(*lines)
    assert "p\\_min = 0.1: 0.990" not in page(line(), *lines[2:])
    behind = page(*lines[:2], line("narrow", pearson=0.89))
    assert "0.850 (with p\\_min = 0.1: 0.890) | 0.900 of IAFL |" in behind
    assert f"{answer} |" in behind


def test_without_baselines_a_goal_is_not_run_and_not_met() -> None:
    text = page(line(accuracy=0.99, pearson=0.99))
    assert "**2 of 3 goals hold wherever measured.**" in text
    assert "above that of every other method | **not run** |  |" in text


def test_nothing_run_is_no_answer() -> None:
    text = page()
    assert "Nothing that the paper has was run yet" in text
    assert text.count("Not run.") == 12
    assert "No run is in the results file." in text


def test_runs_that_the_paper_does_not_have_are_no_answer() -> None:
    text = page(line(dataset="digits", pearson=0.9), line(dataset="digits", method="iafl"))
    assert "Nothing that the paper has was run yet" in text
    # Whether Aequa is above others can be told all the same.
    assert "above that of every other method | **no** | 0 of 1 |" in text


def test_notes_are_included_as_they_are() -> None:
    notes = "The *learning rate* of SST <b>differs</b> | see `config.py`."
    assert notes in section(page(*grid(), notes=f"\n{notes}\n"), "Where it differs, and why")


def test_it_says_how_it_was_made() -> None:
    lines = [*grid(), line(seed=7, seconds=5400.0, config={"rounds": 20})]
    text = section(page(*lines), "How it was made")
    assert "```sh\naequa paper grid.toml\n```" in text
    # Four runs of half an hour and one of an hour and a half.
    assert "5 runs took 3.5 hours in sum. Seeds: 1, 7 (the paper has five)." in text
    assert "aequa-flwr 0.1.0, torch 2.15.0" in text
    assert "| main | MNIST | cnn | 10 | 57,000 | 20, 50 (50) | 1, 7 | 5 | 3.5 |" in text


def test_data_sets_that_were_not_run_are_named_in_every_table() -> None:
    text = page(*grid())
    assert (
        text.count("Not run at all: Fashion-MNIST, SVHN, CIFAR-10, CIFAR-100, SST, FEMNIST.") == 6
    )
    for title in ("Participation as the contribution", "Width as the reward"):
        assert "Not run." in text.split(f"### {title}")[1].split("###")[0]


def test_a_failed_run_is_told_with_its_reason() -> None:
    text = page(
        *grid(), line(partition="label-skew:3", status="failed", reason="No | node\n<joined>.")
    )
    assert section(text, "Failed runs").strip() == (
        "- main, MNIST, Label skew (3), Aequa, seed 1: No \\| node \\<joined\\>."
    )
    assert "| MNIST | Label skew (3) | not run (94.37 ± 3.43) |" in text
    assert "| failed (95.37 ± 1.15) |" in text


def test_a_run_that_a_later_one_replaces_is_told() -> None:
    text = page(line(accuracy=0.5), line(accuracy=0.99))
    assert "- main, MNIST, Homogeneous, Aequa, seed 1" in section(text, "Runs that are not shown")


def test_what_a_run_that_is_not_shown_was_run_with_is_told() -> None:
    lines = [line(config={"method": method}) for method in ("iafl", "iafl:kappa=0.5")]
    assert (
        section(page(*lines), "Runs that are not shown")
        .strip()
        .endswith("- main, MNIST, Homogeneous, IAFL, seed 1: method = iafl")
    )


def test_figures_are_linked_where_there_is_a_file() -> None:
    text = page(*grid(), width_mnist="paper/width-mnist.svg")
    assert "![Accuracy against width, MNIST](paper/width-mnist.svg)" in text
    assert text.count("![") == 1
    assert "## Figures" not in page(*grid())


def test_the_same_lines_give_the_same_page() -> None:
    lines = [
        *grid("mnist", partitions=["dirichlet:0.1", "homogeneous"]),
        *grid("svhn"),
        training_time("cgsv"),
    ]
    links = {name: f"paper/{name}" for name in draw_figures(lines)}
    first, second = (
        render_results(some, command="x", figures=links) for some in (lines, list(reversed(lines)))
    )
    assert first == second
    assert draw_figures(lines) == draw_figures(list(reversed(lines)))


def test_prose_is_not_wider_than_a_screen() -> None:
    links = {name: name for name in draw_figures(grid())}
    text = render_results(grid(), command="x", figures=links)
    for words in text.splitlines():
        assert words.startswith("|") or len(words) <= 130


def test_tables_are_whole() -> None:
    lines = [*grid(), training_time("cgsv"), line("width"), line("narrow"), line("participation")]
    for block in re.findall(r"(?:^\|.*\n)+", page(*lines), flags=re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", row)) for row in block.splitlines()}
        assert len(widths) == 1, block


def test_there_is_a_figure_of_all_there_is_data_for() -> None:
    lines = [*grid("mnist"), *grid("svhn"), training_time("cgsv"), training_time("shapfed")]
    assert set(draw_figures(lines)) == {
        *("width-mnist.svg", "rewards-mnist.svg", "participants-mnist.svg"),
        *("width-svhn.svg", "rewards-svhn.svg", "participants-svhn.svg"),
        "training-time-mnist-homogeneous.svg",
    }
    assert draw_figures([]) == {}
    assert draw_figures([line(status="failed"), line(method="iafl")]) == {}


def test_thousands_have_no_bars() -> None:
    assert set(draw_figures(grid("femnist", 30, ["natural"]))) == {
        *("width-femnist.svg", "rewards-femnist.svg"),
    }


def test_participants_are_shown_where_most_methods_were_run() -> None:
    lines = [*grid(partitions=["dirichlet:0.5"])[2:], *grid(partitions=["label-skew:3"])]
    assert "Label skew (3)" in draw_figures(lines)["rewards-mnist.svg"]
    lines = grid(partitions=["homogeneous", "quantity-skew:0.4,2"])
    assert "Quantity skew (0.4, 2)" in draw_figures(lines)["rewards-mnist.svg"]


def test_a_method_that_was_not_run_has_an_empty_panel_that_says_so() -> None:
    svg = draw_figures(grid()[1:])["rewards-mnist.svg"]
    assert "FedAvg-FT: not run" in svg
    assert "Aequa: Pearson 0.980" in svg


def test_curves_of_several_seeds_are_averaged() -> None:
    lines = [line(seed=seed, curve=((0.25, 0.5), (1.0, top))) for seed, top in ((1, 0.7), (2, 0.8))]
    assert "50.00% at width 0.25, 75.00% at width 1.00." in draw_figures(lines)["width-mnist.svg"]


def test_negative_gains_have_bars_to_the_left_of_zero() -> None:
    lines = [line(method="cgsv", mcg=-0.1), line(mcg=0.1), training_time("cgsv")]
    svg = draw_figures(lines)["training-time-mnist-homogeneous.svg"]
    assert "MCG -10.00" in svg
    widths = [float(w) for w in re.findall(r'stroke="none" [^>]*width="([^"]+)"', svg)]
    assert all(width >= 0 for width in widths)


NASTY = "<script>alert('x')</script> & \"quoted\" \x00 ../../etc|*b*"


def test_names_do_no_harm() -> None:
    lines = grid(NASTY)
    drawn = draw_figures(lines)
    assert len(drawn) == 3
    for name, svg in drawn.items():
        assert re.fullmatch(r"[a-z0-9-]+\.svg", name)
        assert "<script" not in svg
        ElementTree.fromstring(svg)
    text = render_results(lines, command="x", figures={name: name for name in drawn})
    assert not re.search(r"(?<!\\)[<>]", text)


@pytest.mark.parametrize("name", ["width-mnist.svg", "rewards-mnist.svg", "participants-mnist.svg"])
def test_drawings_are_whole_and_need_nothing_else(name: str) -> None:
    root = ElementTree.fromstring(draw_figures(grid())[name])
    space = "{http://www.w3.org/2000/svg}"
    assert root.tag == f"{space}svg"
    for words in ("title", "desc"):
        found = root.find(f"{space}{words}")
        assert found is not None
        assert found.text
    ground = root.find(f"{space}rect")
    assert ground is not None
    assert ground.get("fill") == "#fff"
    assert not [e for e in root.iter() if e.get("href") or "url(" in (e.text or "")]


def test_half_a_character_in_a_reason_can_be_written() -> None:
    page(line(status="failed", reason="path \udce9")).encode("utf-8")


def test_the_tables_are_there_as_csv_too_and_the_page_leads_to_them(tmp_path: Path) -> None:
    text = save_page(tmp_path / "mine.jsonl", grid(), command="x").read_text(encoding="utf-8")
    link = "mine/tables.csv"
    assert f"[All cells as CSV]({link})" in " ".join(text.split())
    with (tmp_path / link).open(encoding="utf-8", newline="") as file:
        titles = {entry["table"] for entry in csv.DictReader(file)}
    assert {"Predictive performance", "Room for even gains"} <= titles
    assert "All cells as CSV" not in page(*grid())
