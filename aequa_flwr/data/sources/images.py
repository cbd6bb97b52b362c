"""User images: train/CLASS/* and test/CLASS/*, or CLASS/* to be split, read with Pillow."""

import struct
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from aequa_flwr.data.arrays import check_classes, split_off_test
from aequa_flwr.data.examples import DataError, Dataset, Examples
from aequa_flwr.data.moments import image_moments
from aequa_flwr.data.saying import Count
from aequa_flwr.data.schema import Schema
from aequa_flwr.data.schema_file import SCHEMA_FILE
from aequa_flwr.data.sources.source import Files, MissingError, Source, check_folder
from aequa_flwr.data.sources.user_files import (
    PARTS,
    class_numbers,
    need_schema,
    schema_of,
    with_schema,
)

if TYPE_CHECKING:
    from PIL import Image

_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff"}
_GREY = {"1", "L", "LA"}
# More than eight bits: Pillow would clip them to white instead of scaling.
_DEEP = {"I", "F", "I;16", "I;16L", "I;16B", "I;16N"}


@dataclass(frozen=True)
class _Picture:
    part: str
    name: str
    path: Path


def _find(data_dir: Path) -> Files:
    """Find images by their suffix; other files, and hidden files and folders, are ignored."""
    root = check_folder(data_dir, "create it and put a folder of images for each class there")
    parts = [root / part for part in PARTS if _folders(root / part)]
    for part in PARTS:
        if not _folders(root / part) and any(_is_image(p) for p in _entries(root / part)):
            raise MissingError(
                f"{root / part} holds images but no class folder; sort them into {part}/CLASS/."
            )
    found: list[Path] = []
    for folder in [name for part in parts or [root] for name in _folders(part)]:
        images = [path for path in folder.iterdir() if _is_image(path)]
        if not images:
            raise MissingError(
                f"The class folder {folder} holds no image; put some there or remove it "
                f"(supported: {', '.join(sorted(_SUFFIXES))})."
            )
        found += images
    if not found:
        raise MissingError(
            f"{root} holds no class folder; put images into train/CLASS/ and test/CLASS/ there, or "
            "into CLASS/."
        )
    files = with_schema(root, found)
    if parts == [root / "test"]:
        need_schema(files, "train/CLASS/ with images")
    return files


def _is_image(path: Path) -> bool:
    # macOS puts a hidden ._1.png beside a 1.png on other file systems.
    return path.suffix.lower() in _SUFFIXES and not path.name.startswith(".")


def _folders(folder: Path) -> list[Path]:
    return [p for p in _entries(folder) if p.is_dir() and not p.name.startswith(".")]


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _decode(files: Files, _max_length: int, count: Count) -> Dataset:
    pictures = _pictures(files)
    schema = schema_of(files, ["images"])
    names = schema.classes if schema else sorted({picture.name for picture in pictures})
    classes = check_classes(names, files.root)
    numbers = class_numbers(((p.name, p.path.parent.parent) for p in pictures), classes)
    # Headers first: the size and the colours of all images decide the shape of each.
    shape = _shape(pictures, schema)
    train = [picture for picture in pictures if picture.part != "test"]
    test = [picture for picture in pictures if picture.part == "test"]
    if schema is None and not test:
        labels = np.array([numbers[picture.name] for picture in train])
        rows, held = split_off_test("images", labels, files.root)
        train, test = [train[k] for k in rows], [train[k] for k in held]
    parts = []
    for part, before in ((train, 0), (test, len(train))):
        x = np.empty((len(part), *shape), dtype=np.uint8)
        for k, picture in enumerate(part):
            count(before + k, len(pictures))
            x[k] = _pixels(picture.path, shape)
        y = np.array([numbers[picture.name] for picture in part], dtype=np.int64)
        parts.append(Examples(x, y))
    schema = schema or Schema("images", shape, classes, *image_moments(parts[0].x))
    return Dataset("images", parts[0], parts[1], schema)


def _pictures(files: Files) -> list[_Picture]:
    """Return the pictures, with part and class taken from their paths: [train/]CLASS/FILE."""
    found = []
    for name, path in files.by_name().items():
        if name != SCHEMA_FILE:
            *part, folder, _ = name.split("/")
            found.append(_Picture(part[0] if part else "", folder, path))
    return found


def _shape(pictures: Sequence[_Picture], schema: Schema | None) -> tuple[int, int, int]:
    """Return (channels, height, width) of all pictures: 1 channel if all are grey, else 3."""
    if schema is not None and schema.shape[0] not in (1, 3):
        raise DataError(
            f"{SCHEMA_FILE} says {schema.shape[0]} channels, but image files have 1 or 3; use the "
            "data set arrays instead."
        )
    size = None if schema is None else (schema.shape[2], schema.shape[1])
    grey = True
    for picture in pictures:
        found, mode = _header(picture.path)
        size = size or found
        if found != size:
            whose = f"{SCHEMA_FILE} says" if schema else f"{pictures[0].path} has"
            raise DataError(
                f"{picture.path} has {found[0]}x{found[1]} pixels, but {whose} "
                f"{size[0]}x{size[1]}; resize all images to one size."
            )
        grey = grey and mode in _GREY
        if schema is not None and schema.shape[0] == 1 and not grey:
            raise DataError(
                f"{picture.path} has colours, but {SCHEMA_FILE} says grey; convert it to grey."
            )
    if size is None:
        raise DataError("There is no image.")
    channels = schema.shape[0] if schema else 1 if grey else 3
    return channels, size[1], size[0]


def _header(path: Path) -> tuple[tuple[int, int], str]:
    with _opened(path) as image:
        if image.mode in _DEEP:
            raise DataError(
                f"{path} has more than 8 bits per colour; convert it to 8-bit grey or RGB."
            )
        return image.size, image.mode


def _pixels(path: Path, shape: tuple[int, int, int]) -> npt.NDArray[np.uint8]:
    with _opened(path) as image:
        pixels = np.asarray(image.convert("L" if shape[0] == 1 else "RGB"))
    return pixels.reshape(shape[1], shape[2], shape[0]).transpose(2, 0, 1)


@contextmanager
def _opened(path: Path) -> Iterator["Image.Image"]:
    """Open an image; any error with it while it is open becomes a DataError."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            # About odd metadata, which changes no pixel; what changes pixels is an error.
            warnings.simplefilter("ignore", UserWarning)
            # About images so large that they may be an attack on memory.
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as image:
                yield image
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise DataError(f"{path} has too many pixels; make it smaller.") from error
    # What the parsers of all those formats raise for a truncated or damaged file.
    except (OSError, ValueError, SyntaxError, LookupError, EOFError, struct.error) as error:
        raise DataError(
            f"{path} is truncated or not a readable image; replace or remove it."
        ) from error


IMAGES = Source("images", _find, _decode)
