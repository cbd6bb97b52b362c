"""The grid file: which runs it asks for, and what is refused with its line."""

from pathlib import Path

import pytest

from aequa_flwr.errors import UserError
from aequa_flwr.reproduction.grid import GridError, read_grid
from aequa_flwr.settings import RunConfig
from tests.unit.reproduction.grids import SMALL, grid_of


def test_lists_are_axes_and_the_last_varies_fastest(tmp_path: Path) -> None:
    runs = grid_of(tmp_path, SMALL).runs
    assert [(r.config.partition, r.config.contribution, r.config.seed) for r in runs] == [
        ("homogeneous", "standalone", 1),
        ("homogeneous", "standalone", 2),
        ("homogeneous", "data-size", 1),
        ("homogeneous", "data-size", 2),
        ("dirichlet:1", "standalone", 1),
        ("dirichlet:1", "standalone", 2),
        ("dirichlet:1", "data-size", 1),
        ("dirichlet:1", "data-size", 2),
    ]
    assert {r.config.rounds for r in runs} == {2}
    assert runs[-1].title == "digits dirichlet:1 aequa contribution data-size seed 2"
    assert {r.experiment for r in runs} == {"main"}


def test_the_machine_says_where_data_is_and_a_text_may_have_options(tmp_path: Path) -> None:
    text = '[[experiment]]\nname = "width"\ndataset = "mnist"\nmethod = "cgsv:beta=1"\n'
    (run,) = grid_of(tmp_path, text, data_dir="/data", device="cpu").runs
    assert (run.config.data_dir, run.config.method) == ("/data", "cgsv:beta=1")
    (other,) = grid_of(tmp_path, text, data_dir="/elsewhere", device="cuda").runs
    assert run.identity == other.identity


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1: a grid is a file of [[experiment]] tables"),
        ("[experiment]\nname = 'main'\n", "line 1: a grid is a file of [[experiment]] tables"),
        ("\nseed = 1\n[[experiment]]\nname = 'main'\n", "line 2: unknown key seed; a grid has"),
        ("[[experiment]]\nname = 'main'\n[other]\n", "line 3: unknown key other; a grid has"),
        ("[[experiment]]\nname = 'main'\nseed = \n", "line 3: invalid value"),
        ("[[experiment]]\nname = 'main'\nseed = [1,", "line 3: "),
        (
            "[[experiment]]\nname = 'main'\nseed = [1\nrounds = 2\n",
            "line 4: unclosed array; correct this line, or the one before it",
        ),
        (
            "[[experiment]]\nname = 'main'\npartition = [\n  'homogeneous',\n  \"iid\",\n]\n",
            "line 5: partition = 'iid'",
        ),
        ("[[experiment]]\nname = 'main'\nmethod = aequa\n", "line 3: invalid value; a text stan"),
        (
            "[[experiment]]\nname = 'main'\nseed = 1\nseed = 2\n",
            "line 4: cannot overwrite a value; the key",
        ),
        ("[[experiment]]\nseed = 1\n", "line 1: an experiment needs a name; use one of main,"),
        ("[[experiment]]\nseed = 1\nname = 'all'\n", "line 3: name = 'all' is not known; use"),
        (
            "[[experiment]]\nname = 'main'\n\n[[experiment]]\nname = 'width'\n\npartitions = 'x'\n",
            "line 7: unknown key partitions; did you mean partition",
        ),
        ("[[experiment]]\nname = 'main'\np_min = 0.5\n", "line 3: unknown key p_min; did you mean"),
        ("[[experiment]]\nname = 'main'\noutput = 'x'\n", "line 3: output belongs to the command"),
        ("[[experiment]]\nname = 'main'\ndevice = 'cpu'\n", "line 3: device belongs to the mach"),
        ("[[experiment]]\nname = 'main'\nthreads = 2\n", "line 3: threads belongs to the machine"),
        ("[[experiment]]\nname = 'main'\nstandalone-from = 'x'\n", "line 3: standalone-from bel"),
        ("[[experiment]]\nname = 'main'\nseed = []\n", "line 3: seed = [] leaves nothing to run"),
        ("[[experiment]]\nname = 'main'\nseed = [[1]]\n", "line 3: seed must be a text, a number"),
        ("[[experiment]]\nname = 'main'\nseed = {a = 1}\n", "line 3: seed must be a text, a numb"),
        ("[[experiment]]\nname = 'main'\nseed = [1, -1]\n", "line 3: seed = -1: must be greater"),
        (
            "[[experiment]]\nname = 'main'\nseed = 1\npartition = ['iid']\n",
            "line 4: partition = 'i",
        ),
        (
            "[[experiment]]\nname = 'main'\nparticipants = 2\npartition = 'quantity-skew:0.1,3'\n",
            "line 4: partition = 'quantity-skew:0.1,3' has more holders than participants = 2",
        ),
        (
            "[[experiment]]\nname = 'main'\nmethod = 'fedavg-ft'\np-min = 0.5\n",
            "line 4: p-min = 0.5 is not possible with method = 'fedavg-ft'",
        ),
        ("[[experiment]]\nname = 'main'\ndataset = 'mnist'\n", "line 3: data-dir must name the"),
        (
            "[[experiment]]\nname = 'main'\nseed = [1, 1.0]\n",
            "line 3: seed has 1.0 twice; name each value once",
        ),
        (
            "[[experiment]]\nname = 'main'\n\n[[experiment]]\nname = 'main'\nrounds = [40, 30]\n",
            "line 4: the run digits dirichlet:1 aequa rounds 40 seed 1 is planned twice in main",
        ),
    ],
)
def test_a_bad_grid_is_refused_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(GridError) as refused:
        grid_of(tmp_path, text)
    assert str(refused.value).startswith(f"{tmp_path / 'grid.toml'}, {says}")
    assert "\n" not in str(refused.value)
    assert str(refused.value).endswith(".")
    assert refused.value.exit_code == 2


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(GridError, match="is no text in UTF-8"):
        read_grid(tmp_path / "grid.toml", {})
    with pytest.raises(GridError, match=r"cannot be read \(No such file or directory\)"):
        read_grid(tmp_path / "other.toml", {})


def test_each_run_is_checked_once_and_blamed_on_its_line(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_text(SMALL + SMALL.replace("main", "width"), encoding="utf-8")
    checked: list[RunConfig] = []
    assert len(read_grid(path, {}, checked.append).runs) == 16
    assert len(checked) == 8

    def refuse(config: RunConfig) -> None:
        raise UserError(f"The partition {config.partition} does not suit.")

    with pytest.raises(GridError, match="line 6: The partition homogeneous does not suit") as error:
        read_grid(path, {}, refuse)
    assert error.value.exit_code == 1


def test_a_sentence_that_names_a_value_is_blamed_on_its_key(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    text = "[[experiment]]\nname = 'main'\nmethod = 'aequa'\npartition = ['label-skew:11']\n"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())  # some editors begin a file with a mark

    def refuse(config: RunConfig) -> None:
        raise UserError(f"{config.partition} asks for more classes than the main 10.")

    with pytest.raises(GridError, match="line 4: label-skew:11 asks for more"):
        read_grid(path, {}, refuse)
    path.write_text(text.replace("['label", "[\n'label") + "[[experiment]]\nname = 'width'\n")
    with pytest.raises(GridError, match="line 5: label-skew:11 asks for more"):
        read_grid(path, {}, refuse)
