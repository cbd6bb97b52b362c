"""A name and a folder to a data set: what is found, refused and downloaded."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from aequa_flwr.data import SCHEMA_FILE, DataError, federated_data, found_in, save_schema
from aequa_flwr.data.sources import SOURCES
from aequa_flwr.settings import DATASETS
from tests.unit.data.sites import CLASSES, site
from tests.unit.data_files import (
    TRAIN,
    load,
    spec_for,
    write_arrays,
    write_femnist,
    write_images,
    write_mnist,
    write_sst,
    write_tsv,
)


def test_there_is_a_source_for_every_name_of_the_config() -> None:
    assert tuple(SOURCES) == DATASETS
    assert all(name == source.name for name, source in SOURCES.items())


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("svhn", r"put train_32x32\.mat, test_32x32\.mat there or add --download"),
        ("cifar10", r"cifar-10-batches-py: put data_batch_1, .* there or add --download"),
        ("cifar100", r"cifar-100-python: put train, test, meta there or add --download"),
        ("sst", r"put trees/train\.txt and trees/test\.txt there, or sst5_train\.tsv"),
        ("femnist", r"put LEAF's train/\*\.json and test/\*\.json there"),
        ("images", r"put images into train/CLASS/ and test/CLASS/ there"),
        ("arrays", r"neither train\.npz nor test\.npz; put them there"),
        ("text", r"neither train\.tsv nor test\.tsv; put them there"),
    ],
)
def test_an_empty_folder_is_answered_with_what_to_put_there(
    tmp_path: Path, name: str, says: str
) -> None:
    with pytest.raises(DataError, match=says):
        load(name, tmp_path)
    with pytest.raises(DataError, match=r"nowhere does not exist; create it"):
        load(name, tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(
        DataError, match=r"file is (a file; name the folder|not a \.\w+ file; name one)"
    ):
        load(name, tmp_path / "file")


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_folder_that_may_not_be_read_is_said(tmp_path: Path) -> None:
    tmp_path.chmod(0)
    # Root may read everything, so these lines are somebody else's.
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    try:
        with pytest.raises(DataError, match="is not readable; change its permissions"):
            load("mnist", tmp_path)
    finally:
        os.seteuid(was)
        tmp_path.chmod(0o700)


def test_a_download_that_fails_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torchvision.datasets

    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("no network")

    monkeypatch.setattr(torchvision.datasets.MNIST, "download", refuse)
    with pytest.raises(DataError, match=r"cannot be downloaded to .*check the network"):
        load("mnist", tmp_path / "new", download=True)


def test_a_download_fetches_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torchvision.datasets

    from aequa_flwr.data import load_dataset

    folder = tmp_path / "new"

    def deliver(_: object) -> None:
        if not (folder / "MNIST").exists():
            write_mnist(folder)

    monkeypatch.setattr(torchvision.datasets.MNIST, "download", deliver)
    said: list[str] = []
    data = load_dataset(spec_for("mnist", folder, download=True), said.append)
    assert len(data.train) == TRAIN
    assert said[:2] == ["Downloading mnist", "Preparing mnist"]


def test_a_folder_says_which_data_sets_it_holds(tmp_path: Path) -> None:
    assert found_in(str(tmp_path)) == []
    assert found_in(str(tmp_path / "nowhere")) == []
    write_mnist(tmp_path)
    write_sst(tmp_path / "sst")
    write_femnist(tmp_path / "femnist")
    assert found_in(str(tmp_path)) == ["mnist", "sst", "femnist"]
    write_arrays(tmp_path / "train.npz")
    write_tsv(tmp_path / "train.tsv")
    assert found_in(str(tmp_path)) == ["mnist", "sst", "femnist", "arrays", "text"]
    write_images(tmp_path / "own", ["a", "b"])
    assert found_in(str(tmp_path / "own")) == ["images"]


WRITERS: dict[str, Callable[[Path], None]] = {
    "images": lambda part: write_images(part, CLASSES),
    "arrays": lambda part: write_arrays(part.with_suffix(".npz")),
    "text": lambda part: write_tsv(part.with_suffix(".tsv")),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_deployed_server_needs_a_schema_and_a_test_part_only(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / "train")
    schema = load(name, tmp_path).schema
    server = tmp_path / "server"
    server.mkdir()
    WRITERS[name](server / "test")
    with pytest.raises(DataError, match=r"server holds no training part; put train.* there, or"):
        load(name, server)
    save_schema(server / SCHEMA_FILE, schema)
    data = federated_data(spec_for(name, server))
    assert data.shares == {}
    assert len(data.held_out) == 0
    assert len(data.validation) == len(load(name, server).test) > 0
    assert data.dataset.train.x.shape == (0, *schema.shape)
    with pytest.raises(DataError, match="holds no training part; a participant needs one"):
        site(name, server)


@pytest.mark.parametrize("name", WRITERS)
def test_a_sites_folder_alone_is_no_federation(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / "train")
    with pytest.raises(DataError, match=r"has no schema\.json; copy the federation's there"):
        site(name, tmp_path)
    save_schema(tmp_path / SCHEMA_FILE, load(name, tmp_path).schema)
    assert len(site(name, tmp_path).train) == 15 * (1 + (name == "arrays"))
    with pytest.raises(DataError, match="holds no test part, on which the server measures"):
        federated_data(spec_for(name, tmp_path))


def test_only_own_data_can_be_a_sites(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be mnist; use one of images, arrays, text"):
        site("mnist", tmp_path)
    with pytest.raises(DataError, match="nowhere does not exist"):
        site("arrays", tmp_path / "nowhere")
