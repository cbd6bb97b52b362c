"""The ServerApp: settings to a strategy, a strategy to a record."""

from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from aequa_flwr.server import deliver_again, run_federation
from aequa_flwr.settings import RunConfig

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the whole federation and leave its record in the run's folder, however it ends."""
    settings = RunConfig.parse(context.run_config)
    if settings.deliver:
        deliver_again(grid, Path(settings.deliver).expanduser(), settings)
    else:
        run_federation(settings, grid, f"~/aequa-runs/{context.run_id}")
