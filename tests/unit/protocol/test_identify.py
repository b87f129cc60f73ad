"""What IDENTIFY takes, refuses and answers: as nsqd does."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from penstock.errors import BadBody, IdentifyFailed
from penstock.protocol.identify import Agreement, Offer, identify

MS = 1_000_000
OFFER = Offer(
    max_rdy_count=2500,
    max_msg_timeout=900_000 * MS,
    max_heartbeat_interval=60_000 * MS,
    min_output_buffer_timeout=25 * MS,
    max_output_buffer_timeout=30_000 * MS,
    max_output_buffer_size=65536,
    max_deflate_level=6,
)
BEFORE = Agreement(heartbeat_interval=30_000 * MS, msg_timeout=60_000 * MS, output_buffer_timeout=250 * MS)

# What is asked for, and what is agreed on where that differs from before.
AGREED: list[tuple[str, dict[str, Any]]] = [
    ("{}", {}),
    ("null", {}),
    (' \t\r\n{"x": [1, {"y": 1e400}], "z": -0.5E-3} \n', {}),
    ('{"client_id": "c", "hostname": "h"}', {"client_id": "c", "hostname": "h"}),
    ('{"user_agent": "a/1"}', {"user_agent": "a/1"}),
    ('{"topology_region": "r", "topology_zone": "z"}', {"topology_region": "r", "topology_zone": "z"}),
    ('{"client_id": "\\u00e9\\ud83d\\ude00"}', {"client_id": "é\U0001f600"}),
    ('{"client_id": "\\ud800x"}', {"client_id": "\ufffdx"}),
    ('{"client_id": null, "heartbeat_interval": null, "tls_v1": null}', {}),
    ('{"Client_ID": "c", "HEARTBEAT_INTERVAL": 1000}', {"client_id": "c", "heartbeat_interval": 1000 * MS}),
    ('{"client_id": "a", "CLIENT_ID": "b", "client_id": null}', {"client_id": "b"}),
    ('{"heartbeat_interval": -1}', {"heartbeat_interval": 0}),
    ('{"heartbeat_interval": 0}', {}),
    ('{"heartbeat_interval": -0}', {}),
    ('{"heartbeat_interval": 1000}', {"heartbeat_interval": 1000 * MS}),
    ('{"heartbeat_interval": 60000}', {"heartbeat_interval": 60_000 * MS}),
    ('{"msg_timeout": 0}', {}),
    ('{"msg_timeout": 1000}', {"msg_timeout": 1000 * MS}),
    ('{"msg_timeout": 900000}', {"msg_timeout": 900_000 * MS}),
    ('{"output_buffer_size": -1}', {"output_buffer_size": 1, "output_buffer_timeout": 0}),
    (
        '{"output_buffer_size": -1, "output_buffer_timeout": 100}',
        {"output_buffer_size": 1, "output_buffer_timeout": 0},
    ),
    ('{"output_buffer_size": 0}', {}),
    ('{"output_buffer_size": 64}', {"output_buffer_size": 64}),
    ('{"output_buffer_size": 65536}', {"output_buffer_size": 65536}),
    ('{"output_buffer_timeout": -1}', {"output_buffer_timeout": 0}),
    ('{"output_buffer_timeout": 0}', {}),
    ('{"output_buffer_timeout": 25}', {"output_buffer_timeout": 25 * MS}),
    ('{"output_buffer_timeout": 30000}', {"output_buffer_timeout": 30_000 * MS}),
    ('{"sample_rate": 0}', {}),
    ('{"sample_rate": 99}', {"sample_rate": 99}),
    ('{"unknown": 123456789012345678901234567890, "short_id": 1, "deflate_level": 100}', {}),
    ('{"unknown": ' + "9" * 5000 + "}", {}),
]
NO_JSON = [
    *("", " ", "{", "}", "{} {}", "{}x", "{'client_id': 1}", '{"client_id": "a\nb"}', '{"a": NaN}', '{"a": Infinity}'),
    *('{"a": -Infinity}', '{"a": 01}', '{"a": 1.}', '{"a": "\\x"}', '{"a": 1,}', "\ufeff{}", '{"a": ' + "[" * 100_000),
]
OTHER_TYPES = [
    *("[]", '"x"', "1", "true"),
    *('{"client_id": 1}', '{"client_id": true}', '{"client_id": 1, "client_id": "a"}', '{"hostname": []}'),
    *('{"user_agent": {}}', '{"heartbeat_interval": "1000"}', '{"heartbeat_interval": 1000.0}'),
    *('{"heartbeat_interval": 1e3}', '{"heartbeat_interval": true}', '{"msg_timeout": {}}', '{"tls_v1": 1}'),
    *('{"deflate": "true"}', '{"snappy": 0}', '{"feature_negotiation": "yes"}', '{"deflate_level": 6.0}'),
    *('{"heartbeat_interval": 9223372036854775808}', '{"msg_timeout": -9223372036854775809}'),
    *('{"heartbeat_interval": ' + "9" * 30 + "}", '{"sample_rate": 2147483648}', '{"sample_rate": -2147483649}'),
]
OUT_OF_BOUNDS = {
    "heartbeat_interval": [-2, 1, 999, 60001, 2**63 - 1],
    "msg_timeout": [-1, 1, 999, 900001, -(2**63)],
    "output_buffer_size": [-2, 1, 63, 65537],
    "output_buffer_timeout": [-2, 1, 24, 30001],
    "sample_rate": [-1, 100, 2**31 - 1, -(2**31)],
}
IN_NSQDS_ORDER = ["heartbeat_interval", "output_buffer_timeout", "output_buffer_size", "sample_rate", "msg_timeout"]
INVALID = [
    *(({field: asked}, field, asked) for field, values in OUT_OF_BOUNDS.items() for asked in values),
    *((dict.fromkeys(IN_NSQDS_ORDER[first:], -5), field, -5) for first, field in enumerate(IN_NSQDS_ORDER)),
]


@pytest.mark.parametrize(("asked", "agreed"), AGREED, ids=[asked[:60] for asked, _ in AGREED])
def test_what_may_be_asked_for_is_agreed_on(asked: str, agreed: dict[str, Any]) -> None:
    assert identify(asked.encode(), OFFER, BEFORE) == (replace(BEFORE, **agreed), b"OK")


@pytest.mark.parametrize("body", [*NO_JSON, *OTHER_TYPES], ids=lambda text: repr(text[:60]))
def test_what_go_does_not_decode_is_a_bad_body(body: str) -> None:
    with pytest.raises(BadBody) as error:
        identify(body.encode(), OFFER, BEFORE)
    assert error.value.answer == b"E_BAD_BODY IDENTIFY failed to decode JSON body"


@pytest.mark.parametrize(("asked", "field", "value"), INVALID, ids=[str(asked) for asked, _, _ in INVALID])
def test_what_is_out_of_bounds_is_a_bad_body_and_the_first_is_told(
    asked: dict[str, int], field: str, value: int
) -> None:
    with pytest.raises(BadBody) as error:
        identify(json.dumps(asked).encode(), OFFER, BEFORE)
    assert error.value.answer == f"E_BAD_BODY IDENTIFY {field.replace('_', ' ')} ({value}) is invalid".encode()


def test_bytes_that_are_no_utf_8_are_replaced() -> None:
    agreement, _ = identify(b'{"client_id": "a\xffb"}', OFFER, BEFORE)
    assert agreement.client_id == "a\ufffdb"


def test_who_negotiates_is_told_what_holds_now() -> None:
    # given a client that asks for much
    asked = b"""{"feature_negotiation": true, "tls_v1": true, "snappy": true, "deflate": true, "deflate_level": 9,
                 "heartbeat_interval": 5000, "msg_timeout": 2000, "sample_rate": 7, "output_buffer_size": 128,
                 "output_buffer_timeout": 100}"""
    # when a node that can do none of TLS, snappy and deflate answers
    offer = replace(OFFER, topology_region="east", topology_zone="b")
    agreement, answer = identify(asked, offer, BEFORE)
    # then it is nsqd's answer to the byte
    assert answer == (
        b'{"max_rdy_count":2500,"version":"1.3.0","max_msg_timeout":900000,"msg_timeout":2000,"tls_v1":false,'
        b'"deflate":false,"deflate_level":6,"max_deflate_level":6,"snappy":false,"sample_rate":7,"auth_required":false,'
        b'"output_buffer_size":128,"output_buffer_timeout":100,"topology_region":"east","topology_zone":"b"}'
    )
    assert (agreement.tls_v1, agreement.snappy, agreement.deflate_level) == (False, False, 0)


@pytest.mark.parametrize(
    ("asked", "offered", "shown"),
    [
        ({}, {}, {"deflate": False, "deflate_level": 6, "snappy": False, "tls_v1": False}),
        ({"deflate": True}, {}, {"deflate": True, "deflate_level": 6}),
        ({"deflate": True, "deflate_level": 0}, {}, {"deflate": True, "deflate_level": 6}),
        ({"deflate": True, "deflate_level": -1}, {}, {"deflate": True, "deflate_level": 6}),
        ({"deflate": True, "deflate_level": 3}, {}, {"deflate": True, "deflate_level": 3}),
        ({"deflate": True, "deflate_level": 9}, {}, {"deflate": True, "deflate_level": 6}),
        ({"deflate": True, "deflate_level": 9}, {"max_deflate_level": 4}, {"deflate": True, "deflate_level": 4}),
        ({"deflate_level": 3}, {"max_deflate_level": 4}, {"deflate": False, "deflate_level": 4}),
        ({"deflate": True, "snappy": True}, {"snappy": False}, {"deflate": True, "snappy": False}),
        ({"deflate": True, "snappy": True}, {"deflate": False}, {"deflate": False, "snappy": True}),
        ({"snappy": True, "tls_v1": True}, {}, {"snappy": True, "tls_v1": True}),
        ({}, {"auth_required": True}, {"auth_required": True}),
    ],
    ids=repr,
)
def test_what_the_node_can_do_is_done_for_who_asks(
    asked: dict[str, object], offered: dict[str, bool], shown: dict[str, object]
) -> None:
    # given a node that can do everything, but for what is offered otherwise
    offer = replace(OFFER, **{"deflate": True, "snappy": True, "tls_v1": True} | offered)  # type: ignore[arg-type]
    # when a client negotiates
    body = json.dumps({"feature_negotiation": True} | asked).encode()
    agreement, answer = identify(body, offer, BEFORE)
    # then it is told what it gets, and gets it
    told = json.loads(answer)
    assert told | shown == told
    assert agreement.deflate_level == (told["deflate_level"] if told["deflate"] else 0)
    assert (agreement.snappy, agreement.tls_v1) == (told["snappy"], told["tls_v1"])


def test_deflate_and_snappy_at_once_are_an_error() -> None:
    offer = replace(OFFER, deflate=True, snappy=True)
    with pytest.raises(IdentifyFailed) as error:
        identify(b'{"feature_negotiation": true, "deflate": true, "snappy": true}', offer, BEFORE)
    assert error.value.answer == b"E_IDENTIFY_FAILED cannot enable both deflate and snappy compression"
    # but not where nothing is negotiated
    assert identify(b'{"deflate": true, "snappy": true}', offer, BEFORE) == (BEFORE, b"OK")


def test_a_second_identify_begins_where_the_first_one_ended() -> None:
    # given a client that asked for something
    first, _ = identify(b'{"client_id": "c", "heartbeat_interval": 5000, "sample_rate": 5}', OFFER, BEFORE)
    # when it asks again, for less
    second, _ = identify(b'{"msg_timeout": 2000}', OFFER, first)
    # then what it does not say stays, but for its name and its sample rate
    assert second == replace(BEFORE, heartbeat_interval=5000 * MS, msg_timeout=2000 * MS)
