# SPDX-License-Identifier: Apache-2.0
"""What comes to a host without the key, with another version, or where this host lacks the means.

More complaints of users of other networks: see test_network_complaints.py.
"""

import re
import subprocess
import sys

import pytest
from collecting import listing, make_tree
from two_hosts import NEAR, PIPE, result
from waiting import WATCHDOG

OTHER_LIBRARIES = "build/mpi/*/lib/*/libfabric.so.1"
ONE_PORT = {"WHERRY_PORTS": "47000-47000"}
TWO_PORTS = {"WHERRY_PORTS": "47000-47001"}
MAGIC = int.from_bytes(b"WHNI", "little")


def play(hosts, host, program, **options):
    """A Python program on that host, which is ended behind the test."""
    process = subprocess.Popen([*hosts.inside(host), sys.executable, "-c", program], stdin=PIPE, stdout=PIPE, stderr=PIPE,
                               text=True, **options)
    hosts.started.append(process)
    return process


# The key

@pytest.mark.parametrize("side", ["listener", "connector"])
def test_without_a_key_there_is_no_connection(hosts, side):
    start = hosts.listen if side == "listener" else hosts.connect
    code, errors = result(start(hosts.near, env={"WHERRY_KEY": ""}))
    assert code == 1 and "make one with: wherry key FILE; copy it to each host" in errors, errors
    code, errors = result(start(hosts.near, key="no-such-key"))
    assert code == 1 and f"make one with: wherry key {hosts.folder / 'no-such-key'}" in errors, errors


@pytest.mark.parametrize("side", ["listener", "connector"])
def test_a_key_that_others_may_read_is_none(hosts, side):
    start = hosts.listen if side == "listener" else hosts.connect
    (hosts.folder / "key").chmod(0o644)
    code, errors = result(start(hosts.near))
    assert code == 1 and f"other users may read or write the key; make it private: chmod 600 {hosts.folder / 'key'}" in errors


def test_another_key_is_said_on_both_sides(hosts):
    listener = hosts.listen(hosts.near)
    hosts.make_key("other")
    errors = hosts.refusal(hosts.far, "--wait", WATCHDOG, key="other")
    assert re.search(rf"{NEAR}:47\d\d\d has another key; copy the file that WHERRY_KEY names to both hosts", errors), errors
    assert "it has another key; copy the file that WHERRY_KEY names to both hosts" in listener.stderr.readline().decode()
    listener.kill()
    hosts.carry(hosts.near, hosts.far)


# Strangers

KNOCKS = """
import socket, struct
silent = []
for i in range(10000):
    stranger = socket.socket()
    stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    try:
        stranger.connect(("{host}", {port}))
        if i % 3 == 0:
            stranger.send(b"GET / HTTP/1.1\\r\\n\\r\\n")
    except OSError:
        pass
    silent.append(stranger)
    if len(silent) == 300:
        silent.pop(0).close()
print("done", flush=True)
"""


def test_ten_thousand_knocks_keep_no_peer_out(hosts, tmp_path):
    make_tree(tmp_path / "tree")
    (tmp_path / "into").mkdir()
    collector = hosts.start(hosts.near, "collect", "--listen", "wherry+ofi://*:5000", "--into", tmp_path / "into", env=TWO_PORTS)
    (port,) = hosts.wait_for_ports(hosts.near, 1)
    knocking = play(hosts, hosts.far, KNOCKS.format(host=NEAR, port=port))
    shipped = 0
    while knocking.poll() is None:
        shipper = hosts.start(hosts.far, "ship", "--to", "wherry+ofi://0:5000", tmp_path / "tree", env=TWO_PORTS)
        code, errors = result(shipper)
        assert code == 0, errors
        shipped += 1
    assert knocking.stdout.read() == "done\n" and shipped > 0
    collector.terminate()
    assert result(collector)[0] == 0
    assert listing(tmp_path / "tree") in [listing(path) for path in [tmp_path / "into", *(tmp_path / "into").iterdir()]]


@pytest.mark.parametrize("said", ["", "GET / HTTP/1.1\r\n\r\n", "\0" * 5])
def test_a_scanner_is_dropped(hosts, said):
    settings = {**TWO_PORTS, "WHERRY_HOST_TIMEOUT": "1000"}
    listener = hosts.listen(hosts.near, env=settings)
    (port,) = hosts.wait_for_ports(hosts.near, 1)
    scanner = play(hosts, hosts.far, f"import socket; stranger = socket.create_connection(('{NEAR}', {port})); "
                                     f"stranger.sendall({said.encode()!r}); print(stranger.recv(1))")
    answer, errors = scanner.communicate(timeout=WATCHDOG)
    assert answer == "b''\n" or "ConnectionResetError" in errors, (answer, errors)
    listener.kill()
    listener.wait(timeout=WATCHDOG)
    hosts.carry(hosts.near, hosts.far, env=settings)


# Versions

FALSE_LISTENER = f"""
import socket, struct
listening = socket.create_server(("", 47000))
print("listening", flush=True)
while True:
    peer, _ = listening.accept()
    version, magic, job, node, port = struct.unpack_from("<IIQHH", peer.recv(56, socket.MSG_WAITALL))
    assert magic == {MAGIC} and node == 0 and port == 5000
    peer.sendall(struct.pack("<IIII32x", version + 1, magic, 4, 0))
"""

FALSE_CONNECTOR = f"""
import socket, struct
peer = socket.create_connection(("{NEAR}", {{port}}))
peer.sendall(struct.pack("<IIQHHI32x", 2, {MAGIC}, 0, 0, 5000, 0))
print(*struct.unpack_from("<III", peer.recv(48, socket.MSG_WAITALL)))
"""


def test_a_listener_of_another_version_is_named(hosts):
    false = play(hosts, hosts.near, FALSE_LISTENER)
    assert false.stdout.readline() == "listening\n"
    errors = hosts.refusal(hosts.far, env=ONE_PORT)
    assert f"{NEAR}:47000 speaks version 2 and this process version 1; install the same Wherry on both hosts" in errors, errors


def test_a_connector_of_another_version_is_told_ours(hosts):
    listener = hosts.listen(hosts.near, env=TWO_PORTS)
    (port,) = hosts.wait_for_ports(hosts.near, 1)
    false = play(hosts, hosts.far, FALSE_CONNECTOR.format(port=port))
    answer, errors = false.communicate(timeout=WATCHDOG)
    assert answer == f"1 {MAGIC} 4\n", errors
    said = listener.stderr.readline().decode()
    assert "it speaks version 2 and this process version 1: install the same Wherry on both hosts" in said, said


@pytest.mark.parametrize("newer", ["listener", "connector"])
def test_hosts_with_different_libraries_connect(hosts, newer, request):
    library = next(iter(request.config.rootpath.glob(OTHER_LIBRARIES)), None)
    if library is None:
        pytest.skip("no other libfabric: scripts/setup mpi brings one")
    file = hosts.folder / "received"
    env = {"WHERRY_LIBFABRIC": str(library)}
    with open(file, "wb") as output:
        listener = hosts.listen(hosts.near, stdout=output, env=env if newer == "listener" else {})
    connector = hosts.connect(hosts.far, env=env if newer == "connector" else {})
    connector.communicate(b"x" * 100_000, timeout=WATCHDOG)
    assert (connector.returncode, listener.wait(timeout=WATCHDOG)) == (0, 0)
    assert file.read_bytes() == b"x" * 100_000


# Limits of this host

def limit(name, value):
    return {"prefix": ("prlimit", f"--{name}={value}", "--")}


def test_locked_memory_is_not_needed_over_tcp(hosts):
    hosts.carry(hosts.near, hosts.far, **limit("memlock", 0))


@pytest.mark.parametrize("side", ["listener", "connector"])
def test_with_few_descriptors_the_error_says_so(hosts, side):
    """From a limit on which the program cannot connect to one on which it can: each error says what to raise."""
    codes = []
    for descriptors in range(8, 100):
        limits = {side: limit("nofile", descriptors)}
        with open(hosts.folder / "received", "wb") as output:
            listener = hosts.listen(hosts.near, stdout=output, **limits.get("listener", {}))
        connector = hosts.connect(hosts.far, "--wait", WATCHDOG, **limits.get("connector", {}))
        connector.stdin.close()
        limited, other = (listener, connector) if side == "listener" else (connector, listener)
        code, errors = result(limited)
        other.kill()
        other.wait(timeout=WATCHDOG)
        codes.append(code)
        if code == 0:
            break
        assert code == 1 and "ulimit -n" in errors, (descriptors, errors)
    assert len(codes) > 5 and codes[-1] == 0
