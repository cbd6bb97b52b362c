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
    "On data that nobody holds and nothing was chosen on; the paper has validation data only, so "
    "there is no number of its to compare with."
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
        "Between the accuracies of the rewards and of models trained alone; higher is better.",
        "main",
        (PEARSON,),
        ranked=frozenset({"pearson"}),
    ),
    Plan(
        "Collaboration gain",
        "Table 7; FEMNIST: Table 4",
        "Mean (MCG, higher is better) and standard deviation (CGS, lower is better; ddof = 0) over "
        "the participants of what they gain over training alone, in percentage points.",
        "main",
        (MCG, CGS),
        ranked=frozenset({"cgs"}),
    ),
    Plan(
        "Collaboration gain with a narrower p_min",
        "Table 8",
        "As above, Aequa with p_min = 0.1; the other methods know no widths.",
        "narrow",
        (MCG, CGS),
        ranked=frozenset({"cgs"}),
    ),
    Plan(
        "Pearson correlation with a narrower p_min",
        "",
        "The same runs; the paper has no correlations of them.",
        "narrow",
        (PEARSON,),
        ranked=frozenset({"pearson"}),
    ),
    Plan(
        "Headroom for even gains",
        "",
        "The least accurate width that could be a reward, and how accurate it may be at most for "
        "everybody to gain alike: the smallest contribution plus what the largest contributor "
        "gains with the full model. The paper assumes that there is that much room (section 4.2) "
        "where it shows that the correlation is 1 (its Lemma 4). Both in per cent, of Aequa's "
        "runs above with p_min = 0.25.",
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
        "Participation as the contribution",
        "Table 3",
        "Pearson between the accuracies of the rewards and how often a participant took part, and "
        "balanced accuracy in per cent; higher is better. The paper does not say how the data is "
        "split.",
        "participation",
        (CONTRIBUTION_PEARSON, ACCURACY),
        ranked=frozenset({"pearson", "accuracy"}),
    ),
    Plan(
        "Width as the reward",
        "Table 9",
        "The server has no data to measure widths on and matches widths, not accuracies. Pearson "
        "between contributions and widths, and between contributions and accuracies.",
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
