"""Which topics there are. Knows nodes; no Spark, so that it can be asked before that is started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.spark.source.cluster import Cluster
from penstock.spark.source.options import source_options

if TYPE_CHECKING:
    from penstock.spark.jobs.options import Nodes

_ALL: Final = ".*"


def topics_of(options: Nodes) -> list[str]:
    """All that the nodes have, by name; none where no node is named."""
    where = options.where()
    if not where:
        return []
    cluster = Cluster(source_options({**where, "topicPattern": _ALL}))
    try:
        return sorted({place.topic for place in cluster.look(needed=True).logs})
    finally:
        cluster.close()
