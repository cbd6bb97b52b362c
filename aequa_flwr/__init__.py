"""Fair rewards in federated learning: every participant gets a model worth its contribution.

Public names, found where they live; importing the package alone imports nothing heavy.
"""

from importlib import import_module

__version__ = (
    "0.1.0"  # pyproject.toml has it too, as Flower reads it there; a test keeps them equal
)

_HOME = {
    "AequaStrategy": "aequa_flwr.strategy",
    "MaskedSum": "aequa_flwr.aggregation",
    "RunConfig": "aequa_flwr.config",
    "RunRecord": "aequa_flwr.record",
    "UserError": "aequa_flwr.errors",
    "allocate": "aequa_flwr.allocation",
    "embed": "aequa_flwr.slim",
    "extract": "aequa_flwr.slim",
    "load_record": "aequa_flwr.record",
    "load_reward": "aequa_flwr.rewards",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
