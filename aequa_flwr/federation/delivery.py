"""Delivery: the node of every deployed participant receives its reward, and no other."""

from collections.abc import Callable, Iterable, Mapping

from aequa_flwr.federation.codec import decode_reward_reply, encode_reward_task
from aequa_flwr.federation.exchange import Exchange, content_of, make_message
from aequa_flwr.federation.messages import REWARD, RewardTask
from aequa_flwr.federation.reading import WireError


def deliver(
    exchange: Exchange,
    nodes: Mapping[str, int],
    reward_of: Callable[[str], RewardTask],
    names: Iterable[str],
    timeout_s: float,
) -> dict[str, str]:
    """Send each of ``names`` its reward; return the failures with their reasons.

    Rewards are sent one after the other, so that the server holds only one in memory.
    """
    failed: dict[str, str] = {}
    for name in names:
        node = nodes[name]
        content = encode_reward_task(reward_of(name))
        failed[name] = "no reply in time"
        message = make_message(node, REWARD, 0, content)
        for reply in exchange.ask({node: [message]}, timeout_s):
            try:
                answer = decode_reward_reply(content_of(reply))
            except WireError as error:
                failed[name] = str(error)
                continue
            if answer.stored:
                del failed[name]
            else:
                failed[name] = answer.refusal
    return failed
