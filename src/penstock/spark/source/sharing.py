"""How much of what there is one batch takes: a limit, shared by lag. Pure numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def shares(limit: int, lags: Sequence[int]) -> list[int]:
    """The limit dealt in proportion to the lags: nobody gets more than his, and all of the limit is dealt.

    Where it suffices, whoever lags gets one at least, so that nobody waits for ever behind a large lag.
    """
    total = sum(lags)
    if total <= limit:
        return list(lags)
    lagging = sum(lag > 0 for lag in lags)
    given = [1 if lag and limit >= lagging else 0 for lag in lags]
    spare, rest = limit - sum(given), total - sum(given)
    more = [(lag - has) * spare for lag, has in zip(lags, given, strict=True)]
    found = [has + part // rest for has, part in zip(given, more, strict=True)]
    left = limit - sum(found)
    for index in sorted(range(len(lags)), key=lambda index: -(more[index] % rest))[:left]:
        found[index] += 1
    return found
