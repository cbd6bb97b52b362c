import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import aequa_flwr
from aequa_flwr.settings import DATASETS, RECIPES, ConfigError, RunConfig

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_pyproject_holds_every_key_with_its_default() -> None:
    written = PYPROJECT["tool"]["flwr"]["app"]["config"]
    assert list(written) == [name.replace("_", "-") for name in RunConfig.model_fields]
    assert RunConfig.parse(written) == RunConfig.parse({})


def test_version_is_the_same_in_both_places() -> None:
    assert PYPROJECT["project"]["version"] == aequa_flwr.__version__


def test_every_data_set_has_a_valid_recipe() -> None:
    assert set(RECIPES) == set(DATASETS)
    for name in DATASETS:
        config = RunConfig.parse({"dataset": name, "data-dir": "/data"})
        assert config.rounds == RECIPES[name].rounds


def test_a_value_given_beats_the_recipe_and_text_is_read() -> None:
    config = RunConfig.parse({"rounds": "7", "learning-rate": 0.5, "partition": "homogeneous"})
    assert (config.rounds, config.learning_rate, config.partition) == (7, 0.5, "homogeneous")


def test_parse_and_to_flower_are_inverse() -> None:
    config = RunConfig.parse({"seed": 5, "p-min": 0.4})
    assert RunConfig.parse(config.to_flower()) == config


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"dataset": "cifar"}, "dataset = 'cifar': must be 'digits', 'mnist', 'fashion-mnist', "),
        ({"dataset": "mnist"}, "data-dir must name the folder that holds mnist"),
        ({"rouds": 3}, "unknown key rouds; did you mean rounds"),
        ({"qqq": 3}, "unknown key qqq; known keys are method, dataset"),
        ({"participants": 0}, "participants = 0: must be greater than or equal to 1"),
        ({"participants": 2.5}, "participants = 2.5: must be a whole number."),
        ({"rounds": "ten"}, "rounds = 'ten': must be a whole number."),
        ({"seed": True}, "seed = true: must be a number."),
        ({"learning-rate": False}, "learning-rate = false: must be a number."),
        ({"momentum": "much"}, "momentum = 'much': must be a number."),
        ({"learning-rate": float("nan")}, "learning-rate = nan: must be a finite number"),
        ({"p-min": 0.5, "p-max": 0.3}, "p-min = 0.5 must not be above p-max = 0.3"),
        ({"p-min": 0.0}, "p-min = 0.0: must be greater than 0"),
        ({"held-out-fraction": 1.0}, "held-out-fraction = 1.0: must be less than 1"),
        ({"solver": "magic"}, "solver = 'magic': must be 'exact' or 'annealing'"),
        ({"device": "tpu"}, "device = 'tpu': must be 'auto', 'cpu', 'cuda' or 'mps'"),
        ({"partition": "iid"}, "unknown partition; allowed values are homogeneous; dirichlet"),
        ({"partition": "dirichlet"}, "it takes 1 number(s); write dirichlet:ALPHA"),
        ({"partition": "dirichlet:x"}, "its numbers cannot be read; write dirichlet:ALPHA"),
        ({"partition": "dirichlet:0"}, "ALPHA must be a finite number above 0"),
        ({"partition": "dirichlet:nan"}, "ALPHA must be a finite number above 0"),
        ({"partition": "label-skew:1.5"}, "CLASSES must be a whole number"),
        ({"partition": "quantity-skew:0.4,3"}, "SHARE x HOLDERS at most 1"),
        (
            {"partition": "quantity-skew:0.1,6", "participants": 3},
            "has more holders than participants = 3",
        ),
        ({"participation": "rates:2,1"}, "LOW and HIGH must be rates from 0 to 1"),
        ({"participation": "sample:0"}, "FRACTION must be above 0 and at most 1"),
        ({"behaviour": "noise"}, "it takes 1 number(s); write noise:DEVIATION"),
        ({"behaviour": "zeros,zeros", "participants": 1}, "more entries than participants = 1"),
        ({"allocation": "keep"}, "which only reward = 'training-time' gives"),
        (
            {"validation": False, "calibration": "all"},
            "calibration = 'all' needs validation data, but validation = false",
        ),
        (
            {"validation": False, "measure-alone": True},
            "measure-alone = true needs validation data",
        ),
        ({"validation": "maybe"}, "validation = 'maybe': must be true or false."),
        (
            {"reward": "never"},
            "reward = 'never': must be 'post-training', 'training-time' or 'earned'",
        ),
        (
            {"reward": "earned", "validation": False},
            "reward = 'earned' measures every level in every round and needs validation data, but "
            "validation = false; use reward = 'training-time', or 'post-training'",
        ),
        ({"disclosure": -1}, "disclosure = -1: must be greater than or equal to 0"),
        ({"gamma": 1.0}, "gamma = 1.0: must be less than 1"),
        ({"batch-size": 10**20}, "must be less than or equal to 10000000"),
        ({"epsilon": 1e-200}, "epsilon = 1e-200: must be greater than or equal to 0.000000000001"),
        ({"seed": 2**63}, "seed = 9223372036854775808: must be less than 9223372036854775808"),
        ({"seed": -1, "solver": "x"}, "seed = -1: must be greater than or equal to 0"),
    ],
)
def test_a_bad_value_is_named_with_what_is_allowed(values: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RunConfig.parse(values)
    assert says in str(caught.value)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "allocation"),
    [
        ({}, "accuracy"),
        ({"validation": "false"}, "width"),
        ({"validation": False, "reward": "training-time"}, "keep"),
        ({"reward": "training-time", "allocation": "accuracy"}, "accuracy"),
    ],
)
def test_the_usual_allocation_follows_from_the_rest(
    values: dict[str, Any], allocation: str
) -> None:
    assert RunConfig.parse(values).allocation == allocation


def test_every_setting_says_which_page_explains_it() -> None:
    for name, field in RunConfig.model_fields.items():
        assert isinstance(field.json_schema_extra, dict), name
        page, _, anchor = str(field.json_schema_extra["page"]).partition("#")
        text = (DOCS / page).read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        slugs = {re.sub(r"[^\w -]", "", one).strip().lower().replace(" ", "-") for one in headings}
        assert not anchor or anchor in slugs, name


def test_a_setting_that_was_renamed_is_still_read() -> None:
    assert RunConfig.parse({"quorum": 2}).join_quorum == 2


@pytest.mark.parametrize(
    ("values", "reward"),
    [
        ({}, "earned"),
        ({"reward": "auto"}, "earned"),
        ({"reward": "training-time"}, "training-time"),
        ({"validation": False, "contribution": "cgsv"}, "training-time"),
        ({"allocation": "width"}, "training-time"),
        ({"members-trusted-with-full-model": True}, "post-training"),
        ({"method": "iafl"}, "post-training"),
        ({"method": "cgsv"}, "post-training"),
    ],
)
def test_a_deployed_federation_does_not_trust_its_members(
    values: dict[str, Any], reward: str
) -> None:
    assert RunConfig.parse(values, deployed=True).reward == reward
    assert RunConfig.parse(values).reward == values.get("reward", "post-training").replace(
        "auto", "post-training"
    )


def test_post_training_rewards_are_refused_where_members_are_not_trusted() -> None:
    with pytest.raises(ConfigError, match="set members-trusted-with-full-model = true") as caught:
        RunConfig.parse({"reward": "post-training"}, deployed=True)
    assert "reward = 'earned'" in str(caught.value)
    # What is left of an earlier run can still be delivered.
    RunConfig.parse({"reward": "post-training", "deliver": "runs/first"}, deployed=True)


@pytest.mark.parametrize(
    ("values", "spread", "narrowest"),
    [
        ({"p-min": 0.3}, 0.4, 0.3),
        ({}, 0.4, 0.25),  # a line needs no room
        ({"objective": "even"}, None, 0.25),  # contributions are not known yet
        ({"objective": "even"}, 0.02, 0.25),
        ({"objective": "even"}, 0.4, 0.1),
        ({"objective": "even", "reward": "earned"}, 0.4, 0.25),
        ({"p-max": 0.2}, None, 0.2),
    ],
)
def test_the_narrowest_width_follows_the_contributions_where_even_gains_are_asked_for(
    values: dict[str, Any], spread: float | None, narrowest: float
) -> None:
    assert RunConfig.parse(values).narrowest(spread) == narrowest
