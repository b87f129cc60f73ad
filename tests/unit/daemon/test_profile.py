from __future__ import annotations

import sys
import threading
from collections import Counter

from penstock.daemon.profile import collapsed, sample, stack


def outer() -> str:
    return inner()


def inner() -> str:
    return stack(sys._getframe())


def test_a_stack_is_a_line_from_the_outermost_call_to_the_innermost() -> None:
    assert outer().endswith(f";{__name__}.outer;{__name__}.inner")


def test_a_thread_is_seen_where_it_is() -> None:
    # given a thread that waits, in a function with a name
    at_it, go_on = threading.Event(), threading.Event()

    def wait_here() -> None:
        at_it.set()
        go_on.wait()

    thread = threading.Thread(target=wait_here)
    thread.start()
    at_it.wait()
    # when it is looked at once, and no longer
    stop = threading.Event()
    stop.set()
    seen = sample(thread.ident or 0, 10, stop)
    go_on.set()
    thread.join()
    # then that is where it was
    assert list(seen.values()) == [1]
    assert "wait_here" in next(iter(seen))


def test_a_thread_that_is_gone_is_seen_nowhere() -> None:
    stop = threading.Event()
    stop.set()
    assert sample(-1, 10, stop) == Counter()


def test_what_was_seen_most_comes_first() -> None:
    assert collapsed(Counter({"a;b": 1, "a;c": 3})) == "a;c 3\na;b 1\n"
