"""Print checks a line each: what is well, what will be wrong soon, what must be mended."""

from collections.abc import Callable, Iterable

from rich.console import Console

from aequa_flwr.deployment import DueSoon
from aequa_flwr.errors import UserError


def print_checks(
    console: Console, checks: Iterable[Callable[[], str]], *, only_problems: bool = False
) -> int:
    """Run ``checks`` and print what they say; returns 1 if anything must be mended.

    A check returns what is well, raises DueSoon for what will be wrong soon, and UserError for
    what is wrong.
    """
    problems = 0
    for check in checks:
        try:
            mark, text = "ok", check()
        except DueSoon as soon:
            mark, text = "SOON", str(soon)
        except UserError as problem:
            mark, text = "WRONG", str(problem)
            problems += 1
        if mark != "ok" or not only_problems:
            console.print(f"{mark:<6} {text}", highlight=False, markup=False, soft_wrap=True)
    if not only_problems:
        console.print(
            "Everything is in place." if not problems else f"{problems} thing(s) to mend.",
            highlight=False,
        )
    return 1 if problems else 0
