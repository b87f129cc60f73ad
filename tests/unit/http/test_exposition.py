"""Prometheus' text format, as its own parser reads it."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from penstock.http.exposition import Family, labels


def read(family: Family) -> list[tuple[str, dict[str, str], float]]:
    (found,) = text_string_to_metric_families(family.text().decode())
    return [(sample.name, sample.labels, sample.value) for sample in found.samples]


def test_samples_have_their_labels_and_values() -> None:
    family = Family("depth", "gauge", "How deep.")
    family.add("", 1)
    family.add(labels(topic="a#ephemeral", channel='"\\\n'), 2**62)
    family.add(labels(topic="b"), 0.25)
    assert read(family) == [
        ("depth", {}, 1),
        ("depth", {"topic": "a#ephemeral", "channel": '"\\\n'}, 2**62),
        ("depth", {"topic": "b"}, 0.25),
    ]


def test_a_family_says_what_it_is() -> None:
    (found,) = text_string_to_metric_families(Family("n_total", "counter", "How many.").text().decode())
    assert (found.name, found.type, found.documentation) == ("n", "counter", "How many.")


def test_a_histogram_is_cumulative() -> None:
    family = Family("took_seconds", "histogram", "How long.")
    family.add_histogram((10**6, 5 * 10**8), (3, 0, 1), 2 * 10**9)
    assert read(family) == [
        ("took_seconds_bucket", {"le": "0.001"}, 3),
        ("took_seconds_bucket", {"le": "0.5"}, 3),
        ("took_seconds_bucket", {"le": "+Inf"}, 4),
        ("took_seconds_sum", {}, 2),
        ("took_seconds_count", {}, 4),
    ]
