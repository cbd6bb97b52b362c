"""The page of results: the answer first, and everything that was not run or failed is told."""

import csv
import re
from pathlib import Path

from aequa_flwr.reproduction.figures import draw_figures
from aequa_flwr.reproduction.page import render_results, save_page
from aequa_flwr.reproduction.results import Line
from tests.unit.reproduction.lines import grid, line, training_time


def page(*lines: Line, notes: str = "", **links: str) -> str:
    figures = {name.replace("_", "-") + ".svg": link for name, link in links.items()}
    return render_results(lines, command="aequa paper grid.toml", figures=figures, notes=notes)


def section(text: str, heading: str) -> str:
    return text.split(f"## {heading}\n")[1].split("\n## ", maxsplit=1)[0]


def test_the_answer_comes_first() -> None:
    text = page(*grid())
    assert text.startswith(
        "# Does it reproduce the paper?\n\n**Yes, where we ran it: 5 of 5 comparisons hold.**"
    )
    words = " ".join(text.split())
    assert "3 of 3 goals hold in every comparison." in words
    assert "We ran 1 of the 55 rows of the paper's large tables, all with its 4 methods." in words
    assert "| 1 | Aequa's accuracy is at most 1 percentage point" in text
    assert "below the paper's | **yes** | 1 of 1 |" in text
    assert "above that of every other method | **yes** | 3 of 3 |" in text
    assert "Where a goal does not hold" not in text
    assert "Where it differs" not in text


def test_at_a_glance_the_papers_means_are_beside_ours() -> None:
    lines = [line(accuracy=0.9, pearson=0.5), line(seed=2, accuracy=0.92, pearson=0.7)]
    text = section(page(*lines, line(method="cgsv", pearson=0.4)), "At a glance")
    assert "| MNIST | Homogeneous | 2 | 91.00 (98.60) | 0.600 (0.97) | not run | 0.400 |" in text


def test_one_miss_in_many_is_not_a_no() -> None:
    kinds = ("homogeneous", "dirichlet:0.1", "dirichlet:0.5", "dirichlet:1", "dirichlet:2")
    good = [line(partition=kind, accuracy=0.99, pearson=0.99) for kind in kinds]
    bad = line(partition="dirichlet:5", accuracy=0.99, pearson=0.9)
    assert "**Almost everywhere we ran it: 11 of 12 comparisons hold.**" in page(*good, bad)
    assert "**In part: 3 of 4 comparisons hold.**" in page(good[0], bad)


def test_what_does_not_hold_is_listed_with_both_numbers() -> None:
    text = page(line(accuracy=0.9, pearson=0.5), line(method="iafl", pearson=0.6))
    words = " ".join(text.split())
    assert "**No: 0 of 3 comparisons hold.** 0 of 3 goals hold in every comparison." in words
    assert "large tables, 0 of them with its 4 methods." in words
    assert "| 1 | MNIST | Homogeneous | 90.00 | the paper's 98.60 ± 0.11 |" in text
    assert "| 2 | MNIST | Homogeneous | 0.500 | the paper's 0.97 ± 0.02 |" in text
    assert "| 3 | MNIST | Homogeneous | 0.500 | 0.600 of IAFL |" in text
    assert "The reason is not known yet." in section(text, "Where it differs, and why")


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
    assert "**Yes, where we ran it: 2 of 2 comparisons hold.** 2 of 3 goals hold in every" in text
    assert "above that of every other method | **not run** |  |" in text


def test_nothing_run_is_no_answer() -> None:
    text = page()
    assert "There is no answer yet" in text
    assert text.count("Not run.") == 14
    assert "The results file has no runs." in text
    assert "At a glance" not in text


def test_runs_that_the_paper_does_not_have_are_no_answer() -> None:
    text = page(line(dataset="digits", pearson=0.9), line(dataset="digits", method="iafl"))
    assert "There is no answer yet" in text
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
    assert "5 runs took 3.5 hours in total. Seeds: 1, 7 (the paper has five)." in text
    assert "aequa-flwr 0.1.0, torch 2.15.0" in text
    assert "| main | MNIST | cnn | 10 | 57,000 | 20, 50 (50) | 1, 7 | 5 | 3.5 |" in text


def test_data_sets_that_were_not_run_are_named_in_every_table() -> None:
    text = page(*grid())
    assert (
        text.count("Not run at all: Fashion-MNIST, SVHN, CIFAR-10, CIFAR-100, SST, FEMNIST.") == 7
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


def test_half_a_character_in_a_reason_can_be_written() -> None:
    page(line(status="failed", reason="path \udce9")).encode("utf-8")


def test_the_tables_are_there_as_csv_too_and_the_page_leads_to_them(tmp_path: Path) -> None:
    text = save_page(tmp_path / "mine.jsonl", grid(), command="x").read_text(encoding="utf-8")
    link = "mine/tables.csv"
    assert f"[All cells as CSV]({link})" in " ".join(text.split())
    with (tmp_path / link).open(encoding="utf-8", newline="") as file:
        titles = {entry["table"] for entry in csv.DictReader(file)}
    assert {"Predictive performance", "Headroom for even gains"} <= titles
    assert "All cells as CSV" not in page(*grid())
