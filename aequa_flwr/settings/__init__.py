"""Settings: every key of a run in one validated class, and what "auto" stands for."""

from aequa_flwr.settings.config import ConfigError, RunConfig, current_keys
from aequa_flwr.settings.recipes import DATASETS, RECIPES

__all__ = ["DATASETS", "RECIPES", "ConfigError", "RunConfig", "current_keys"]
