"""The drawings: there where there is data for them, whole, and harmless."""

import re
from xml.etree import ElementTree

import pytest

from aequa_flwr.reproduction.figures import draw_figures
from aequa_flwr.reproduction.page import render_results
from tests.unit.reproduction.lines import grid, line, training_time


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
