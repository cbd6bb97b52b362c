"""The ServerApp: it runs a federation, or delivers the remaining rewards of an earlier run."""

from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from aequa_flwr.federation import is_deployed
from aequa_flwr.server import deliver_again, run_federation
from aequa_flwr.settings import RunConfig

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the federation and leave a record in the run folder, however it ends."""
    settings = RunConfig.parse(context.run_config, deployed=is_deployed(grid))
    if settings.deliver:
        deliver_again(grid, Path(settings.deliver).expanduser(), settings)
    else:
        run_federation(settings, grid, f"~/aequa-runs/{context.run_id}")
