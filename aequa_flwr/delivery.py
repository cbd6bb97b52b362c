"""Delivery: every participant on a machine of its own receives its reward, and nobody else's."""

from collections.abc import Callable, Iterable, Mapping

from aequa_flwr import wire
from aequa_flwr.exchange import Exchange, content_of, make_message


def deliver(
    exchange: Exchange,
    nodes: Mapping[str, int],
    reward_of: Callable[[str], wire.RewardTask],
    names: Iterable[str],
    timeout_s: float,
) -> dict[str, str]:
    """Send each of ``names`` its reward; returns who did not store it, and why.

    One participant at a time, so that the server holds one reward at a time.
    """
    failed: dict[str, str] = {}
    for name in names:
        node = nodes[name]
        content = wire.encode_reward_task(reward_of(name))
        failed[name] = "no reply in time"
        message = make_message(node, wire.REWARD, 0, content)
        for reply in exchange.ask({node: [message]}, timeout_s):
            try:
                answer = wire.decode_reward_reply(content_of(reply))
            except wire.WireError as error:
                failed[name] = str(error)
                continue
            if answer.stored:
                del failed[name]
            else:
                failed[name] = answer.refusal
    return failed
