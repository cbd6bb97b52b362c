"""Run checks and print a line for each: ok, wrong soon, or wrong."""

from collections.abc import Callable, Iterable

from rich.console import Console

from aequa_flwr.deployment import DueSoon
from aequa_flwr.errors import UserError


def print_checks(
    console: Console, checks: Iterable[Callable[[], str]], *, only_problems: bool = False
) -> int:
    """Run ``checks`` and print a line for each; return 1 if anything must be fixed, else 0.

    A check returns a sentence if all is well, raises DueSoon for what will be wrong soon, and
    UserError for what is wrong.
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
            "Everything is in place." if not problems else f"{problems} problem(s) to fix.",
            highlight=False,
        )
    return 1 if problems else 0
