"""What NSQ accepts as the name of a topic or a channel: one rule for both. Knows strings, and no topic."""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 64  # with the suffix
EPHEMERAL: Final = "#ephemeral"

_NAME: Final = re.compile(r"[.a-zA-Z0-9_-]+(#ephemeral)?")


def is_valid(name: str) -> bool:
    """Whether a topic or a channel may be called so; `.`, `..` and `nsqd.dat` may."""
    return len(name) <= LONGEST and _NAME.fullmatch(name) is not None


def is_ephemeral(name: str) -> bool:
    """Whether a topic or a channel of this valid name leaves nothing on disk."""
    return name.endswith(EPHEMERAL)
