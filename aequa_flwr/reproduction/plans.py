"""What each table compares: which measures of which methods, and where the paper has them."""

from dataclasses import dataclass, replace

from aequa_flwr.reproduction.published import METHODS
from aequa_flwr.reproduction.runs import (
    ACCURACY,
    CGS,
    CONTRIBUTION_PEARSON,
    LOWEST,
    MCG,
    NEEDED,
    PEARSON,
    WIDTH_PEARSON,
    Measure,
)
from aequa_flwr.reproduction.split import OBJECTIVE_MEASURES


@dataclass(frozen=True)
class Plan:
    """What a table compares: measures of methods in an experiment.

    ``source`` is empty where the paper has no such table. ``ranked`` are the measures that have a
    best method, ``held_out`` is whether ours are on held-out data, of which the paper has none.
    """

    title: str
    source: str
    about: str
    experiment: str
    measures: tuple[Measure, ...]
    methods: tuple[str, ...] = tuple(METHODS)
    ranked: frozenset[str] = frozenset()
    held_out: bool = False


_UNTOUCHED = (
    "On held-out data, which no participant holds and nothing was chosen on. The paper reports "
    "validation data only, so there is no number to compare with."
)
PLANS = (
    Plan(
        "Predictive performance",
        "Table 5; FEMNIST: Table 4",
        "Balanced accuracy of the full model in per cent; higher is better.",
        "main",
        (ACCURACY,),
        ranked=frozenset({"accuracy"}),
    ),
    Plan(
        "Pearson correlation",
        "Table 6; FEMNIST: Table 4",
        "Between reward accuracies and standalone accuracies; higher is better.",
        "main",
        (PEARSON,),
        ranked=frozenset({"pearson"}),
    ),
    Plan(
        "Collaboration gain",
        "Table 7; FEMNIST: Table 4",
        "Mean collaboration gain (MCG, higher is better) and collaboration gain spread (CGS, the "
        "standard deviation with ddof = 0, lower is better), in percentage points.",
        "main",
        (MCG, CGS),
        ranked=frozenset({"cgs"}),
    ),
    Plan(
        "Collaboration gain with a narrower p_min",
        "Table 8",
        "As above, for Aequa with p_min = 0.1; the other methods have no widths.",
        "narrow",
        (MCG, CGS),
        ranked=frozenset({"cgs"}),
    ),
    Plan(
        "Pearson correlation with a narrower p_min",
        "",
        "The same runs; the paper does not report their correlations.",
        "narrow",
        (PEARSON,),
        ranked=frozenset({"pearson"}),
    ),
    Plan(
        "Headroom for even gains",
        "",
        "The accuracy of the least accurate width, and how accurate it may be at most for even "
        "gains: the smallest contribution plus the gain of the largest contributor with the full "
        "model. The paper assumes this headroom (section 4.2) where it shows that the correlation "
        "is 1 (Lemma 4). Both in per cent, for Aequa's runs above with p_min = 0.25.",
        "main",
        (LOWEST, NEEDED, PEARSON),
        ("aequa",),
    ),
    Plan(
        "Headroom for even gains with a narrower p_min",
        "",
        "The same with p_min = 0.1.",
        "narrow",
        (LOWEST, NEEDED, PEARSON),
        ("aequa",),
    ),
    Plan(
        "Even and proportional rewards",
        "",
        "Aequa's runs above, allocated again from their curves: with equation 3 (even), and along "
        "a line where even gains are impossible (proportional). Pearson on validation and on "
        "held-out data, and the mean gain in percentage points.",
        "main",
        OBJECTIVE_MEASURES,
        ("aequa",),
    ),
    Plan(
        "Participation as the contribution",
        "Table 3",
        "Pearson between reward accuracies and participation rates, and balanced accuracy in per "
        "cent; higher is better. The paper does not say how the data is split.",
        "participation",
        (CONTRIBUTION_PEARSON, ACCURACY),
        ranked=frozenset({"pearson", "accuracy"}),
    ),
    Plan(
        "Width as the reward",
        "Table 9",
        "The server has no data to measure widths on, so it matches widths instead of accuracies. "
        "Pearson between contributions and widths, and between contributions and accuracies.",
        "width",
        (WIDTH_PEARSON, replace(CONTRIBUTION_PEARSON, name="Pearson of accuracies")),
        ("aequa",),
    ),
)
HELD_OUT_PLANS = (
    Plan(
        "Predictive performance, held-out data",
        "",
        _UNTOUCHED,
        "main",
        (ACCURACY,),
        ranked=frozenset({"accuracy"}),
        held_out=True,
    ),
    Plan(
        "Pearson correlation, held-out data",
        "",
        _UNTOUCHED,
        "main",
        (PEARSON,),
        ranked=frozenset({"pearson"}),
        held_out=True,
    ),
)
