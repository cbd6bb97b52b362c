"""Every test that a page names is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# `folder/test_file.py::test_name`, or `::test_name` of the file before it.
NAMED = re.compile(r"`((?:\w+/)+test_\w+\.py)?(?:::(test_\w+))?`")


@pytest.mark.parametrize("page", ["security.md", "faults.md"])
def test_the_tests_it_names_exist(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found, file = 0, ""
    for match in NAMED.finditer(text):
        file, name = match[1] or file, match[2]
        if not match[0].strip("`"):
            continue
        source = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert name is None or f"def {name}(" in source, match[0]
        found += 1
    assert found > 15
