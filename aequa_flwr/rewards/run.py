"""A run that has ended: its record, its rewards and its report, from its folder."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from aequa_flwr.errors import UserError
from aequa_flwr.files import TemporaryFolder
from aequa_flwr.report import render_page, verdict
from aequa_flwr.results import REWARDS_FOLDER, RunRecord, load_record
from aequa_flwr.rewards.reward import load_reward

if TYPE_CHECKING:
    from torch import nn


class Rewards(Mapping[str, "nn.Module"]):
    """The rewards of a run by participant; each is loaded when it is first used.

    Rewards that a deployed participant stores on its own machine are not included.
    """

    def __init__(self, folder: Path, temporary: TemporaryFolder | None = None) -> None:
        self._temporary = temporary  # which must last as long as there is something to load
        found = sorted(path for path in folder.glob("*") if path.is_dir())
        self._folders = {path.name: path for path in found}
        self._loaded: dict[str, nn.Module] = {}

    def __getitem__(self, name: str) -> "nn.Module":
        if name not in self._loaded:
            self._loaded[name] = load_reward(self._folders[name])
        return self._loaded[name]

    def __repr__(self) -> str:
        return f"Rewards of {', '.join(self._folders) or 'nobody'}"

    def __iter__(self) -> Iterator[str]:
        return iter(self._folders)

    def __len__(self) -> int:
        return len(self._folders)


@dataclass(frozen=True)
class Run:
    """A finished run, as `simulate` and `load_run` return it.

    Printed, it says in one or two sentences how fair the rewards are.

    Attributes:
        folder: The folder with the files of the run. If it is temporary, it is removed with this
            object; `save` keeps a copy.
        record: Everything that was measured.
    """

    folder: Path
    record: RunRecord = field(repr=False)
    temporary: TemporaryFolder | None = field(default=None, repr=False, compare=False)

    @cached_property
    def rewards(self) -> Rewards:
        """The rewards by the name of the participant; each is a small `torch.nn.Module`."""
        return Rewards(self.folder / REWARDS_FOLDER, self.temporary)

    @cached_property
    def report(self) -> str:
        """The report as one self-contained HTML page."""
        return render_page(self.record)

    def save(self, folder: str | Path) -> "Run":
        """Copy all files of the run to ``folder``, which must not exist; return the run there."""
        target = Path(folder).expanduser()
        if target.exists():
            raise UserError(f"The folder {target} exists already; choose another.")
        shutil.copytree(self.folder, target)
        return Run(target, self.record)

    def __str__(self) -> str:
        return verdict(self.record)


def load_run(folder: str | Path) -> Run:
    """Return the run in ``folder``, which `aequa run`, `simulate` or an `AequaStrategy` wrote.

    Raises:
        UserError: There is no run, or its record cannot be read.
    """
    path = Path(folder).expanduser()
    return Run(path, load_record(path))
