"""Fair rewards in federated learning: every participant gets a model worth its contribution.

The public names, typed for editors and mypy. Each is imported when it is first used: importing the
package alone loads neither torch nor Flower.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aequa_flwr.aggregation import MaskedSum
    from aequa_flwr.allocation import allocate
    from aequa_flwr.data import Schema
    from aequa_flwr.errors import UserError
    from aequa_flwr.federation import make_client_app
    from aequa_flwr.results import RunRecord, load_record
    from aequa_flwr.rewards import Run, load_reward, load_run
    from aequa_flwr.server import AequaStrategy
    from aequa_flwr.settings import RunConfig
    from aequa_flwr.simulation import simulate
    from aequa_flwr.slim import embed, extract

# pyproject.toml has it too, because Flower reads it there; a test keeps them equal.
__version__ = "0.1.0"
__all__ = [
    "AequaStrategy",
    "MaskedSum",
    "Run",
    "RunConfig",
    "RunRecord",
    "Schema",
    "UserError",
    "allocate",
    "embed",
    "extract",
    "load_record",
    "load_reward",
    "load_run",
    "make_client_app",
    "simulate",
]
_ROOMS = {
    "AequaStrategy": "server",
    "MaskedSum": "aggregation",
    "Run": "rewards",
    "RunConfig": "settings",
    "RunRecord": "results",
    "Schema": "data",
    "UserError": "errors",
    "allocate": "allocation",
    "embed": "slim",
    "extract": "slim",
    "load_record": "results",
    "load_reward": "rewards",
    "load_run": "rewards",
    "make_client_app": "federation",
    "simulate": "simulation",
}


def __getattr__(name: str) -> object:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"aequa_flwr.{_ROOMS[name]}"), name)


def __dir__() -> list[str]:
    """Return what tab completion offers: the public names, and what every module has."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
