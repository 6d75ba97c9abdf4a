# SPDX-License-Identifier: Apache-2.0
"""A network that loses, doubles, delays and overtakes packets, a slow one, and many shippers on three hosts: all arrives."""

import os

import pytest
from collecting import listing, make_tree
from test_network_ends import MIB, Flow
from two_hosts import result

CABLES = {
    "loses": ["--loss", 0.01],
    "doubles": ["--double", 0.05],
    "delays": ["--delay", 0.02],
    "lets later packets overtake": ["--delay", 0.001, "--jitter", 0.004],
    "does all of it": ["--loss", 0.01, "--double", 0.02, "--delay", 0.001, "--jitter", 0.003],
}


@pytest.mark.parametrize("options", CABLES.values(), ids=CABLES)
def test_what_a_cable_does_changes_nothing(badly_cabled, options):
    badly_cabled.disturb(*options)
    flow = Flow(badly_cabled)
    flow.wait_for(2 * MIB)
    flow.stop()
    assert flow.results() == (0, 0, "")
    assert flow.is_gapless() and flow.received() == 8 * flow.count


@pytest.mark.parametrize("options", CABLES.values(), ids=CABLES)
def test_a_tree_is_shipped_whole_over_such_a_cable(badly_cabled, tmp_path, options):
    badly_cabled.disturb(*options)
    make_tree(tmp_path / "tree")
    (tmp_path / "into").mkdir()
    collector = badly_cabled.start(
        badly_cabled.near, "collect", "--listen", "wherry://*:5000", "--into", tmp_path / "into", "--expect", "1")
    shipper = badly_cabled.start(
        badly_cabled.far, "ship", "--wait", "60", "--to", "wherry://0:5000", tmp_path / "tree")
    code, errors = result(shipper)
    assert code == 0, errors
    assert result(collector)[0] == 0
    assert listing(tmp_path / "into/tree") == listing(tmp_path / "tree")


def test_a_slow_cable_holds_the_sender_back_and_loses_nothing(hosts):
    for host, name in ((hosts.near, "near0"), (hosts.far, "far0")):
        hosts.run(host, "tc", "qdisc", "add", "dev", name, "root", "tbf", "rate", "20mbit", "burst", "32kb", "latency", "50ms")
    flow = Flow(hosts)
    flow.wait_for(4 * MIB)
    flow.stop()
    assert flow.results() == (0, 0, "")
    assert flow.is_gapless() and flow.received() == 8 * flow.count


def test_sixty_shippers_on_three_hosts_are_collected_whole(three_hosts, tmp_path):
    (tmp_path / "into").mkdir()
    for number in range(60):
        folder = tmp_path / "from" / str(number)
        folder.mkdir(parents=True)
        for name in range(20):
            (folder / str(name)).write_bytes(os.urandom(1000 * name))
    collector = three_hosts.start(
        three_hosts.near, "collect", "--listen", "wherry://*:5000", "--into", tmp_path / "into", "--expect", "60")
    places = [three_hosts.near, three_hosts.far, three_hosts.third]
    shippers = [three_hosts.start(places[number % 3], "ship", "--quiet", "--wait", "60", "--to", "wherry://0:5000",
                                  tmp_path / "from" / str(number)) for number in range(60)]
    for shipper in shippers:
        assert result(shipper) == (0, "")
    assert result(collector)[0] == 0
    assert listing(tmp_path / "into") == listing(tmp_path / "from")
