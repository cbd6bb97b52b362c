"""Rewards cut out of the trained model: their tensors and cards."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

from aequa_flwr.data import Schema
from aequa_flwr.results import RunRecord
from aequa_flwr.rewards import RewardCard
from aequa_flwr.server.state import RunState
from aequa_flwr.slim import Params, extract
from aequa_flwr.slim.networks import PlainLayer, SlimNetwork


@dataclass(frozen=True)
class RewardMaker:
    """Cuts rewards out of the models of one network; ``schema`` describes its data.

    ``run`` is the name of the run for the cards.
    """

    network: SlimNetwork
    schema: Schema
    run: str = ""

    def reward_of(self, name: str, state: RunState, record: RunRecord) -> tuple[RewardCard, Params]:
        """Return the card of a participant's reward, and its tensors."""
        line = next(line for line in record.participants if line.name == name)
        width = line.width or 1.0
        num_parameters, layer = self._described(width)
        card = RewardCard(
            participant=name,
            width=width,
            accuracy=line.reward_accuracy,
            num_parameters=num_parameters,
            dataset=record.data.dataset if record.data else "",
            layer=layer,
            schema=self.schema,
            run=self.run,
        )
        sub_params = extract(state.models.of(name), self.network.layouts, width)
        return card, self.network.plain_params(sub_params, width)

    @cached_property
    def _described(self) -> Callable[[float], tuple[int, PlainLayer]]:
        network = self.network
        # Thousands of participants share a few widths.
        return cache(lambda width: (network.num_parameters(width), network.plain(width)))
