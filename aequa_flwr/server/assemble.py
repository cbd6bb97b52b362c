"""From the parts of a run to its strategy: what `aequa run`, the ServerApp and `simulate` share."""

import logging
from collections.abc import Callable
from pathlib import Path

from flwr.serverapp import Grid

from aequa_flwr.data import FederatedData
from aequa_flwr.errors import UserError
from aequa_flwr.results import Progress
from aequa_flwr.server.checkpoint import Checkpoint, load_checkpoint, reopen_run
from aequa_flwr.server.parts import Parts, prepare
from aequa_flwr.server.run_folder import RunFolder, open_folder
from aequa_flwr.server.strategy import AequaStrategy
from aequa_flwr.settings import RunConfig
from aequa_flwr.slim.networks import Builder, SlimNetwork

logger = logging.getLogger(__name__)


def assemble(
    parts: Parts,
    folder: RunFolder,
    *,
    checkpoint: Checkpoint | None = None,
    on_progress: Callable[[Progress], None] = lambda _progress: None,
) -> AequaStrategy:
    """Return the strategy that runs ``parts``, resumed from ``checkpoint`` if there is one.

    It writes its results to ``folder``; ``on_progress`` receives the progress of the run.
    """
    return AequaStrategy.of_parts(parts, folder, checkpoint=checkpoint, on_progress=on_progress)


def run_federation(
    settings: RunConfig,
    grid: Grid,
    output: str,
    *,
    data: FederatedData | None = None,
    network: Builder | SlimNetwork | None = None,
    on_progress: Callable[[Progress], None] = lambda _progress: None,
) -> Path:
    """Run a whole federation on ``grid``; return the folder with its record, however it ends.

    A resumed run keeps its folder. A new run uses the folder in the settings, or ``output`` if they
    name none. ``data`` and ``network`` are the caller's own, as in `prepare`.
    """
    checkpoint = load_checkpoint(Path(settings.resume).expanduser()) if settings.resume else None
    if checkpoint is not None:
        path = reopen_run(checkpoint)
    else:
        path = open_folder(settings.output or output)
    logger.info("The run folder is %s", path)
    folder = RunFolder(path, settings)
    try:
        parts = prepare(settings, data=data, network=network)
        strategy = assemble(parts, folder, checkpoint=checkpoint, on_progress=on_progress)
    except BaseException as error:
        text = str(error) if isinstance(error, UserError) else f"Unexpected {error!r}"
        folder.finish("failed", text)
        raise
    strategy.start(grid)
    return path
