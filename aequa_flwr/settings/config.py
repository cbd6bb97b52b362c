"""RunConfig: the typed, validated view of Flower's run config. Nothing else reads it."""

import difflib
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from aequa_flwr.data import DataSpec, read_partition
from aequa_flwr.errors import UsageError
from aequa_flwr.methods import About, Value, about_method, read_participation
from aequa_flwr.options import Spec, kind_of
from aequa_flwr.settings.behaviour import read_behaviours
from aequa_flwr.settings.recipes import RECIPES, DatasetName

T = TypeVar("T")
# What a value of the wrong type must be; pydantic's own words are for programmers.
_KINDS = {
    **dict.fromkeys(("int_parsing", "int_from_float", "int_type"), "must be a whole number"),
    **dict.fromkeys(("float_parsing", "float_type"), "must be a number"),
    **dict.fromkeys(("bool_parsing", "bool_type"), "must be true or false"),
    "string_type": "must be text",
}
# What p-min = "auto" chooses from, and the spread of contributions that 0.25 is enough for: the
# accuracies of the levels from 0.25 on spread over 3 to 10 points (docs/allocation.md).
_USUAL_P_MIN, _SMALL_P_MIN, _SPREAD = 0.25, 0.1, 0.05
# The key under which validation knows whether the federation is deployed.
_DEPLOYED = "deployed"
# Counts beyond this are typos, and some would not fit a protocol integer.
_MOST = 10_000_000


# Settings that had another name in an earlier version, which checkpoints and records still have.
_RENAMED = {"quorum": "join-quorum"}


def _facts(
    page: str, *, alone: bool = False, place: bool = False, may_change: bool = False
) -> dict[str, Any]:
    """Return what is to know about a setting beyond its type; it is noted at its field.

    ``page`` of docs/ says more about it. Standalone models depend on a setting with ``alone``: who
    holds what, the network, the training. With ``place`` it says where files are or who follows
    the run, which does not change what is computed. With ``may_change`` it may have another value
    when a run is resumed.
    """
    return {"page": page, "alone": alone, "place": place, "may-change": may_change}


class ConfigError(UsageError):
    """Invalid settings; the text names the key and the allowed values."""


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

    method: str = Field(
        "aequa",
        description="aequa, or a baseline to compare it with",
        json_schema_extra=_facts("baselines.md"),
    )
    dataset: DatasetName = Field(
        "digits",
        description="the data set; digits is built in",
        json_schema_extra=_facts("running.md#data-sets", alone=True),
    )
    data_dir: str = Field(
        "",
        description="folder or file that holds the data set",
        json_schema_extra=_facts("running.md#data-sets", place=True),
    )
    cache_dir: str = Field(
        "",
        description="folder of prepared data sets; empty: the user's cache",
        json_schema_extra=_facts("running.md#data-sets", place=True),
    )
    max_length: int = Field(
        60,
        ge=1,
        le=_MOST,
        description="longest text in words",
        json_schema_extra=_facts("running.md#data-sets", alone=True),
    )
    download: bool = Field(
        False,
        description="download the data set if it is missing",
        json_schema_extra=_facts("running.md#data-sets"),
    )
    partition: str = Field(
        "auto",
        description="how the training data is split",
        json_schema_extra=_facts("running.md#partitions", alone=True),
    )
    participants: int = Field(
        10,
        ge=1,
        le=_MOST,
        description="number of participants",
        json_schema_extra=_facts("running.md#partitions", alone=True),
    )
    held_out_fraction: float = Field(
        0.05,
        ge=0.0,
        lt=1.0,
        description="fraction of the training data kept as a test, which no participant holds",
        json_schema_extra=_facts("running.md#partitions", alone=True),
    )
    network: str = Field(
        description="a name of `aequa networks`, or my_package.nets:make",
        json_schema_extra=_facts("your-own.md#a-network", alone=True),
    )
    rounds: int = Field(
        ge=1,
        le=_MOST,
        description="rounds of joint training",
        json_schema_extra=_facts("running.md", alone=True),
    )
    local_epochs: int = Field(
        1,
        ge=1,
        le=_MOST,
        description="passes of a participant over its own data in a round",
        json_schema_extra=_facts("running.md", alone=True),
    )
    batch_size: int = Field(
        ge=1,
        le=_MOST,
        description="examples in a batch",
        json_schema_extra=_facts("running.md", alone=True),
    )
    learning_rate: float = Field(
        gt=0.0,
        description="learning rate of SGD in the first round",
        json_schema_extra=_facts("running.md", alone=True),
    )
    lr_schedule: Literal["paper", "step", "constant"] = Field(
        description="step: x0.1 at 50 % and 75 % of the rounds; paper: step from 100 rounds on",
        json_schema_extra=_facts("running.md", alone=True),
    )
    momentum: float = Field(
        0.9,
        ge=0.0,
        lt=1.0,
        description="momentum of SGD; reset in every round",
        json_schema_extra=_facts("running.md", alone=True),
    )
    clip_norm: float = Field(
        ge=0.0,
        description="gradients are clipped to this norm; 0: no clipping",
        json_schema_extra=_facts("running.md", alone=True),
    )
    p_min: Annotated[float, Field(gt=0.0, le=1.0)] | Literal["auto"] = Field(
        description="narrowest width (auto: 0.25, or 0.1 where even gains need narrower rewards)",
        json_schema_extra=_facts("allocation.md#the-narrowest-width"),
    )
    p_max: float = Field(
        1.0,
        gt=0.0,
        le=1.0,
        description="widest width",
        json_schema_extra=_facts("idea.md#one-network-many-sizes"),
    )
    max_levels: int = Field(
        64,
        ge=2,
        le=_MOST,
        description="most widths that rewards can have",
        json_schema_extra=_facts("idea.md#one-network-many-sizes"),
    )
    distillation: bool = Field(
        False,
        description="train the narrow pass on the outputs of the wide one",
        json_schema_extra=_facts("idea.md#one-network-many-sizes"),
    )
    augmentation: Literal["none", "crop-flip"] = Field(
        "none",
        description="crop-flip: random crops of images padded by 4 pixels, half of them mirrored",
        json_schema_extra=_facts("running.md", alone=True),
    )
    calibration: Literal["none", "untrained", "all"] = Field(
        "none",
        description="which levels get BatchNorm statistics measured on the server's inputs",
        json_schema_extra=_facts("your-own.md#batchnorm"),
    )
    weighting: Literal["equal", "examples"] = Field(
        "equal",
        description="weight of an update in the average",
        json_schema_extra=_facts("idea.md#aggregation-across-widths"),
    )
    participation: str = Field(
        "all",
        description="which participants take part in a round",
        json_schema_extra=_facts("running.md#contributions-and-rewards"),
    )
    behaviour: str = Field(
        "",
        description="faults of simulated participants, in their order; empty: none",
        json_schema_extra=_facts("contribution.md#how-well-they-find-poor-data", alone=True),
    )
    contribution: str = Field(
        description="how contributions are assessed", json_schema_extra=_facts("contribution.md")
    )
    measure_alone: bool = Field(
        False,
        description="train standalone models even if the contribution does not need them",
        json_schema_extra=_facts("running.md#contributions-and-rewards"),
    )
    standalone_from: str = Field(
        "",
        description="run with the same data and training whose standalone accuracies are reused",
        json_schema_extra=_facts("baselines.md#the-papers-tables", place=True),
    )
    validation: bool = Field(
        True,
        description="whether the server has validation data",
        json_schema_extra=_facts("running.md#contributions-and-rewards", alone=True),
    )
    utility_examples: int = Field(
        2000,
        ge=0,
        le=_MOST,
        description="validation examples used to assess contributions in rounds; 0: all",
        json_schema_extra=_facts("contribution.md"),
    )
    reward: Literal["post-training", "training-time", "earned"] = Field(
        description="when rewards are decided: at the end, by Algorithm 2, or in every round "
        "(auto: earned if deployed, else post-training)",
        json_schema_extra=_facts("running.md#contributions-and-rewards"),
    )
    members_trusted_with_full_model: bool = Field(
        False,
        description="deployed: post-training rewards, for which every member trains the full model",
        json_schema_extra=_facts("without-trusted-hardware.md#deployed-federations"),
    )
    disclosure: float = Field(
        0.0,
        ge=0.0,
        le=100.0,
        description="earned: points by which a model sent in a round may exceed what was earned",
        json_schema_extra=_facts("without-trusted-hardware.md"),
    )
    gamma: float = Field(
        0.5,
        ge=0.0,
        lt=1.0,
        description="training-time and earned: weight of earlier rounds in a contribution",
        json_schema_extra=_facts("contribution.md#from-a-contribution-to-a-reward"),
    )
    nu: float = Field(
        1.0,
        gt=0.0,
        le=100.0,
        description="training-time: width = (contribution / largest) ^ nu",
        json_schema_extra=_facts("contribution.md#from-a-contribution-to-a-reward"),
    )
    allocation: Literal["accuracy", "width", "keep"] = Field(
        description="what rewards are matched by: accuracy, width; keep: the last trained width",
        json_schema_extra=_facts("running.md#contributions-and-rewards"),
    )
    objective: Literal["even", "proportional"] = Field(
        "proportional",
        description="even gains (equation 3), or along a line where those are impossible",
        json_schema_extra=_facts("allocation.md#even-or-proportional"),
    )
    curve_fit: Literal["none", "isotonic"] = Field(
        "none",
        description="smooth the accuracy curve before the allocation",
        json_schema_extra=_facts("allocation.md"),
    )
    solver: Literal["exact", "annealing"] = Field(
        "exact",
        description="solver of the allocation; annealing is the paper's",
        json_schema_extra=_facts("allocation.md"),
    )
    epsilon: float = Field(
        1e-6,
        ge=1e-12,
        le=1e6,
        description="gains with a variance below this count as even",
        json_schema_extra=_facts("allocation.md"),
    )
    # The limits of a protocol integer.
    seed: int = Field(
        1,
        ge=0,
        lt=2**63,
        description="seed of all random numbers",
        json_schema_extra=_facts("running.md", alone=True),
    )
    device: Literal["auto", "cpu", "cuda", "mps"] = Field(
        "auto",
        description="where to train; auto: CUDA, then MPS, then the CPU",
        json_schema_extra=_facts("running.md#several-gpus-several-machines"),
    )
    precision: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="bfloat16: mixed precision in the forward passes",
        json_schema_extra=_facts("running.md#several-gpus-several-machines", alone=True),
    )
    threads: int = Field(
        1,
        ge=1,
        le=1024,
        description="CPU threads of one worker",
        json_schema_extra=_facts("running.md#several-gpus-several-machines"),
    )
    join_timeout_s: float = Field(
        120.0,
        gt=0.0,
        description="seconds to wait for participants to join",
        json_schema_extra=_facts("deployment.md#a-run", may_change=True),
    )
    join_quorum: int = Field(
        1,
        ge=1,
        le=_MOST,
        description="fewest participants that must have joined by then",
        json_schema_extra=_facts("deployment.md#a-run"),
    )
    round_quorum: int = Field(
        1,
        ge=1,
        le=_MOST,
        description="fewest trained participants for a round to count",
        json_schema_extra=_facts("running.md#when-a-participant-fails"),
    )
    round_attempts: int = Field(
        2,
        ge=1,
        le=1000,
        description="attempts at a round below round-quorum before the run stops",
        json_schema_extra=_facts("running.md#when-a-participant-fails"),
    )
    norm_limit: float = Field(
        0.0,
        ge=0.0,
        description="longest update, in medians of its round; 0: no limit",
        json_schema_extra=_facts("running.md#when-a-participant-fails"),
    )
    set_aside_after: int = Field(
        3,
        ge=0,
        le=_MOST,
        description="refused replies in a row until a participant is dropped; 0: never",
        json_schema_extra=_facts("running.md#when-a-participant-fails"),
    )
    roster: str = Field(
        "",
        description="file or folder on the server that binds names to nodes",
        json_schema_extra=_facts("deployment.md#a-run", place=True),
    )
    deliver: str = Field(
        "",
        description="folder of an earlier run: only deliver its remaining rewards",
        json_schema_extra=_facts("deployment.md#when-a-site-drops-out", place=True),
    )
    resume: str = Field(
        "",
        description="folder of an interrupted run with the same settings, to resume",
        json_schema_extra=_facts("faults.md", place=True),
    )
    round_timeout_s: float = Field(
        3600.0,
        gt=0.0,
        description="seconds to wait for the replies of a round",
        json_schema_extra=_facts("deployment.md#a-run", may_change=True),
    )
    tensorboard: bool = Field(
        False,
        description="also write the curves of the run as TensorBoard event files",
        json_schema_extra=_facts("running.md#trackers", place=True),
    )
    tracker: str = Field(
        "",
        description="user-defined tracker, as my_package.module:Tracker",
        json_schema_extra=_facts("running.md#trackers", place=True),
    )
    output: str = Field(
        "",
        description="the run folder, as an absolute path",
        json_schema_extra=_facts("running.md#the-run-folder", place=True),
    )

    @model_validator(mode="before")
    @classmethod
    def _resolve_auto(cls, values: Any, info: ValidationInfo) -> Any:
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
            "reward": _safe_reward(values, deployed=_is_deployed(info)),
        }
        _replace_auto(values, automatic)
        _replace_auto(values, _usual(values))
        return values

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.p_min != "auto" and self.p_min > self.p_max:
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
    def _check_trust(self, info: ValidationInfo) -> Self:
        if _is_deployed(info):
            self.check_deployable()
        return self

    @model_validator(mode="after")
    def _check_method(self) -> Self:
        if self.reward == "earned" and not self.validation:
            raise ValueError(
                "reward = 'earned' measures every level in every round and needs validation data, "
                "but validation = false; use reward = 'training-time', or 'post-training'"
            )
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

    def narrowest(self, spread: float | None = None) -> float:
        """Return the narrowest width; ``spread`` is that of known contributions, as accuracies.

        Even gains need levels whose accuracies spread as far as the contributions. Those from 0.25
        on spread over a few points, and a narrower one costs everybody's mean gain.
        """
        if self.p_min != "auto":
            return self.p_min
        wider = self.objective != "even" or self.reward != "post-training"
        usual = _USUAL_P_MIN if wider or spread is None or spread <= _SPREAD else _SMALL_P_MIN
        return min(usual, self.p_max)

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

    def check_deployable(self) -> None:
        """Raise ConfigError if real members would hold the full model and nobody trusts them."""
        if not self._about.entrusts or self.members_trusted_with_full_model or self.deliver:
            return
        raise ConfigError(
            f"reward = {self.reward!r} sends every member of a deployed federation the full model; "
            "use reward = 'earned' ('training-time' without validation data), or set "
            "members-trusted-with-full-model = true."
        )

    @classmethod
    def parse(cls, values: Mapping[str, Any], *, deployed: bool = False) -> Self:
        """Validate Flower's run config. Raises ConfigError with one sentence for each mistake.

        In a ``deployed`` federation "auto" stands for a reward that needs no trust in its members.
        """
        try:
            return cls.model_validate(dict(values), context={_DEPLOYED: deployed})
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


def _is_deployed(info: ValidationInfo) -> bool:
    return bool((info.context or {}).get(_DEPLOYED))


def _replace_auto(values: dict[str, Any], automatic: Mapping[str, Value]) -> None:
    for key, value in automatic.items():
        if values.get(key, "auto") == "auto":
            values[key] = value


def _safe_reward(values: Mapping[str, Any], *, deployed: bool) -> str:
    """Return what "auto" means for the reward: what the members can be trusted with."""
    trusted = _is_true(values.get("members-trusted-with-full-model", False), unclear=False)
    if not deployed or trusted or not about_method(str(values.get("method", "aequa"))).entrusts:
        return "post-training"
    measured = _is_true(values.get("validation", True), unclear=True)
    by_accuracy = values.get("allocation", "auto") in ("auto", "accuracy")
    return "earned" if measured and by_accuracy else "training-time"


def _is_true(value: Any, *, unclear: bool) -> bool:
    """Return a boolean setting as given; ``unclear`` if it is none, which its field reports."""
    try:
        return TypeAdapter(bool).validate_python(value)
    except ValidationError:
        return unclear


def _usual(values: Mapping[str, Any]) -> dict[str, Value]:
    """Return what "auto" means where it depends on the method and the reward."""
    about = about_method(str(values.get("method", "aequa")), str(values.get("reward", "")))
    usual = dict(about.usual)
    measured = _is_true(values.get("validation", True), unclear=True)
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
