"""RunConfig: the typed, validated view of Flower's run config. Nothing else reads it."""

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from aequa_flwr.data import DataSpec, read_partition
from aequa_flwr.errors import UsageError
from aequa_flwr.methods import About, Value, about_method, read_participation
from aequa_flwr.options import Spec, kind_of
from aequa_flwr.settings.behaviour import read_behaviours

T = TypeVar("T")
DatasetName = Literal[
    "digits",
    "mnist",
    "fashion-mnist",
    "svhn",
    "cifar10",
    "cifar100",
    "sst",
    "femnist",
    # The user's own: a folder of images by class, .npz files with x and y, .tsv files of text.
    "images",
    "arrays",
    "text",
]
DATASETS: tuple[str, ...] = get_args(DatasetName)
# What a value of the wrong type must be; pydantic's own words are for programmers.
_KINDS = {
    **dict.fromkeys(("int_parsing", "int_from_float", "int_type"), "must be a whole number"),
    **dict.fromkeys(("float_parsing", "float_type"), "must be a number"),
    **dict.fromkeys(("bool_parsing", "bool_type"), "must be true or false"),
    "string_type": "must be text",
}
# Facts about a setting beyond its type, noted at its field. Standalone models depend on it: who
# holds what, the network, the training.
_ALONE: dict[str, Any] = {"alone": True}
# Where a run's files are and who follows it, which does not change what it computes.
_PLACE: dict[str, Any] = {"place": True}
# How long to wait, which may change when a run is resumed.
_PATIENCE: dict[str, Any] = {"may-change": True}
# Counts beyond this are typos, and some would not fit a protocol integer.
_MOST = 10_000_000


# Settings that had another name in an earlier version, which checkpoints and records still have.
_RENAMED = {"quorum": "join-quorum"}


class ConfigError(UsageError):
    """Invalid settings; the text names the key and the allowed values."""


@dataclass(frozen=True)
class Recipe:
    """What "auto" means for one data set."""

    network: str
    rounds: int
    batch_size: int
    learning_rate: float
    lr_schedule: str = "paper"
    partition: str = "homogeneous"
    clip_norm: float = 0.0


# The paper's settings (appendix B) for its data sets, except for the learning rate of SST. There a
# participant has 7 batches a round. After 700 steps with 0.01, a standalone model still had a
# balanced accuracy of 20 %, which is chance. With 0.5, half of the standalone models never left
# chance, because one long step killed their ReLUs; clipped gradients prevent that. Digits has 1/40
# of their examples: small batches and a larger, decaying learning rate reach its plateau in 40
# rounds. Its shares are unequal by default, so that contributions differ in a first run.
RECIPES: Mapping[str, Recipe] = {
    "digits": Recipe("small-cnn", 40, 16, 0.03, "step", "dirichlet:1"),
    "mnist": Recipe("cnn", 50, 128, 0.01),
    "fashion-mnist": Recipe("cnn", 50, 128, 0.01),
    "svhn": Recipe("large-cnn", 50, 128, 0.01),
    "cifar10": Recipe("resnet18", 100, 128, 0.01),
    "cifar100": Recipe("resnet18", 100, 128, 0.01),
    "sst": Recipe("lstm", 100, 128, 0.5, clip_norm=1.0),
    "femnist": Recipe("femnist-cnn", 50, 128, 0.01, partition="natural"),
    "images": Recipe("cnn", 50, 32, 0.01),
    "arrays": Recipe("cnn", 50, 32, 0.01),
    "text": Recipe("lstm", 100, 32, 0.2),
}


class RunConfig(BaseModel):
    """Every setting of a run; its keys are kebab-case outside Python, as in Flower.

    "auto" stands for the value that suits the data set (RECIPES) or the method. It is resolved
    here, so that a RunConfig holds only final values.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        alias_generator=lambda name: name.replace("_", "-"),
        allow_inf_nan=False,
    )

    method: str = Field("aequa", description="aequa, or a baseline to compare it with")
    dataset: DatasetName = Field(
        "digits", description="the data set; digits is built in", json_schema_extra=_ALONE
    )
    data_dir: str = Field(
        "", description="folder or file that holds the data set", json_schema_extra=_PLACE
    )
    cache_dir: str = Field(
        "",
        description="folder of prepared data sets; empty: the user's cache",
        json_schema_extra=_PLACE,
    )
    max_length: int = Field(
        60, ge=1, le=_MOST, description="longest text in words", json_schema_extra=_ALONE
    )
    download: bool = Field(False, description="download the data set if it is missing")
    partition: str = Field(
        "auto", description="how the training data is split", json_schema_extra=_ALONE
    )
    participants: int = Field(
        10, ge=1, le=_MOST, description="number of participants", json_schema_extra=_ALONE
    )
    held_out_fraction: float = Field(
        0.05,
        ge=0.0,
        lt=1.0,
        description="fraction of the training data kept as a test, which no participant holds",
        json_schema_extra=_ALONE,
    )
    network: str = Field(
        description="a name of `aequa networks`, or my_package.nets:make", json_schema_extra=_ALONE
    )
    rounds: int = Field(
        ge=1, le=_MOST, description="rounds of joint training", json_schema_extra=_ALONE
    )
    local_epochs: int = Field(
        1,
        ge=1,
        le=_MOST,
        description="passes of a participant over its own data in a round",
        json_schema_extra=_ALONE,
    )
    batch_size: int = Field(
        ge=1, le=_MOST, description="examples in a batch", json_schema_extra=_ALONE
    )
    learning_rate: float = Field(
        gt=0.0, description="learning rate of SGD in the first round", json_schema_extra=_ALONE
    )
    lr_schedule: Literal["paper", "step", "constant"] = Field(
        description="step: x0.1 at 50 % and 75 % of the rounds; paper: step from 100 rounds on",
        json_schema_extra=_ALONE,
    )
    momentum: float = Field(
        0.9,
        ge=0.0,
        lt=1.0,
        description="momentum of SGD; reset in every round",
        json_schema_extra=_ALONE,
    )
    clip_norm: float = Field(
        ge=0.0,
        description="gradients are clipped to this norm; 0: no clipping",
        json_schema_extra=_ALONE,
    )
    p_min: float = Field(gt=0.0, le=1.0, description="narrowest width")
    p_max: float = Field(1.0, gt=0.0, le=1.0, description="widest width")
    max_levels: int = Field(64, ge=2, le=_MOST, description="most widths that rewards can have")
    distillation: bool = Field(
        False, description="train the narrow pass on the outputs of the wide one"
    )
    augmentation: Literal["none", "crop-flip"] = Field(
        "none",
        description="crop-flip: random crops of images padded by 4 pixels, half of them mirrored",
        json_schema_extra=_ALONE,
    )
    calibration: Literal["none", "untrained", "all"] = Field(
        "none", description="which levels get BatchNorm statistics measured on the server's inputs"
    )
    weighting: Literal["equal", "examples"] = Field(
        "equal", description="weight of an update in the average"
    )
    participation: str = Field("all", description="which participants take part in a round")
    behaviour: str = Field(
        "",
        description="faults of simulated participants, in their order; empty: none",
        json_schema_extra=_ALONE,
    )
    contribution: str = Field(description="how contributions are assessed")
    measure_alone: bool = Field(
        False, description="train standalone models even if the contribution does not need them"
    )
    standalone_from: str = Field(
        "",
        description="run with the same data and training whose standalone accuracies are reused",
        json_schema_extra=_PLACE,
    )
    validation: bool = Field(
        True, description="whether the server has validation data", json_schema_extra=_ALONE
    )
    utility_examples: int = Field(
        2000,
        ge=0,
        le=_MOST,
        description="validation examples used to assess contributions in rounds; 0: all",
    )
    reward: Literal["post-training", "training-time"] = Field(
        "post-training",
        description="when rewards are given: after training, or in every round",
    )
    gamma: float = Field(
        0.5, ge=0.0, lt=1.0, description="training-time: weight of earlier rounds in a contribution"
    )
    nu: float = Field(
        1.0, gt=0.0, le=100.0, description="training-time: width = (contribution / largest) ^ nu"
    )
    allocation: Literal["accuracy", "width", "keep"] = Field(
        description="what rewards are matched by: accuracy, width; keep: the last trained width",
    )
    curve_fit: Literal["none", "isotonic"] = Field(
        "none", description="smooth the accuracy curve before the allocation"
    )
    solver: Literal["exact", "annealing"] = Field(
        "exact", description="solver of the allocation; annealing is the paper's"
    )
    epsilon: float = Field(
        1e-6,
        ge=1e-12,
        le=1e6,
        description="gains with a variance below this count as even",
    )
    # The limits of a protocol integer.
    seed: int = Field(
        1, ge=0, lt=2**63, description="seed of all random numbers", json_schema_extra=_ALONE
    )
    device: Literal["auto", "cpu", "cuda", "mps"] = Field(
        "auto", description="where to train; auto: CUDA, then MPS, then the CPU"
    )
    precision: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="bfloat16: mixed precision in the forward passes",
        json_schema_extra=_ALONE,
    )
    threads: int = Field(1, ge=1, le=1024, description="CPU threads of one worker")
    join_timeout_s: float = Field(
        120.0,
        gt=0.0,
        description="seconds to wait for participants to join",
        json_schema_extra=_PATIENCE,
    )
    join_quorum: int = Field(
        1, ge=1, le=_MOST, description="fewest participants that must have joined by then"
    )
    round_quorum: int = Field(
        1, ge=1, le=_MOST, description="fewest trained participants for a round to count"
    )
    round_attempts: int = Field(
        2, ge=1, le=1000, description="attempts at a round below round-quorum before the run stops"
    )
    norm_limit: float = Field(
        0.0, ge=0.0, description="longest update, in medians of its round; 0: no limit"
    )
    set_aside_after: int = Field(
        3,
        ge=0,
        le=_MOST,
        description="refused replies in a row until a participant is dropped; 0: never",
    )
    roster: str = Field(
        "",
        description="file or folder on the server that binds names to nodes",
        json_schema_extra=_PLACE,
    )
    deliver: str = Field(
        "",
        description="folder of an earlier run: only deliver its remaining rewards",
        json_schema_extra=_PLACE,
    )
    resume: str = Field(
        "",
        description="folder of an interrupted run with the same settings, to resume",
        json_schema_extra=_PLACE,
    )
    round_timeout_s: float = Field(
        3600.0,
        gt=0.0,
        description="seconds to wait for the replies of a round",
        json_schema_extra=_PATIENCE,
    )
    tensorboard: bool = Field(
        False,
        description="also write the curves of the run as TensorBoard event files",
        json_schema_extra=_PLACE,
    )
    tracker: str = Field(
        "",
        description="user-defined tracker, as my_package.module:Tracker",
        json_schema_extra=_PLACE,
    )
    output: str = Field(
        "", description="the run folder, as an absolute path", json_schema_extra=_PLACE
    )

    @model_validator(mode="before")
    @classmethod
    def _resolve_auto(cls, values: Any) -> Any:
        values = current_keys({str(k).replace("_", "-"): v for k, v in dict(values).items()})
        for name, field in cls.model_fields.items():
            key = field.alias or name
            # pydantic takes true for 1.
            if field.annotation in (int, float) and isinstance(values.get(key), bool):
                raise ValueError(f"{key} = {str(values[key]).lower()}: must be a number")
        recipe = RECIPES.get(str(values.get("dataset", "digits")), RECIPES["digits"])
        automatic: dict[str, Value] = {
            "partition": recipe.partition,
            "network": recipe.network,
            "rounds": recipe.rounds,
            "batch-size": recipe.batch_size,
            "learning-rate": recipe.learning_rate,
            "lr-schedule": recipe.lr_schedule,
            "clip-norm": recipe.clip_norm,
            **_usual(values),
        }
        for key, value in automatic.items():
            if values.get(key, "auto") == "auto":
                values[key] = value
        return values

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.p_min > self.p_max:
            raise ValueError(f"p-min = {self.p_min:g} must not be above p-max = {self.p_max:g}")
        if self.dataset != "digits" and not self.data_dir:
            raise ValueError(f"data-dir must name the folder that holds {self.dataset}")
        spec = _read("partition", self.partition, read_partition)
        if spec.kind == "quantity-skew" and spec.numbers[1] > self.participants:
            raise ValueError(
                f"partition = {self.partition!r} has more holders than participants = "
                f"{self.participants}"
            )
        for key, quorum in (("join-quorum", self.join_quorum), ("round-quorum", self.round_quorum)):
            if quorum > self.participants:
                raise ValueError(
                    f"{key} = {quorum} must not be above participants = {self.participants}"
                )
        _read("participation", self.participation, read_participation)
        if len(_read("behaviour", self.behaviour, read_behaviours)) > self.participants:
            raise ValueError(
                f"behaviour = {self.behaviour!r} has more entries than participants = "
                f"{self.participants}"
            )
        return self

    @model_validator(mode="after")
    def _check_method(self) -> Self:
        values = self.to_flower()
        for key, allowed in self._about.allows.items():
            value = values[key]
            if (kind_of(value) if isinstance(value, str) else value) in allowed:
                continue
            reason = f"{key} = {_written(value)} is not possible with method = {self.method!r}"
            if key == "allocation" and value == "keep":
                reason = (
                    "allocation = 'keep' keeps the width of the last round, which only reward = "
                    "'training-time' gives"
                )
            elif key == "contribution":
                reason = f"method = {self.method!r} does not reward by {key} = {value!r}"
            raise ValueError(f"{reason}; use {' or '.join(map(_written, allowed))}")
        return self

    @model_validator(mode="after")
    def _check_rewards(self) -> Self:
        if self.validation:
            return self
        needs = {
            "allocation = 'accuracy'": self.allocation == "accuracy",
            f"calibration = {self.calibration!r}": self.calibration != "none",
            "measure-alone = true": self.measure_alone,
        }
        for setting, given in needs.items():
            if given:
                raise ValueError(f"{setting} needs validation data, but validation = false")
        return self

    @property
    def data_spec(self) -> DataSpec:
        """The settings that decide who holds what."""
        return DataSpec(
            dataset=self.dataset,
            data_dir=self.data_dir,
            download=self.download,
            partition=read_partition(self.partition),
            participants=self.participants,
            # A server without validation data does not measure, so it holds nothing out.
            held_out_fraction=self.held_out_fraction if self.validation else 0.0,
            seed=self.seed,
            cache_dir=self.cache_dir,
            max_length=self.max_length,
            validation=self.validation,
        )

    @property
    def behaviours(self) -> tuple[Spec, ...]:
        """The behaviours of the first participants; the others are honest."""
        return read_behaviours(self.behaviour)

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """Validate Flower's run config. Raises ConfigError with one sentence for each mistake."""
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            sentences = [_sentence(dict(item)) for item in error.errors()]
            raise ConfigError("; ".join(sentences) + ".") from None

    def to_flower(self) -> dict[str, Value]:
        """Return the values under their kebab-case keys."""
        return self.model_dump(by_alias=True)

    def to_record(self) -> dict[str, Value]:
        """Return the settings that a run computes with, without those of files and trackers."""
        places = self.noted("place")
        return {key: value for key, value in self.to_flower().items() if key not in places}

    def alone_settings(self) -> dict[str, Value]:
        """Return the settings that standalone models depend on."""
        values = self.to_flower()
        return {key: values[key] for key in self.noted("alone")}

    @classmethod
    def may_change(cls) -> tuple[str, ...]:
        """Return the settings that may change when a run is resumed."""
        return cls.noted("may-change")

    @classmethod
    def noted(cls, fact: str) -> tuple[str, ...]:
        """Return the settings whose field has the fact ``fact``."""
        return tuple(
            field.alias or name
            for name, field in cls.model_fields.items()
            if isinstance(field.json_schema_extra, dict) and field.json_schema_extra.get(fact)
        )

    @property
    def _about(self) -> About:
        return about_method(self.method, self.reward)


def current_keys(values: Mapping[str, T]) -> dict[str, T]:
    """Return settings, perhaps of an earlier version, under their current names."""
    return {_RENAMED.get(key, key): value for key, value in values.items()}


def _usual(values: Mapping[str, Any]) -> dict[str, Value]:
    """Return what "auto" means where it depends on the method and the reward."""
    about = about_method(str(values.get("method", "aequa")), str(values.get("reward", "")))
    usual = dict(about.usual)
    try:
        measured = TypeAdapter(bool).validate_python(values.get("validation", True))
    except ValidationError:
        measured = True  # the field itself reports what is wrong
    if usual.get("allocation") == "accuracy" and not measured:
        usual["allocation"] = "width"
    return usual


def _written(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else repr(value)


def _read(key: str, text: str, reader: Callable[[str], T]) -> T:
    try:
        return reader(text)
    except ValueError as error:
        raise ValueError(f"{key} = {text!r}: {error}") from None


def _sentence(error: dict[str, Any]) -> str:
    key = str(error["loc"][0]) if error["loc"] else ""
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    if error["type"] == "extra_forbidden":
        known = [field.alias or name for name, field in RunConfig.model_fields.items()]
        near = difflib.get_close_matches(key, known, n=1)
        hint = f"did you mean {near[0]}" if near else f"known keys are {', '.join(known)}"
        return f"unknown key {key}; {hint}"
    reason = _KINDS.get(error["type"], error["msg"])
    reason = re.sub(r"^Input should be ", "must be ", reason)
    return f"{key} = {error['input']!r}: {reason[0].lower()}{reason[1:]}"
