"""Prepared data on disk: made once, whole or not there, shared, and never in the way."""

import logging
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from aequa_flwr.data import (
    SCHEMA_FILE,
    DataError,
    Dataset,
    DataSpec,
    cache_folder,
    federated_data,
    fingerprint,
    load_dataset,
    loading,
    save_schema,
)
from aequa_flwr.data.sources import SOURCES
from aequa_flwr.options import Spec
from tests.unit.data_files import (
    backdate,
    labels,
    pixels,
    spec_for,
    write_arrays,
    write_images,
    write_tsv,
)


@pytest.fixture
def spec(tmp_path: Path) -> DataSpec:
    """Return arrays in a folder, with an empty cache of the test's own."""
    write_arrays(tmp_path / "data" / "train.npz")
    backdate(tmp_path / "data")
    return spec_for("arrays", tmp_path / "data", cache_dir=str(tmp_path / "cache"))


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows by every source that decodes."""
    names: list[str] = []

    def counted(name: str) -> Callable[..., Dataset]:
        def decode(*arguments: object) -> Dataset:
            names.append(name)
            return SOURCES[name].decode(*arguments)  # type: ignore[arg-type]

        return decode

    counting = {name: replace(SOURCES[name], decode=counted(name)) for name in SOURCES}
    monkeypatch.setattr(loading, "SOURCES", counting)
    return names


def entries(spec: DataSpec, prefix: str = "arrays-") -> list[Path]:
    return sorted(Path(spec.cache_dir).glob(f"{prefix}*"))


def same(one: Dataset, other: Dataset) -> bool:
    return one.schema == other.schema and all(
        np.array_equal(getattr(getattr(one, part), key), getattr(getattr(other, part), key))
        for part in ("train", "test")
        for key in ("x", "y")
    )


def test_a_second_load_gives_equal_arrays_and_decodes_nothing(
    spec: DataSpec, decoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed = Mock(wraps=fingerprint._digest)
    monkeypatch.setattr(fingerprint, "_digest", hashed)
    first, again = load_dataset(spec), load_dataset(spec)
    assert same(first, again)
    assert decoded == ["arrays"]
    assert hashed.call_count == 1
    assert len(entries(spec)) == 1


def test_arrays_are_mapped_and_pytorch_takes_them_without_a_warning(spec: DataSpec) -> None:
    torch = pytest.importorskip("torch")
    for _ in range(2):  # Once prepared, once found.
        x = load_dataset(spec).train.x
        assert isinstance(x, np.memmap)
        assert torch.from_numpy(x).shape == x.shape  # Warnings are errors here.
    # Copy-on-write: what one process writes is nobody else's.
    x[:] = 0
    assert load_dataset(spec).train.x.any()


def test_an_empty_part_comes_back_empty(spec: DataSpec) -> None:
    schema = load_dataset(spec).schema
    save_schema(Path(spec.data_dir) / SCHEMA_FILE, schema)
    for _ in range(2):
        data = load_dataset(spec)
        assert len(data.train) == 30
        assert data.test.x.shape == (0, 1, 6, 8)
        assert data.test.x.dtype == np.uint8
        assert data.test.y.dtype == np.int64


def test_the_same_content_elsewhere_is_no_second_entry(
    spec: DataSpec, tmp_path: Path, decoded: list[str]
) -> None:
    first = load_dataset(spec)
    shutil.copytree(spec.data_dir, tmp_path / "copy")
    assert same(first, load_dataset(replace(spec, data_dir=str(tmp_path / "copy"))))
    assert decoded == ["arrays"]
    assert len(entries(spec)) == 1


def test_changed_content_gives_new_arrays(spec: DataSpec, decoded: list[str]) -> None:
    first = load_dataset(spec)
    path = Path(spec.data_dir) / "train.npz"
    was = path.stat()
    write_arrays(path, x=255 - pixels(30, 6, 8))
    # Of the same size and time as before: the change is still seen.
    assert path.stat().st_size == was.st_size
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert not same(first, load_dataset(spec))
    assert len(decoded) == len(entries(spec)) == 2


def test_files_just_written_are_looked_at_again(spec: DataSpec) -> None:
    """A clock that ticks slowly gives two writes one time, so a new file's time says nothing."""
    path = Path(spec.data_dir) / "train.npz"
    path.touch()
    load_dataset(spec)
    assert not list((Path(spec.cache_dir) / "keys").glob("*.json"))


def test_only_the_settings_that_matter_make_another_entry(
    spec: DataSpec, tmp_path: Path, decoded: list[str]
) -> None:
    for length in (2, 3):
        load_dataset(replace(spec, max_length=length))
    assert decoded == ["arrays"]
    write_tsv(tmp_path / "text" / "train.tsv")
    text = replace(spec, dataset="text", data_dir=str(tmp_path / "text"))
    assert [load_dataset(replace(text, max_length=n)).schema.shape for n in (2, 3)] == [(2,), (3,)]


def test_bad_data_leaves_nothing_behind(spec: DataSpec) -> None:
    write_arrays(Path(spec.data_dir) / "train.npz", y=labels(29))
    with pytest.raises(DataError, match="30 examples in x and 29 labels"):
        load_dataset(spec)
    assert entries(spec) == []
    assert not list(Path(spec.cache_dir).glob(".*"))


def overwrite(path: Path, start: int, content: bytes) -> None:
    data = bytearray(path.read_bytes())
    start %= len(data)
    data[start : start + len(content)] = content
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("train.x.npy", cut),
        ("train.x.npy", Path.unlink),
        ("test.y.npy", lambda path: path.write_bytes(b"x" * path.stat().st_size)),
        # NumPy parses a header as Python; labels of the right size that are no classes.
        ("test.y.npy", lambda path: overwrite(path, 10, b"{ " * 50)),
        ("train.y.npy", lambda path: overwrite(path, -8, b"\xff" * 8)),
        ("meta.json", cut),
        ("meta.json", Path.unlink),
        ("meta.json", lambda path: path.write_text("[]")),
        ("meta.json", lambda path: path.write_text('{"arrays": {}, "meta": {}}')),
        ("meta.json", lambda path: path.write_bytes(b"\xff")),
    ],
)
def test_a_damaged_entry_is_made_anew(
    spec: DataSpec, decoded: list[str], name: str, damage: Callable[[Path], object]
) -> None:
    first = load_dataset(spec)
    kept = [np.array(part.x) for part in (first.train, first.test)]
    damage(entries(spec)[0] / name)
    again = load_dataset(spec)
    assert np.array_equal(again.train.x, kept[0])
    assert np.array_equal(again.test.x, kept[1])
    load_dataset(spec)
    assert decoded == ["arrays"] * 2
    assert not list(Path(spec.cache_dir).glob(".*"))


def test_an_unwritable_cache_is_one_warning_and_the_run_goes_on(
    spec: DataSpec, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    blocked = replace(spec, cache_dir=str(tmp_path / "file" / "cache"))
    with caplog.at_level(logging.WARNING):
        first = load_dataset(blocked)
        shares = federated_data(blocked).shares
        load_dataset(blocked)
    assert same(first, load_dataset(spec))
    assert sum(len(share) for share in shares.values()) == len(first.train)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "cannot be kept in" in caplog.text


def test_a_full_disk_is_one_warning_and_leaves_nothing(
    spec: DataSpec, caplog: pytest.LogCaptureFixture
) -> None:
    write_arrays(Path(spec.data_dir) / "train.npz", 300)
    was = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, was[1]))
    try:
        with caplog.at_level(logging.WARNING):
            data = load_dataset(spec)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, was)
    assert len(data.train) == 240
    assert len(caplog.records) == 1
    assert entries(spec) == []
    assert not list(Path(spec.cache_dir).glob(".*"))


def _load_slowly(spec: DataSpec, log: Path) -> int:
    """Load with a decoder that takes its time and notes that it ran (in a process of its own)."""
    source = SOURCES[spec.dataset]

    def slow(*arguments: object) -> Dataset:
        with log.open("a") as file:
            file.write("decoded\n")
        time.sleep(0.5)
        return source.decode(*arguments)  # type: ignore[arg-type]

    vars(loading)["SOURCES"] = {spec.dataset: replace(source, decode=slow)}
    return int(load_dataset(spec).train.x.sum())


def test_processes_that_start_at_once_decode_once(spec: DataSpec, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(3) as pool:
        sums = pool.starmap(_load_slowly, [(spec, tmp_path / "log")] * 3, chunksize=1)
    assert sums == [int(load_dataset(spec).train.x.sum())] * 3
    assert (tmp_path / "log").read_text() == "decoded\n"


KILLED = """
import sys, time
import numpy as np
from aequa_flwr.data import DataSpec, load_dataset
from aequa_flwr.options import Spec

save = np.save
def stuck(path, array, **settings):
    save(path, array[: len(array) // 2], **settings)
    print("writing", flush=True)
    time.sleep(600)
np.save = stuck
load_dataset({spec!r})
"""


def test_a_killed_writer_leaves_nothing_visible(spec: DataSpec) -> None:
    command = [sys.executable, "-c", KILLED.format(spec=spec)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        os.kill(process.pid, signal.SIGKILL)
    assert entries(spec) == []
    (partial,) = Path(spec.cache_dir).glob(".*")
    # It may be another process's that still writes; after an hour it is not.
    assert len(load_dataset(spec).train) == 24
    assert partial.is_dir()
    os.utime(partial, times=(time.time() - 3601,) * 2)
    federated_data(spec)
    assert not partial.exists()


def test_files_that_change_while_they_are_read_are_refused(
    spec: DataSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = SOURCES["arrays"]

    def meddle(*arguments: object) -> Dataset:
        found = source.decode(*arguments)  # type: ignore[arg-type]
        (Path(spec.data_dir) / "train.npz").touch()
        return found

    monkeypatch.setattr(loading, "SOURCES", {"arrays": replace(source, decode=meddle)})
    with pytest.raises(DataError, match="changed while they were read; start again"):
        load_dataset(spec)
    assert entries(spec) == []


def test_the_split_is_kept_as_well(spec: DataSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    federation = sys.modules[federated_data.__module__]
    splits = Mock(wraps=federation._split)
    monkeypatch.setattr(federation, "_split", splits)

    def fresh(asked: DataSpec) -> dict[str, list[int]]:
        federation._federated_data.cache_clear()
        found = federated_data(asked)
        rows = {name: share.tolist() for name, share in found.shares.items()}
        return rows | {"held out": found.held_out.tolist()}

    uneven = replace(spec, held_out_fraction=0.1, partition=Spec("dirichlet", (1.0,)))
    first = fresh(uneven)
    assert fresh(uneven) == first
    assert splits.call_count == 1
    others = [
        replace(uneven, seed=2),
        replace(uneven, participants=2),
        replace(uneven, held_out_fraction=0.2),
        replace(uneven, partition=Spec("dirichlet", (2.0,))),
    ]
    assert all(fresh(other) != first for other in others)
    assert splits.call_count == len(entries(spec, "split-")) == 5
    write_arrays(Path(spec.data_dir) / "train.npz", 60)
    assert fresh(uneven) != first


def test_the_folder_is_what_is_asked_for_or_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AEQUA_CACHE_DIR", "/b")
    monkeypatch.setenv("XDG_CACHE_HOME", "/c")
    assert cache_folder("/a") == Path("/a")
    assert cache_folder() == Path("/b")
    monkeypatch.delenv("AEQUA_CACHE_DIR")
    assert cache_folder() == Path("/c/aequa-flwr")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert cache_folder() == Path("/home/me/.cache/aequa-flwr")


def test_preparing_is_told_in_sentences_not_too_often(tmp_path: Path) -> None:
    write_images(tmp_path / "data", ["a", "b"], count=200)
    said: list[str] = []
    spec = spec_for("images", tmp_path / "data", cache_dir=str(tmp_path / "cache"))
    start = time.monotonic()
    load_dataset(spec, said.append)
    assert said[0] == "Preparing images"
    assert len(said) <= 2 + 5 * (time.monotonic() - start)
    said.clear()
    load_dataset(spec, said.append)
    assert said == []
