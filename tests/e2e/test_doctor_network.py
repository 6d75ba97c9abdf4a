# SPDX-License-Identifier: Apache-2.0
"""wherry doctor --network: what keeps two hosts apart, and what to change (docs/network.md)."""

import json
import sys

import pytest
from two_hosts import FAR, NEAR, PIPE, result

CHECKS = ["hosts", "ports", "key", "versions", "provider", "locked memory"]
CHECKS_OF_HOST = [f"{FAR} {check}" for check in ("names", "route", "MTU", "ports")]
HOLD = """
import socket, sys
held = []
for port in map(int, sys.argv[1:]):
    held.append(socket.create_server(("", port)))
print("held", flush=True)
sys.stdin.read()
"""


def diagnose(hosts, *arguments, **env):
    """Whether nothing is wrong, and what each check says. The text and the exit status say the same."""
    shown = hosts.start(hosts.near, "doctor", "--json", "--network", *arguments, stdout=PIPE, env=env)
    report = json.loads(shown.stdout.read())
    code, errors = result(shown)
    assert errors == ""
    assert code == (0 if report["ok"] else 1)
    found = {check["name"]: check for check in report["checks"]}
    assert len(found) == len(report["checks"])
    for check in found.values():
        assert check["found"] and (check["verdict"] == "OK" or check["advice"]), check
    assert report["ok"] == all(check["verdict"] == "OK" for check in found.values())
    return report["ok"], found


def wrong(hosts, name, *arguments, **env):
    """What the one check says that does not say OK."""
    ok, found = diagnose(hosts, *arguments, **env)
    assert not ok
    assert [check["name"] for check in found.values() if check["verdict"] != "OK"] == [name]
    return found[name]


def hold(hosts, host, *ports):
    holder = hosts.spawn(host, sys.executable, "-c", HOLD, *ports, stdin=PIPE, stdout=PIPE)
    assert holder.stdout.readline() == b"held\n"
    return holder


def test_where_nothing_is_wrong_each_line_says_so(hosts):
    ok, found = diagnose(hosts)
    assert ok, found
    assert list(found) == CHECKS + CHECKS_OF_HOST
    assert found["hosts"]["found"] == f"{hosts.hosts}: 2 nodes on 2 hosts; this process is node 0, on {NEAR}"
    assert found["ports"]["found"] == "47000-47999: 1000 of 1000 are free on this host"
    assert "libfabric" in found["versions"]["found"]
    assert found[f"{FAR} names"]["found"] == FAR
    assert found[f"{FAR} route"]["found"] == f"from {NEAR} on near0"
    assert found[f"{FAR} MTU"]["found"] == "1500 bytes"
    assert found[f"{FAR} ports"]["found"] == "of 256 tried of 47000-47999, 256 answer, 0 of them listened on"


def test_the_text_has_each_check_and_a_conclusion(hosts):
    shown = hosts.start(hosts.near, "doctor", "--network", FAR, stdout=PIPE)
    lines = shown.stdout.read().decode().splitlines()
    assert result(shown) == (0, "")
    for name in CHECKS + CHECKS_OF_HOST:
        assert any(line.startswith("OK    " + name) for line in lines), name
    assert lines[-1] == f"Nothing is wrong here with the network to {FAR}."


def test_a_listener_there_tells_its_version(hosts):
    env = {"WHERRY_PORTS": "47000-47099"}
    hosts.start(hosts.far, "serve", "--root", hosts.folder, "--listen", "wherry://*:5000", env=env).stderr.readline()
    ok, found = diagnose(hosts, **env)
    assert ok, found
    assert "100 answer" in found[f"{FAR} ports"]["found"] and " 0 of them" not in found[f"{FAR} ports"]["found"]
    assert found[f"{FAR} versions"]["found"].startswith("a listener there speaks rendezvous ")


def test_another_programs_port_is_no_listener(hosts):
    env = {"WHERRY_PORTS": "47000-47003"}
    hold(hosts, hosts.far, 47001)
    ok, found = diagnose(hosts, **env)
    assert ok, found
    assert found[f"{FAR} ports"]["found"] == "of 4 tried of 47000-47003, 4 answer, 1 of them listened on"
    assert found[f"{FAR} versions"]["found"] == "no Wherry listener there answered with its version"


def test_without_hosts_it_says_what_to_make(hosts):
    ok, found = diagnose(hosts, WHERRY_HOSTS=None)
    assert not ok
    assert "make a file with the host of each node" in found["hosts"]["advice"]
    assert found["provider"]["found"].startswith("not tried")


def test_a_line_that_is_wrong_is_named(hosts):
    hosts.hosts.write_text(f"{NEAR}\nal/pha\n")
    _, found = diagnose(hosts)
    assert f"{hosts.hosts}:2" in found["hosts"]["found"]


def test_a_node_that_is_said_to_be_on_another_host_is_doubted(hosts):
    _, found = diagnose(hosts, FAR, WHERRY_NODE="1")
    assert found["hosts"]["verdict"] == "FAIL"
    assert found["hosts"]["advice"].startswith(f"{FAR} is no name or address of this host, ")


@pytest.mark.parametrize("change, said", [("unset", "WHERRY_KEY=FILE"), ("missing", "wherry key "), ("open", "chmod 600"),
                                          ("empty", "holds no key")])
def test_a_key_that_is_no_use_is_told(hosts, change, said):
    key = hosts.folder / "key"
    if change == "missing":
        key.unlink()
    elif change == "open":
        key.chmod(0o640)
    elif change == "empty":
        key.write_text("")
    _, found = diagnose(hosts, **({"WHERRY_KEY": None} if change == "unset" else {}))
    assert found["key"]["verdict"] == found["provider"]["verdict"] == "FAIL"
    assert said in found["key"]["advice"]


def test_ports_that_others_hold_are_counted(hosts):
    hold(hosts, hosts.near, 47000, 47002)
    _, found = diagnose(hosts, WHERRY_PORTS="47000-47002")
    assert found["ports"]["found"] == "47000-47002: 1 of 3 are free on this host"
    assert "set a larger range of WHERRY_PORTS" in found["ports"]["advice"]


def test_a_library_that_is_missing_is_named(hosts):
    _, found = diagnose(hosts, WHERRY_LIBFABRIC="libnofabric.so")
    assert found["versions"]["verdict"] == found["provider"]["verdict"] == "FAIL"
    assert "install libfabric1" in found["versions"]["advice"] and "libnofabric.so" in found["versions"]["found"]


def test_a_host_that_drops_everything_is_told_from_one_that_refuses(hosts):
    hosts.ip(hosts.far, f"route add blackhole {NEAR}/32")
    finding = wrong(hosts, f"{FAR} ports", WHERRY_PORTS="47000-47009")
    assert finding["found"].endswith("0 answer, 0 of them listened on; 10 do not answer")
    assert "a firewall drops it" in finding["advice"]


def test_ports_that_a_firewall_drops_are_counted(hosts):
    hosts.filter(hosts.far, "input", "tcp dport 47004-47006 drop")
    finding = wrong(hosts, f"{FAR} ports", WHERRY_PORTS="47000-47009")
    assert finding["found"] == "of 10 tried of 47000-47009, 7 answer, 0 of them listened on; 3 do not answer"
    assert finding["advice"].startswith("its firewall drops some")


def test_a_host_without_a_name_a_route_or_an_address_of_its_own_is_told(hosts):
    assert "use its address" in wrong(hosts, "nosuchhost.invalid names", "nosuchhost.invalid")["advice"]
    assert "add a route" in wrong(hosts, "192.0.2.1 route", "192.0.2.1")["advice"]
    assert "that is this host itself" in wrong(hosts, "localhost names", "localhost")["advice"]


def test_a_small_mtu_is_told(hosts):
    hosts.ip(hosts.near, "link set near0 mtu 1000")
    finding = wrong(hosts, f"{FAR} MTU")
    assert finding["found"] == "1000 bytes" and "raise the interface's MTU" in finding["advice"]


def test_peer_of_another_host_is_sent_to_network(hosts):
    shown = hosts.start(hosts.near, "doctor", "--peer", "wherry://1:5000", stdout=PIPE)
    code, errors = result(shown)
    assert code == 1 and "it is on another host: use wherry doctor --network HOST" in errors
