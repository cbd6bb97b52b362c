"""Settings: every key of a run in one validated class, and what "auto" stands for."""

from aequa_flwr.settings.config import DATASETS, ConfigError, RunConfig, current_keys

__all__ = ["DATASETS", "ConfigError", "RunConfig", "current_keys"]
