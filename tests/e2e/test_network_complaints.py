# SPDX-License-Identifier: Apache-2.0
"""The way between two hosts, as users of other networks complain about it: interfaces, firewalls, names, routers, IPv6, MTU.

Each test is a line of such complaints, in network namespaces. What ends a connection is in test_network_ends.py, what comes
without the key or without means in test_network_strangers.py.
"""

import re

import pytest
from two_hosts import FAR, FAR6, NEAR, NEAR6, RoutedHosts, result
from waiting import wait_until

IMPATIENT = {"WHERRY_HOST_TIMEOUT": "1000"}
TWO_PORTS = {"WHERRY_PORTS": "47000-47001"}


# The wrong interface

@pytest.mark.parametrize("decoy", ["docker0", "a cable that is down"])
def test_another_interface_is_never_chosen(hosts, decoy):
    for host in (hosts.near, hosts.far):
        if decoy == "docker0":  # the same address on both: whatever is sent there comes back to its sender
            hosts.ip(host, "link add docker0 type bridge")
            hosts.ip(host, "addr add 172.17.0.1/16 dev docker0")
            hosts.ip(host, "link set docker0 up")
    if decoy != "docker0":
        hosts.lay_cable(hosts.near, "a0", "10.97.0.1", hosts.far, "b0", "10.97.0.2")
        hosts.ip(hosts.far, "link set b0 down")
    assert hosts.carry(hosts.near, hosts.far, lambda: hosts.established(hosts.near)) == {(NEAR, FAR)}
    assert hosts.carry(hosts.far, hosts.near, lambda: hosts.established(hosts.near)) == {(NEAR, FAR)}


# Firewalls

def test_a_firewall_that_lets_the_range_in_is_enough(hosts):
    hosts.filter(hosts.near, "input", "tcp dport != 47000-47999 drop")
    hosts.filter(hosts.far, "input", "tcp flags & (syn | ack) == syn drop")  # a connector needs no open port
    hosts.carry(hosts.near, hosts.far)


def test_a_firewall_that_drops_all_is_named(hosts):
    hosts.filter(hosts.near, "input", "meta l4proto tcp drop")
    errors = hosts.refusal(hosts.far, env=IMPATIENT)
    assert re.search(rf"{NEAR}:47\d\d\d did not answer: a firewall drops it\? Let in the TCP ports of WHERRY_PORTS", errors), errors


def test_a_firewall_is_named_by_the_time_for_connecting(hosts):
    hosts.filter(hosts.near, "input", "meta l4proto tcp drop")
    # Much longer than the watchdog.
    errors = hosts.refusal(hosts.far, "--wait", "1", env={"WHERRY_HOST_TIMEOUT": "600000", "WHERRY_CONNECT_TIMEOUT": "1000"})
    assert "did not answer: a firewall drops it?" in errors, errors


def test_a_firewall_that_refuses_is_named(hosts):
    hosts.filter(hosts.near, "input", "meta l4proto tcp reject with icmpx type admin-prohibited")
    errors = hosts.refusal(hosts.far, "--wait", "0")
    assert re.search(rf"{NEAR}:47\d\d\d cannot be reached", errors), errors


DROPS = "did not answer: a firewall drops it? Let in all of WHERRY_PORTS on that host"
REFUSES = "refuses; let the firewalls pass all of WHERRY_PORTS"


@pytest.mark.parametrize("verdict, host_timeout, said", [
    ("drop", "1000", DROPS), ("drop", "600000", DROPS), ("reject with tcp reset", "600000", REFUSES)])
def test_a_firewall_at_the_data_port_is_named(hosts, verdict, host_timeout, said):
    settings = {**TWO_PORTS, "WHERRY_HOST_TIMEOUT": host_timeout}
    listener = hosts.listen(hosts.near, env=settings)
    (port,) = hosts.wait_for_ports(hosts.near, 1)
    hosts.filter(hosts.near, "input", f"tcp dport != {port} {verdict}")
    errors = hosts.refusal(hosts.far, env=settings)
    assert f"{NEAR}:{47000 + 47001 - port}, its data port, {said}" in errors, errors
    assert result(listener)[0] == 1  # its only peer has gone


# The host's own name

def test_a_host_whose_own_name_is_loopback_is_reached(hosts):
    hosts.name_hosts("near", "far")
    hosts.set_names(hosts.near, f"127.0.0.1 localhost\n127.0.1.1 near\n{FAR} far\n")
    hosts.set_names(hosts.far, f"127.0.0.1 localhost\n127.0.1.1 far\n{NEAR} near\n")
    assert hosts.carry(hosts.near, hosts.far, lambda: hosts.established(hosts.far)) == {(FAR, NEAR)}
    assert hosts.carry(hosts.far, hosts.near, lambda: hosts.established(hosts.far)) == {(FAR, NEAR)}


def test_a_name_that_nobody_knows_is_said(hosts):
    hosts.name_hosts("no-such-host.invalid", FAR)
    errors = hosts.refusal(hosts.far)
    assert "no-such-host.invalid" in errors and "correct WHERRY_HOSTS or /etc/hosts" in errors, errors


# Routers that change addresses

def test_a_connector_behind_a_router_that_changes_its_address_connects(routed):
    routed.filter(routed.router, "postrouting", "oifname router0 masquerade")
    # The near host knows no way to the far one: only to the router.
    assert routed.carry(routed.near, routed.far, lambda: routed.established(routed.near)) == {(NEAR, RoutedHosts.ROUTER)}


@pytest.mark.parametrize("address, said", [(RoutedHosts.ROUTER, "nobody listens there; start the listener"),
                                           (RoutedHosts.BEHIND, "cannot be reached; correct its address in WHERRY_HOSTS")])
def test_a_listener_behind_such_a_router_is_refused_with_a_text(routed, address, said):
    routed.filter(routed.router, "postrouting", "oifname router0 masquerade")
    routed.name_hosts(NEAR, address)
    routed.listen(routed.far)
    errors = routed.refusal(routed.near, "--wait", "0")
    assert said in errors and address in errors, errors


# IPv6

def use_ipv6(hosts):
    hosts.ip(hosts.near, f"addr add {NEAR6}/64 nodad dev near0")
    hosts.ip(hosts.far, f"addr add {FAR6}/64 nodad dev far0")


def test_hosts_without_ipv4_connect(hosts):
    use_ipv6(hosts)
    hosts.ip(hosts.near, "-4 addr flush dev near0")
    hosts.ip(hosts.far, "-4 addr flush dev far0")
    hosts.name_hosts(NEAR6, f"[{FAR6}]")
    assert hosts.carry(hosts.near, hosts.far, lambda: hosts.established(hosts.near)) == {(NEAR6, FAR6)}
    assert hosts.carry(hosts.far, hosts.near, lambda: hosts.established(hosts.near)) == {(NEAR6, FAR6)}


def test_a_link_local_address_needs_its_zone(hosts):
    address, _ = [wait_until(lambda: re.search(r"fe80::\S+(?=/)", hosts.run(host, "ip", "-6", "addr", "show", "dev", name)),
                             "an address that the kernel gives once it sees the cable")[0]
                  for host, name in ((hosts.near, "near0"), (hosts.far, "far0"))]
    hosts.name_hosts(address, FAR)
    errors = hosts.refusal(hosts.far, "--wait", "0")
    assert f"[{address}]:47" in errors and "correct its address in WHERRY_HOSTS" in errors, errors
    hosts.name_hosts(f"{address}%far0", FAR)
    (pair,) = hosts.carry(hosts.near, hosts.far, lambda: hosts.established(hosts.near))
    assert pair[0] == address


@pytest.mark.parametrize("verdict", ["drop", "reject"])
def test_where_ipv6_works_by_halves_ipv4_is_taken(hosts, verdict):
    use_ipv6(hosts)
    hosts.name_hosts("near", FAR)
    hosts.set_names(hosts.far, f"{NEAR6} near\n{NEAR} near\n")
    assert hosts.run(hosts.far, "getent", "ahosts", "near").startswith(NEAR6)
    hosts.filter(hosts.near, "input", f"meta nfproto ipv6 meta l4proto tcp {verdict}")
    assert hosts.carry(hosts.near, hosts.far, lambda: hosts.established(hosts.near)) == {(NEAR, FAR)}


# Path MTU

def narrow(routed):
    """The cable behind the router carries packets of 1300 bytes, and the far host does not tell the near one."""
    routed.ip(routed.near, f"route add default via {RoutedHosts.ROUTER}")
    routed.ip(routed.near, "link set near0 gso_max_segs 1")  # as on a wire: packets of at most the MTU
    routed.ip(routed.router, "link set router1 mtu 1300")
    routed.ip(routed.far, "link set far0 mtu 1300")
    routed.ip(routed.far, f"route change default via {RoutedHosts.ROUTER_FAR} advmss 1460")


@pytest.mark.parametrize("connector", ["near", "far"])
def test_a_path_that_carries_small_packets_only_is_named(routed, connector):
    narrow(routed)
    routed.filter(routed.router, "output", "icmp type destination-unreachable drop")
    by, to = (routed.near, routed.far) if connector == "near" else (routed.far, routed.near)
    routed.listen(to)  # more patient, so that it is not what ends the connection
    errors = routed.refusal(by, env=IMPATIENT)
    assert "small packets pass, and large ones do not: path MTU? Lower the interface's MTU, or let ICMP pass" in errors, errors


def test_a_path_that_tells_its_mtu_is_used(routed):
    narrow(routed)
    routed.carry(routed.near, routed.far)
