"""The server's side of a run: settings to a strategy, one state to the next, checkpoints."""

from aequa_flwr.server.assemble import assemble, run_federation
from aequa_flwr.server.caller_arrays import caller_settings
from aequa_flwr.server.checkpoint import CHECKPOINTS_FOLDER, load_checkpoint, reopen_run
from aequa_flwr.server.parts import (
    Parts,
    check_settings,
    method_of,
    prepare,
    prepare_simulation,
)
from aequa_flwr.server.redelivery import deliver_again
from aequa_flwr.server.run_folder import RunFolder, open_folder
from aequa_flwr.server.strategy import AequaStrategy

__all__ = [
    "CHECKPOINTS_FOLDER",
    "AequaStrategy",
    "Parts",
    "RunFolder",
    "assemble",
    "caller_settings",
    "check_settings",
    "deliver_again",
    "load_checkpoint",
    "method_of",
    "open_folder",
    "prepare",
    "prepare_simulation",
    "reopen_run",
    "run_federation",
]
