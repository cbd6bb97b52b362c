"""The picture of a run as PNG."""

import io
from dataclasses import replace

import pytest
from PIL import Image

from aequa_flwr.errors import UserError
from aequa_flwr.report import (
    render_picture,
)
from tests.unit.report.records import CASES


@pytest.mark.parametrize("case", ["10", "losers", "compared", "no validation", "thousands"])
def test_the_picture_is_one(case: str) -> None:
    record = CASES[case]
    data = replace(record.data, dataset="$\\frac{$ <b>") if record.data else None
    with Image.open(io.BytesIO(render_picture(replace(record, data=data)))) as picture:
        assert picture.format == "PNG"
        assert picture.width > 900
        assert len(picture.convert("RGB").getcolors(1 << 20) or ()) > 50


def test_nothing_to_draw_is_a_sentence() -> None:
    with pytest.raises(UserError, match="No participant of this run has a reward"):
        render_picture(CASES["interrupted"])
