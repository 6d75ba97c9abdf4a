# SPDX-License-Identifier: Apache-2.0
"""What makes a plot readable: names that do not cover each other, ticks, colours that can be exchanged."""

import pytest
import systems


@pytest.fixture
def canvas():
    pytest.importorskip("matplotlib", reason="scripts/setup bench installs it")
    import canvas

    return canvas


def test_names_of_close_lines_stand_apart_in_order_and_near_their_lines(canvas):
    assert canvas.spread([0.0, 5.0], 0, 10, 1) == [0.0, 5.0]
    assert canvas.spread([5.0, 5.0, 5.0], 0, 10, 1) == [4.0, 5.0, 6.0]
    assert canvas.spread([1.0, 5.0, 5.2], 0, 10, 1) == pytest.approx([1.0, 4.6, 5.6])


def test_names_stay_within_the_axes_while_they_fit(canvas):
    assert canvas.spread([9.8, 9.9, 10.0], 0, 10, 1) == [8.0, 9.0, 10.0]
    assert canvas.spread([0.0, 0.0], 0, 10, 1) == [0.0, 1.0]
    assert canvas.spread([3.0] * 4, 0, 2, 1) == [0.0, 1.0, 2.0, 3.0]


def test_a_tick_has_no_needless_zeros(canvas):
    assert [canvas.bare(text) for text in ("1.00 µs", "100 ns", "0.0500 GB/s", "10.0")] == [
        "1 µs",
        "100 ns",
        "0.05 GB/s",
        "10",
    ]


def test_every_colour_can_be_told_from_the_others():
    light = [pair[0] for pair in systems.colour_pairs().values()]
    assert len(light) == len(set(light))
    assert all(colour == colour.lower() for colour in light)
