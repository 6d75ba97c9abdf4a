# SPDX-License-Identifier: Apache-2.0
"""WHERRY_HOSTS: addresses that name no fabric reach this host over shared memory and others over the network (docs/network.md)."""

import json
import os
import shutil
from pathlib import Path

import pytest
from collecting import listing, make_tree
from program import PROGRAM
from two_hosts import FAR, NEAR, PIPE, result
from waiting import wait_until

BUILD = Path(PROGRAM).resolve().parent.parent


def example(name):
    found = next((path for path in (BUILD / "bin" / name, BUILD / "examples/cpp" / name) if path.exists()), None)
    return found or pytest.skip(f"{name} was not built")


def finish(process):
    """What it printed; it must have succeeded."""
    output = process.stdout.read()
    code, errors = result(process)
    assert code == 0, errors
    return output.decode()


def mapped(process):
    return Path(f"/proc/{process.pid}/maps").read_text()


def endpoints(hosts, host):
    """Streams of the job's processes, as `wherry top` on that host shows them: both hosts' have one /proc."""
    shown = hosts.start(host, "top", "--once", "--json", "--interval", "0.05", stdout=PIPE)
    processes = json.loads(finish(shown))["processes"]
    return [endpoint for process in processes if process["job"] == hosts.job for endpoint in process["endpoints"]
            if endpoint["kind"] == "stream"]


@pytest.mark.parametrize("name, receiver, sent, printed", [
    ("framed", [], ["one", "two", "and three"], "one\ntwo\nand three\n"),
    ("window", [], ["written from another host"], "written from another host\n"),
    ("mailbox", ["1"], ["send", "a message"], "a message\n"),
])
@pytest.mark.parametrize("where", ["another host", "this host"])
def test_an_example_runs_as_it_is(hosts, where, name, receiver, sent, printed):
    program = example("cpp_" + name)
    there = hosts.far if where == "another host" else hosts.near
    receiving = hosts.spawn(hosts.near, program, *receiver, stdout=PIPE)
    sending = hosts.spawn(there, program, *sent, stdout=PIPE)
    finish(sending)
    assert finish(receiving) == printed


def test_one_listener_accepts_from_both_hosts_and_top_names_the_other(hosts):
    listener = hosts.spawn(hosts.near, example("cpp_poller"), "3", stdout=PIPE)
    senders = [hosts.start(host, "pipe", "wherry://0:2000", stdin=PIPE) for host in (hosts.near, hosts.far, hosts.far)]
    for sender in senders:
        sender.stdin.write(b"x")
        sender.stdin.flush()
    seen = wait_until(lambda: (found := [each for each in endpoints(hosts, hosts.near) if each["bytes_received"]]) and
                      len(found) == 3 and found, "three streams")
    assert sorted((each["fabric"], each["peer_host"]) for each in seen) == [("ofi", FAR), ("ofi", FAR), ("shm", "")]
    table = hosts.start(hosts.near, "top", "--once", "--interval", "0.05", stdout=PIPE)
    assert f"  {FAR}:1:*  " in finish(table)
    sending = [each for each in endpoints(hosts, hosts.far) if each["bytes_sent"]]
    assert sorted((each["fabric"], each["peer_host"]) for each in sending) == [("ofi", NEAR), ("ofi", NEAR), ("shm", "")]
    for sender in senders:
        sender.stdin.close()
        assert result(sender) == (0, "")
    finish(listener)


def test_a_tree_is_shipped_whole_from_either_host(hosts, tmp_path):
    make_tree(tmp_path / "tree")
    (tmp_path / "into").mkdir()
    collector = hosts.start(hosts.near, "collect", "--listen", "wherry://*:5000", "--into", tmp_path / "into", "--expect", "2")
    shippers = [hosts.start(host, "ship", "--to", "wherry://0:5000", tmp_path / "tree") for host in (hosts.near, hosts.far)]
    for shipper in shippers:
        code, errors = result(shipper)
        assert code == 0, errors
    assert result(collector)[0] == 0
    folders = [path for path in [tmp_path / "into", *(tmp_path / "into").rglob("*")] if path.is_dir()]
    assert [listing(folder) for folder in folders].count(listing(tmp_path / "tree")) >= 1


def test_a_hosts_files_are_mounted_on_the_other(hosts, tmp_path):
    if not (BUILD / "bin/wherry-mount").exists() or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("no wherry-mount, or no FUSE here")
    root, mount = tmp_path / "root", tmp_path / "mount"
    root.mkdir()
    mount.mkdir()
    (root / "read").write_bytes(os.urandom(3 << 20))
    serving = hosts.start(hosts.near, "serve", "--root", root, "--listen", "wherry://0:7000")
    assert b"serving" in serving.stderr.readline()
    mounting = hosts.start(hosts.far, "mount", "wherry://0:7000", mount)
    said = mounting.stderr.readline()
    if b" is mounted on " not in said and b"fuse" in said.lower():
        pytest.skip("FUSE is not permitted in these namespaces: " + said.decode())
    assert b" is mounted on " in said, said + mounting.stderr.read()
    inside = hosts.spawn(hosts.far, "sh", "-c", f"cmp {mount}/read {root}/read && head -c 2000000 {mount}/read > {mount}/written && "
                       f"sync {mount}/written && cmp {mount}/written {root}/written && echo same", stdout=PIPE)
    assert finish(inside) == "same\n"
    mounting.terminate()
    assert result(mounting)[0] == 0


@pytest.mark.parametrize("program, arguments", [("publish", ["1"]), ("subscribe", [])])
def test_what_needs_shared_memory_says_so_at_once(hosts, program, arguments):
    code, errors = result(hosts.spawn(hosts.near, example("cpp_" + program), *arguments, stdout=PIPE))
    assert code == 1
    assert errors.count("\n") == 1
    assert "Operation not supported; peers on other hosts cannot map it; use wherry+shm:// for processes of this machine" in errors


def listener_error(hosts, **env):
    """A listener on the near host that cannot start."""
    code, errors = result(hosts.start(hosts.near, "pipe", "--listen", "wherry://*:5000", stdout=PIPE, env=env))
    assert code == 1 and errors.count("\n") == 1, errors
    return errors


def test_a_file_that_cannot_be_read_or_is_wrong_is_named(hosts):
    assert "/nonexistent: No such file or directory; WHERRY_HOSTS names it" in listener_error(hosts, WHERRY_HOSTS="/nonexistent")
    hosts.hosts.write_text(f"{NEAR}\nal/pha\n")
    assert f"{hosts.hosts}:2: " in listener_error(hosts) and "is not the name or address of a host; use lines such as" in listener_error(hosts)


def test_the_own_node_is_the_line_of_this_host_unless_none_or_several_are(hosts):
    hosts.hosts.write_text(f"{FAR}\n{FAR}\n4-5 {NEAR}\n")
    assert "nodes 4, 5 are all on this host; set WHERRY_NODE to the one" in listener_error(hosts)
    assert "has no line for node 9, which WHERRY_NODE says" in listener_error(hosts, WHERRY_NODE="9")
    hosts.hosts.write_text(f"{FAR}\n")
    errors = listener_error(hosts)
    assert "no line names this host, " in errors and NEAR in errors and "; add its line, or set WHERRY_NODE" in errors


def test_several_nodes_on_one_host_meet_over_shared_memory(hosts):
    hosts.hosts.write_text(f"{FAR}\n4-5 {NEAR}\n")
    receiver = hosts.start(hosts.near, "pipe", "--listen", "wherry://4:5000", stdout=PIPE, env={"WHERRY_NODE": "4"})
    sender = hosts.start(hosts.near, "pipe", "wherry://4:5000", stdin=PIPE, env={"WHERRY_NODE": "5"})
    sender.stdin.write(b"x")
    sender.stdin.flush()
    assert receiver.stdout.read(1) == b"x"
    assert "libfabric" not in mapped(sender)
    sender.stdin.close()
    assert result(sender) == (0, "") and result(receiver) == (0, "")


def test_a_node_that_the_file_lacks_is_an_error_at_once(hosts):
    code, errors = result(hosts.start(hosts.far, "pipe", "wherry://7:5000", stdin=PIPE))
    assert code == 1
    assert f"{hosts.hosts} (WHERRY_HOSTS) has no line for node 7; add it, on all hosts" in errors


def test_without_a_key_or_libfabric_the_error_says_what_to_do(hosts):
    assert "make one with: wherry key FILE" in listener_error(hosts, WHERRY_KEY=None)
    (hosts.folder / "key").chmod(0o644)
    assert "make it private: chmod 600" in listener_error(hosts)
    (hosts.folder / "key").chmod(0o600)
    assert "install libfabric1, or set WHERRY_LIBFABRIC" in listener_error(hosts, WHERRY_LIBFABRIC="libnofabric.so")


def test_without_the_module_the_error_says_what_to_install(hosts, tmp_path):
    (tmp_path / "bin").mkdir()
    alone = tmp_path / "bin/wherry"
    shutil.copy(PROGRAM, alone)
    process = hosts.spawn(hosts.near, alone, "pipe", "--listen", "wherry://*:5000", stdout=PIPE)
    code, errors = result(process)
    if "error while loading shared libraries" in errors:
        pytest.skip("this program is no one file")
    assert code == 1
    assert "install libfabric-dev and libsodium-dev before Wherry is built" in errors


@pytest.mark.parametrize("why", ["no WHERRY_HOSTS", "WHERRY_FABRIC=shm", "wherry+shm://", "only this host"])
def test_nothing_of_the_network_is_loaded_where_it_is_not_needed(hosts, why):
    env = {"no WHERRY_HOSTS": {"WHERRY_HOSTS": None}, "WHERRY_FABRIC=shm": {"WHERRY_FABRIC": "shm"}}.get(why, {})
    if why == "only this host":
        hosts.hosts.write_text(f"{NEAR}\n")
    scheme = "wherry+shm" if why == "wherry+shm://" else "wherry"
    env["WHERRY_KEY"] = None
    receiver = hosts.start(hosts.near, "pipe", "--listen", f"{scheme}://*:5000", stdout=PIPE, env=env)
    sender = hosts.start(hosts.near, "pipe", f"{scheme}://0:5000", stdin=PIPE, env=env)
    sender.stdin.write(b"x")
    sender.stdin.flush()
    assert receiver.stdout.read(1) == b"x"
    for process in (sender, receiver):
        assert "libfabric" not in mapped(process) and "libwherry-ofi" not in mapped(process)
    sender.stdin.close()
    assert result(sender) == (0, "") and result(receiver) == (0, "")


def test_a_listener_that_ends_frees_its_port_on_both(hosts):
    for _ in range(2):
        receiver = hosts.start(hosts.near, "pipe", "--listen", "wherry://*:5000", stdout=PIPE)
        sender = hosts.start(hosts.far, "pipe", "wherry://0:5000", stdin=PIPE)
        sender.stdin.close()
        assert result(sender) == (0, "") and result(receiver) == (0, "")
    receiver = hosts.start(hosts.near, "pipe", "--listen", "wherry+ofi://*:5000", stdout=PIPE)
    sender = hosts.start(hosts.far, "pipe", "wherry://0:5000", stdin=PIPE)
    sender.stdin.close()
    assert result(sender) == (0, "") and result(receiver) == (0, "")
