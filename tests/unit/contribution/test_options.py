"""How contribution methods are named, and how mistakes in them are refused."""

import itertools
import math
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from aequa_flwr.contribution import (
    ESTIMATORS,
    Cgsv,
    ContributionError,
    FedFaim,
    FedSV,
    GtgShapley,
    ShapFed,
    build_estimator,
    check_needs,
    option_names,
)
from tests.unit.contribution.rounds import FOLLOWING, MEASURING

DOCS = Path(__file__).parents[3] / "docs" / "contribution.md"


def test_every_method_is_built_by_its_name() -> None:
    names = {"standalone", "confirmed", "participation", "data-size", *FOLLOWING, *MEASURING}
    assert set(ESTIMATORS) == names
    for kind, method in ESTIMATORS.items():
        assert build_estimator(kind) == method()


def test_options_are_read() -> None:
    assert build_estimator("cgsv:smoothing=0.5") == Cgsv(smoothing=0.5)
    assert build_estimator("shapfed:layers=10, smoothing=0") == ShapFed(layers=10, smoothing=0.0)
    assert build_estimator("fedsv:metric=loss,exact=4") == FedSV(metric="loss", exact=4)
    assert build_estimator("gtg-shapley:within-round=1e-2") == GtgShapley(within_round=0.01)
    assert build_estimator("fedfaim:fail-weight=1") == FedFaim(fail_weight=1.0)


ALL = (
    "standalone, confirmed, cgsv, shapfed, participation, data-size, fedsv, gtg-shapley, comfedsv "
    "or fedfaim"
)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("fedvs", f"contribution = 'fedvs' is unknown (did you mean fedsv?); use {ALL}."),
        ("", f"contribution = '' is unknown; use {ALL}."),
        ("zzz:a=1", f"contribution = 'zzz:a=1' is unknown; use {ALL}."),
        (
            "cgsv:smothing=0.5",
            "contribution = 'cgsv:smothing=0.5' has the unknown option 'smothing' (did you "
            "mean smoothing?); options of cgsv are smoothing, scale.",
        ),
        (
            "fedfaim:fail_weight=1",
            "contribution = 'fedfaim:fail_weight=1' has the unknown option 'fail_weight' (did "
            "you mean fail-weight?); options of fedfaim are tolerance, sharpness, pass-weight, "
            "fail-weight, steepness.",
        ),
        (
            "shapfed:z=1",
            "contribution = 'shapfed:z=1' has the unknown option 'z'; options of shapfed are "
            "layers, smoothing.",
        ),
        (
            "participation:rate=1",
            "contribution = 'participation:rate=1' has options, but participation takes none; use "
            "participation.",
        ),
        (
            "cgsv:0.5",
            "contribution = 'cgsv:0.5' has '0.5' where option=value is expected; options of cgsv "
            "are smoothing, scale.",
        ),
        (
            "cgsv:",
            "contribution = 'cgsv:' has '' where option=value is expected; options of cgsv are "
            "smoothing, scale.",
        ),
        (
            "cgsv:scale=1,scale=2",
            "contribution = 'cgsv:scale=1,scale=2' has scale twice; keep one of them.",
        ),
        (
            "cgsv:smoothing=1",
            "contribution = 'cgsv:smoothing=1' has smoothing=1, which must be less than 1.",
        ),
        (
            "gtg-shapley:within-round=-1",
            "contribution = 'gtg-shapley:within-round=-1' has within-round=-1, which must be "
            "greater than or equal to 0.",
        ),
        (
            "fedsv:exact=17",
            "contribution = 'fedsv:exact=17' has exact=17, which must be less than or equal to 16.",
        ),
        ("cgsv:scale=", "contribution = 'cgsv:scale=' has scale=, which must be a number."),
        ("cgsv:scale=x", "contribution = 'cgsv:scale=x' has scale=x, which must be a number."),
        (
            "cgsv:scale=inf",
            "contribution = 'cgsv:scale=inf' has scale=inf, which must be a finite number.",
        ),
        (
            "cgsv:smoothing=nan",
            "contribution = 'cgsv:smoothing=nan' has smoothing=nan, which must be a finite number.",
        ),
        (
            "shapfed:layers=1.5",
            "contribution = 'shapfed:layers=1.5' has layers=1.5, which must be a whole number.",
        ),
        (
            "shapfed:layers=x",
            "contribution = 'shapfed:layers=x' has layers=x, which must be a whole number.",
        ),
        (
            "fedsv:metric=f1",
            "contribution = 'fedsv:metric=f1' has metric=f1, which must be 'accuracy' or 'loss'.",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ContributionError) as error:
        build_estimator(text)
    assert str(error.value) == sentence
    assert error.value.exit_code == 2


def test_every_number_has_bounds() -> None:
    for kind, option in itertools.chain.from_iterable(
        ((kind, option) for option in option_names(kind)) for kind in ESTIMATORS
    ):
        for value in ("nan", "inf", "-inf", "-1", "1e300"):
            with pytest.raises(ContributionError) as error:
                build_estimator(f"{kind}:{option}={value}")
            assert re.search(rf" has {option}={value}, which must be .+\.$", str(error.value))
    with pytest.raises(ValidationError):
        Cgsv(smoothing=math.nan)


def test_needs_that_are_met_pass() -> None:
    for kind in ESTIMATORS:
        check_needs(kind, build_estimator(kind), validation=True, participants=2)
    for kind in (*FOLLOWING, "participation", "data-size"):
        check_needs(kind, build_estimator(kind), validation=False, participants=2)


@pytest.mark.parametrize("kind", ["standalone", *MEASURING])
def test_without_data_of_the_server_nothing_is_measured(kind: str) -> None:
    with pytest.raises(ContributionError) as error:
        check_needs(kind, build_estimator(kind), validation=False, participants=9)
    assert str(error.value) == (
        f"contribution = '{kind}' measures models on validation data, but validation = false; "
        "use cgsv, shapfed, participation or data-size."
    )


@pytest.mark.parametrize("text", ["cgsv", "shapfed:layers=3"])
def test_one_participant_cannot_be_compared(text: str) -> None:
    with pytest.raises(ContributionError) as error:
        check_needs(text, build_estimator(text), validation=True, participants=1)
    assert str(error.value) == (
        f"contribution = '{text}' compares participants with each other and needs at least two; "
        "there is 1."
    )


def test_the_documentation_names_every_method_and_every_option_with_its_default() -> None:
    sections = dict(
        re.findall(r"^### `([a-z-]+)`\n(.*?)(?=^##|\Z)", DOCS.read_text(), re.MULTILINE | re.DOTALL)
    )
    assert set(sections) == set(ESTIMATORS)
    for kind, method in ESTIMATORS.items():
        built: Any = method()
        for field in fields(built):
            row = f"| `{field.name.replace('_', '-')}` | {getattr(built, field.name)} |"
            if isinstance(getattr(built, field.name), str):
                row = f"| `{field.name}` | {getattr(built, field.name)} |"
            assert row in sections[kind], f"{kind}: {row}"
