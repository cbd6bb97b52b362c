"""The ServerApp: train together, then give every participant the model it has earned."""

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from aequa_flwr import AequaStrategy
from own_flower_app.task import load_validation, make_network

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the federation; its folder has the record, the report and the rewards."""
    config = context.run_config
    strategy = AequaStrategy(
        make_network,
        load_validation(),
        output=str(config["output"]) or f"~/aequa-runs/{context.run_id}",
        participants=config["participants"],
        rounds=config["rounds"],
        batch_size=config["batch-size"],
        learning_rate=config["learning-rate"],
        join_timeout_s=config["join-timeout-s"],
    )
    strategy.start(grid)
    for line in strategy.record.participants:
        print(f"{line.name}: width {line.width}, accuracy {line.reward_accuracy}, gain {line.gain}")
    for failure in strategy.record.failures:
        print(f"{failure.participant}: {failure.reason}")
