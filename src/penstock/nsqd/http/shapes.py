"""The JSON that nsqd's routes answer, as JSON schemas: what has to be there, and of which type. Knows no route."""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]

_INT: Final[Schema] = {"type": "integer"}
_STR: Final[Schema] = {"type": "string"}
_BOOL: Final[Schema] = {"type": "boolean"}
_OFFSET: Final[Schema] = {"type": "integer", "minimum": 0}
_HEX: Final[Schema] = {"type": "string", "pattern": "^[0-9a-f]{16}$"}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(of: Schema, *, null: bool = False) -> Schema:
    return {"type": ["array", "null"] if null else "array", "items": of}


def _object(optional: Schema | None = None, /, **has: Schema) -> Schema:
    """With all of these, perhaps with the optional ones, and nothing else."""
    properties = {name.rstrip("_"): schema for name, schema in has.items()}
    return {
        "type": "object",
        "properties": {**properties, **(optional or {})},
        "required": list(properties),
        "additionalProperties": False,
    }


_COUNTS: Final = dict.fromkeys(
    ("depth", "backend_depth", "in_flight_count", "deferred_count", "message_count", "requeue_count", "timeout_count",
     "client_count"), _INT,
)  # fmt: skip
_CLIENT: Final = {
    **dict.fromkeys(
        ("client_id", "hostname", "version", "remote_address", "user_agent", "topology_zone", "topology_region",
         "tls_cipher_suite", "tls_version", "tls_negotiated_protocol"), _STR,
    ),
    **dict.fromkeys(
        ("state", "ready_count", "in_flight_count", "message_count", "finish_count", "requeue_count", "connect_ts",
         "sample_rate"), _INT,
    ),
    **dict.fromkeys(("deflate", "snappy", "tls", "tls_negotiated_protocol_is_mutual"), _BOOL),
}  # fmt: skip
_MEMORY: Final = (
    "heap_objects", "heap_idle_bytes", "heap_in_use_bytes", "heap_released_bytes", "gc_pause_usec_100",
    "gc_pause_usec_99", "gc_pause_usec_95", "next_gc_bytes", "gc_total_runs",
)  # fmt: skip

SHAPES: Final[dict[str, Schema]] = {
    "Any": {},
    "Document": {"type": "object", "required": ["openapi", "paths"]},
    "Error": {
        "type": "object",
        "properties": {
            "message": _STR,
            "earliest": _OFFSET,
            "committed": _OFFSET,
            "routed": _OFFSET,
            "incarnation": _HEX,
            "https_port": _INT,
        },
        "required": ["message"],
        "additionalProperties": False,
    },
    "Info": _object(
        version=_STR, broadcast_address=_STR, hostname=_STR, http_port=_INT, tcp_port=_INT, start_time=_INT,
        max_heartbeat_interval=_INT, max_output_buffer_size=_INT, max_output_buffer_timeout=_INT,
        max_deflate_level=_INT, topology_zone=_STR, topology_region=_STR, penstock_version=_STR, node=_HEX,
    ),
    "Stats": _object(
        {"memory": _object(**dict.fromkeys(_MEMORY, _INT))},
        version=_STR, health=_STR, start_time=_INT, topics=_list(_ref("Topic"), null=True),
        producers=_list(_ref("Client"), null=True),
    ),
    "Topic": _object(
        topic_name=_STR, channels=_list(_ref("Channel")), depth=_INT, backend_depth=_INT, message_count=_INT,
        message_bytes=_INT, paused=_BOOL, e2e_processing_latency=_ref("Latency"), retention_bytes=_INT,
        retention_time=_INT,
    ),
    "Channel": _object(
        {"reader": _BOOL, "offset": _OFFSET, "renewed": _INT},
        channel_name=_STR, **_COUNTS, clients=_list(_ref("Client"), null=True), paused=_BOOL,
        e2e_processing_latency=_ref("Latency"),
    ),
    "Client": _object(
        {"pub_counts": _list(_object(topic=_STR, count=_INT))}, **_CLIENT,
    ),
    "Latency": _object(
        count=_INT, percentiles=_list(_object(quantile={"type": "number"}, value={"type": "number"}), null=True)
    ),
    "Retained": _object(bytes=_INT, time=_INT),
    "Moved": _object({"message": {"enum": ["CHANNEL_EXISTS", "LOWER_THAN_BEFORE"]}}, offset=_OFFSET),
    "At": _object(offset=_OFFSET),
    "Producer": _object(
        node=_HEX, mark={"anyOf": [_ref("Batch"), {"type": "null"}]},
        topics={"type": "object", "additionalProperties": _ref("Batch")},
    ),
    "Batch": _object(sequence=_OFFSET, digest=_STR, when=_INT),
    "Peek": _object(topic=_STR, channel=_STR, messages=_list(_ref("Message"))),
    "Message": _object(
        {
            "offset": _OFFSET, "id": _HEX, "attempts": _INT, "due_ms": _INT, "body": _STR,
            "body_base64": {"type": "string", "contentEncoding": "base64"},
        },
        state=_STR, timestamp=_INT, age_ms=_INT, bytes=_INT,
    ),
    "Log": _object(
        {"reader": {"anyOf": [_object(offset=_OFFSET, paused=_BOOL), {"type": "null"}]}},
        node=_HEX, topic=_STR, incarnation=_HEX, base=_OFFSET, earliest=_OFFSET, routed=_OFFSET, committed=_OFFSET,
        segments=_list(_object(first=_OFFSET, end=_OFFSET, bytes=_INT, first_time=_INT, last_time=_INT)),
        holes=_list(
            {
                "type": "array",
                "items": {"anyOf": [_OFFSET, {"enum": ["emptied", "lost", "damaged"]}]},
                "minItems": 3,
                "maxItems": 3,
            }
        ),
    ),
}  # fmt: skip
