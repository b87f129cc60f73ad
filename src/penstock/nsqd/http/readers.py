"""`/reader/...`: how far somebody has read a topic's log by himself. Knows no file and no position's use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import HttpError
from penstock.http import Request, Response, json
from penstock.nsqd.http.arguments import existing_reader, existing_topic, number, of_another_life, reader_name

if TYPE_CHECKING:
    from penstock.nsqd.service import Service


class Readers:
    def __init__(self, service: Service) -> None:
        self._node = service.node

    def commit(self, request: Request) -> Response:
        home = existing_topic(request, self._node, check=True)
        name, offset = reader_name(request), number(request, "offset")
        if name in home.topic.channels:
            raise HttpError(409, "IS_A_CHANNEL")
        if (other := of_another_life(request, home)) is not None:
            return other
        if offset > home.log.end:
            return json({"message": "BEYOND_THE_END", "committed": home.log.committed}, 416)
        reader, moved = self._node.readers.commit(home, name, offset)
        answer = {"offset": reader.offset}
        return json(answer if moved else {**answer, "message": "LOWER_THAN_BEFORE"})

    def delete(self, request: Request) -> None:
        self._node.readers.delete(*existing_reader(request, self._node))
