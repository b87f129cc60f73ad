from __future__ import annotations

from penstock.http import Later, Response, text
from penstock.http.later import Asker


class Listener(Asker):
    def __init__(self) -> None:
        self.heard: list[Response] = []

    def hear(self, response: Response) -> None:
        self.heard.append(response)


def test_an_answer_is_told_once_to_whoever_waits_for_it() -> None:
    listener = Listener()
    later, answer = Later(), text("OK")
    later.then(listener)
    assert later.known is None
    later.answer(answer)
    later.answer(text("again"))
    assert listener.heard == [answer]


def test_an_answer_that_comes_first_is_known() -> None:
    later, answer = Later(), text("OK")
    later.answer(answer)
    assert later.known is answer
