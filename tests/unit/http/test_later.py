from __future__ import annotations

from penstock.http import Later, Response, text


def test_an_answer_is_told_once_to_whoever_waits_for_it() -> None:
    heard: list[Response] = []
    later, answer = Later(), text("OK")
    later.then(heard.append)
    assert later.known is None
    later.answer(answer)
    later.answer(text("again"))
    assert heard == [answer]


def test_an_answer_that_comes_first_is_known() -> None:
    later, answer = Later(), text("OK")
    later.answer(answer)
    assert later.known is answer
