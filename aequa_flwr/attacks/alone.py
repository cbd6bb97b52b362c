"""How a participant makes the model that it shows as trained alone look better than its data."""

from dataclasses import dataclass, replace

from aequa_flwr.training import LocalResult, LocalTask, untrained


@dataclass(frozen=True)
class TrainsLonger:
    """Trains ``times`` as many epochs alone as it is asked to."""

    times: int = 10

    def answer(self, task: LocalTask) -> LocalResult:
        """Return the parameters after all of these epochs."""
        rates = tuple(rate for rate in task.plan.learning_rates for _ in range(self.times))
        return task.changed(plan=replace(task.plan, learning_rates=rates)).train()


@dataclass(frozen=True)
class AddsOutsideData:
    """Trains its model alone on examples from elsewhere, too: public ones, or like the server's."""

    def answer(self, task: LocalTask) -> LocalResult:
        """Return the parameters trained on its own and the outside examples."""
        if task.outside is None:
            return task.train()
        return task.changed(data=task.data.joined(task.outside())).train()


@dataclass(frozen=True)
class ShowsReward:
    """Shows the reward of an earlier run as the model that it trained alone, if it has one."""

    def answer(self, task: LocalTask) -> LocalResult:
        """Return the earlier reward as a full model, or else honest training."""
        reward = task.memory.reward
        return task.train() if reward is None else untrained(reward)
