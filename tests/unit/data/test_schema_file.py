import json
from pathlib import Path
from typing import Any

import pytest

from aequa_flwr.data import SCHEMA_FILE, DataError, Schema, load_schema, save_schema
from tests.unit.data.sites import CLASSES

SCHEMAS = [
    Schema("images", (3, 6, 8), CLASSES, (0.1, 0.2, 0.3), (0.4, 0.5, 0.6)),
    Schema("numbers", (4, 2), ("ü", "ß")),
    Schema("tokens", (9,), CLASSES, vocabulary=("été", "\u2028", '"')),
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.kind)
def test_a_schema_is_saved_and_loaded(tmp_path: Path, schema: Schema) -> None:
    save_schema(tmp_path / SCHEMA_FILE, schema)
    again = load_schema(tmp_path / SCHEMA_FILE)
    assert again == schema
    assert again.fingerprint == schema.fingerprint


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kind": "sounds"}, "kind: Input should be"),
        ({"shape": [3, 6]}, "shape must be"),
        ({"shape": [3, 0, 8]}, "shape must be"),
        ({"shape": "many"}, "shape"),
        ({"classes": ["ant"]}, "classes must be at least two"),
        ({"classes": ["ant", "ant"]}, "classes must be at least two"),
        ({"mean": [0.1]}, "mean and std must have one number"),
        ({"std": [0.4, 0.5, 0.0]}, "std finite and above 0"),
        ({"vocabulary": ["word"]}, "only tokens have one"),
    ],
)
def test_a_bad_schema_is_refused(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    path = tmp_path / SCHEMA_FILE
    path.write_text(json.dumps(SCHEMAS[0].to_json() | change))
    with pytest.raises(DataError, match=rf"schema\.json is not a schema \(.*{says}.*copy the fed"):
        load_schema(path)


def test_a_file_that_is_no_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / SCHEMA_FILE
    with pytest.raises(DataError, match="cannot be read: No such file"):
        load_schema(path)
    path.write_text('{"kind": "ima')
    with pytest.raises(DataError, match="is not a schema"):
        load_schema(path)
    with path.open("wb") as file:
        file.truncate(50_000_001)
    with pytest.raises(DataError, match="is larger than 50,000,000 bytes"):
        load_schema(path)
