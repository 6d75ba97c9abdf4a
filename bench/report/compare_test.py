# SPDX-License-Identifier: Apache-2.0
"""Ratios, units and marks: what a reader takes away."""

import compare
import pytest
import quantities
import results
import synthetic
import systems
import tables
from results import Results, Row, Run


def row(system, median, metric="GB/s", mad=0.0, **changes):
    fields = {
        "bench": "stream",
        "system": system,
        "version": "",
        "mode": "handover",
        "senders": 1,
        "size": 65536,
        "metric": metric,
        "median": median,
        "mad": mad,
        "n": 5,
    }
    return Row(**(fields | changes))


def results_of(*rows):
    return Results([Run("run.json", {}, list(rows))])


def only(comparisons):
    (one,) = comparisons
    return one


def test_a_rate_twice_the_best_peers_is_2_and_a_time_half_of_it_too():
    assert compare.ratio(row("wherry", 8), row("ucx", 4)).value == 2
    assert compare.ratio(row("wherry", 4, "ns_p50"), row("ucx", 8, "ns_p50")).value == 2


def test_what_lies_within_the_deviations_is_no_difference():
    assert compare.ratio(row("wherry", 8, mad=1), row("ucx", 6.5, mad=0.6)).text() == "≈1.23×"
    assert compare.ratio(row("wherry", 8, mad=1), row("ucx", 6.5, mad=0.4)).text() == "1.23×"


def test_a_peer_without_a_figure_gives_no_ratio():
    assert compare.ratio(row("wherry", 8), None) is None
    assert compare.ratio(row("wherry", 8), row("ucx", 0)) is None


def test_limits_and_wherry_are_no_peers():
    one = only(
        compare.stream(results_of(row("wherry", 8), row("wherry-reserve", 9), row("limit:two-copy", 10), row("tcp", 2)))
    )
    assert (one.peer.of.system, one.limit.of.system) == ("tcp", "limit:two-copy")
    assert (one.peer.value, one.limit.value) == (4, 0.8)


def test_a_stream_is_compared_with_peers_that_copy_and_zero_copy_with_all():
    rows = [
        row(system, median, mode="touched")
        for system, median in (
            ("wherry", 8),
            ("wherry-zerocopy", 12),
            ("ucx", 4),
            ("iceoryx2", 10),
            ("limit:two-copy", 9),
            ("limit:in-place", 15),
        )
    ]
    counted = [row(system, 1e6, "msgs/s") for system in ("wherry-zerocopy", "iceoryx2")]
    stream, zero_copy = (one for one in compare.stream(results_of(*rows, *counted)) if one.mine.mode == "touched")
    assert (stream.peer.of.system, stream.limit.of.system) == ("ucx", "limit:two-copy")
    assert (zero_copy.peer.of.system, zero_copy.limit.of.system) == ("iceoryx2", "limit:in-place")


def test_the_best_of_each_column_is_marked_and_is_no_limit():
    made = next(tables.tables(results_of(row("wherry", 8), row("tcp", 9), row("limit:two-copy", 20))))
    assert [(line.head, line.cells[0].best) for line in made.lines[:3]] == [
        ("wherry", False),
        ("tcp", True),
        ("limit:two-copy", False),
    ]


def test_the_lowest_time_is_the_best():
    made = next(
        tables.tables(
            results_of(*(row(name, value, "ns_p50", bench="latency") for name, value in (("wherry", 8), ("tcp", 9))))
        )
    )
    assert [line.cells[0].best for line in made.lines[:2]] == [True, False]


def test_hand_overs_in_place_and_copies_are_not_in_one_contest():
    rows = [
        row("wherry", 9),
        row("wherry", 1e5, "msgs/s"),
        row("tcp", 2),
        row("tcp", 2e4, "msgs/s"),
        row("iceoryx2", 1e6, "msgs/s"),
    ]
    counted = [made for made in tables.tables(results_of(*rows)) if made.title.startswith("Messages")]
    assert [[line.head for line in made.lines] for made in counted] == [
        ["wherry", "tcp", "wherry ÷ best peer"],
        ["iceoryx2"],
    ]


def test_a_spread_above_a_tenth_is_shown():
    assert quantities.noise(10, 0.9) == ""
    assert quantities.noise(10, 1.4) == "±14 %"


@pytest.mark.parametrize(
    "value, metric, text",
    [
        (9.996, "GB/s", "10.0 GB/s"),
        (0.03124, "GB/s", "0.0312 GB/s"),
        (0, "GB/s", "0 GB/s"),
        (3141, "GB/s", "3140 GB/s"),
        (20.95e6, "msgs/s", "20.9 M/s"),
        (850, "msgs/s", "850 /s"),
        (224, "ns_p50", "224 ns"),
        (29640, "asleep_ns_p99", "29.6 µs"),
        (120000, "connect_ns", "120 µs"),
        (9530, "memory_bytes_per_connection", "9.53 kB"),
        (0.131, "cpu_s_per_GB", "0.131 s/GB"),
        (999.7, "ns_p50", "1.00 µs"),
    ],
)
def test_figures_have_three_digits_and_a_unit(value, metric, text):
    assert quantities.quantity(value, metric) == text


def test_sizes_are_exact():
    assert [quantities.size(size) for size in (64, 1000, 1024, 3 << 20, 1 << 30)] == [
        "64 B",
        "1000 B",
        "1 KiB",
        "3 MiB",
        "1 GiB",
    ]


def test_wherry_comes_first_limits_last_and_a_new_peer_has_its_place():
    assert systems.in_order(["limit:futex", "novel", "tcp", "wherry"]) == ["wherry", "tcp", "novel", "limit:futex"]


def test_made_up_results_have_every_kind_of_comparison():
    found = list(
        compare.comparisons(Results([Run("run.json", {}, [Row(**one) for one in synthetic.results()["rows"]])]))
    )
    for start in (
        "stream, 64 B",
        "zero-copy hand-over",
        "one way, 64 B, both awake, median",
        "one way, 64 B, both awake, 99 of 100",
        "one way, 64 B, both awake, 999 of 1000",
        "one way, 4 KiB, both awake, 999 of 1000",
        "one way, 64 B, to a sleeper",
        "60 senders",
    ):
        assert any(one.what.startswith(start) for one in found), start
    assert results.MODE_TEXT["touched"] in " ".join(one.what for one in found)


def test_zeromq_over_wherry_is_compared_with_zeromq_over_its_own_transports_only():
    at = {"bench": "zmq", "size": 4096}
    rows = [row("zmq-wherry", 6, **at), row("zmq-tcp", 1, **at), row("zmq-ipc", 2, **at)]
    rows += [row("wherry", 16, **at), row("nanomsg-ipc", 3, **at)]
    one = only(compare.comparisons(results_of(*rows)))
    assert (one.what, one.tcp.system, one.peer.of.system, one.peer.value) == ("ZeroMQ, 4 KiB", "zmq-tcp", "zmq-ipc", 3)
    (made,) = tables.tables(results_of(*rows))
    assert {line.head: line.cells[0].text for line in made.lines if line.head.startswith("zmq-wherry ÷")} == {
        "zmq-wherry ÷ zmq-tcp": "6.00×",
        "zmq-wherry ÷ zmq-ipc": "3.00×",
    }


def test_messaging_libraries_have_colours_of_their_own_where_they_are_asked_about():
    asked = {systems.look(system, "zmq").colour for system in systems.MESSAGING}
    assert len(asked) == len(systems.MESSAGING)
    assert systems.look("zmq-tcp").colour == systems.GREY[0]
