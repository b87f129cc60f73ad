"""`/metrics`: nsqlookupd for Prometheus. Of each topic there is one series, and of nsqd none: they come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock import NSQ_VERSION, __version__
from penstock.daemon.process import samples
from penstock.http import Request, Response
from penstock.http.exposition import CONTENT_TYPE, Family, labels, single

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.nsqlookupd.service import Service

ROWS: Final = 20_000  # topics; those behind, by name, are only counted


class Metrics:
    def __init__(self, service: Service) -> None:
        self._service = service

    def metrics(self, _request: Request) -> Response:
        self._service.advance()
        return Response(200, b"".join(family.text() for family in self._families()), CONTENT_TYPE)

    def _families(self) -> Iterator[Family]:
        service, registrations = self._service, self._service.registrations
        topics = registrations.topics
        active = sum(nsqd.active for nsqd in registrations.nsqds)
        info = labels(version=NSQ_VERSION, penstock_version=__version__)
        yield single("nsqlookupd_info", "gauge", "Versions.", 1, info)
        yield single("nsqlookupd_topics", "gauge", "Topics.", len(topics))
        channels = sum(len(topic.channels) for topic in topics.values())
        yield single("nsqlookupd_channels", "gauge", "Channels.", channels)
        yield single("nsqlookupd_connections", "gauge", "TCP connections.", len(service.connections))
        yield single("nsqlookupd_nsqds", "gauge", "nsqd that registered and were heard of late.", active)
        silent = len(registrations.nsqds) - active
        yield single("nsqlookupd_inactive_nsqds", "gauge", "nsqd that are connected and silent.", silent)
        yield single("nsqlookupd_waiting", "gauge", "Look-ups that wait for a change.", len(service.waiting))
        yield single("nsqlookupd_log_lines_dropped", "gauge", "Log lines nobody read, of late.", service.logger.dropped)
        hidden = max(0, len(topics) - ROWS)
        yield single("nsqlookupd_hidden_rows", "gauge", "Topics beyond those shown.", hidden)
        shown = Family("nsqlookupd_topic_producers", "gauge", "nsqd that whoever looks the topic up is told.")
        for name in sorted(topics)[:ROWS]:
            shown.add(labels(topic=name), len(registrations.shown(name)))
        yield shown
        for name, kind, help_, value in samples(service.started):
            yield single(name, kind, help_, value)
