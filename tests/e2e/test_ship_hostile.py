# SPDX-License-Identifier: Apache-2.0
"""A collector and a shipper whose peer does not keep to the protocol. The records are made here by hand, from the map in
tools/ship/layout/wire.hpp: a second reading of it."""

import contextlib
import os
import random
import socket
import struct
import subprocess

import pytest
from collecting import WATCHDOG, Collector, address_of, listing, wait_until
from program import PROGRAM, environment

DIRECTORY, SYMLINK, FILE, DATA, FILE_END, ABANDON, GOODBYE = range(1, 8)
ABC = 0x78AF5F94892F3950  # XXH3, 64 bits, of "abc"
UNKNOWN = (1 << 64) - 1  # a length


def hello(version=1, magic=0x50494853, label=b"by hand", label_bytes=None):
    return struct.pack("<IIqII QQ24x", version, magic, os.getpid(), 0, len(label) if label_bytes is None else label_bytes, 0, 0) + label


def record(kind, identity, path=b"", target=b"", *, mode=0o644, seconds=1, nanoseconds=0, length=0, offset=0, digest=0, path_bytes=None,
           target_bytes=None, data=b""):
    head = struct.pack("<IIQIIqQQQII", kind, len(path) if path_bytes is None else path_bytes, identity, mode, nanoseconds, seconds,
                       length, offset, digest, len(target) if target_bytes is None else target_bytes, 0)
    return head + path + target + data


def empty_file_hash():
    return 0x2D06800538D394C2  # XXH3, 64 bits, of nothing


def say(collector, data, until_answered=True):
    """Sends bytes as a shipper would; what the collector answers."""
    with socket.create_connection(address_of(collector.address), timeout=WATCHDOG) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # cut off in the middle: it may
        answer = b""
        try:
            while more := connection.recv(65536):
                answer += more
        except ConnectionResetError:
            pass
        return answer


def answers(data):
    """[(answer, id, error, path, message)] of a collector's bytes."""
    found = []
    while data:
        version, kind, identity, error, path_bytes, message_bytes, _ = struct.unpack_from("<IIQIIII", data)
        assert version == 1
        path, data = data[32:32 + path_bytes], data[32 + path_bytes:]
        message, data = data[:message_bytes], data[message_bytes:]
        found.append((kind, identity, error, path, message))
    return found


def test_the_records_made_here_are_understood(tmp_path):
    with Collector(tmp_path / "into", "tcp", "--expect", 1) as collector:
        said = say(collector, hello() + record(DIRECTORY, 1, b"d", mode=0o755) + record(FILE, 2, b"d/empty")
                   + record(FILE_END, 2, digest=empty_file_hash()) + record(SYMLINK, 3, b"l", b"d/empty") + record(GOODBYE, 3))
        status, summary = collector.finish()
    assert answers(said) == [(3, 3, 0, b"", b"")]
    assert (status, summary["shippers"][0]["label"]) == (0, "by hand")
    assert set(listing(tmp_path / "into")) == {"d", "d/empty", "l"}


BEGIN = record(FILE, 1, b"file", length=100)
BROKEN = {
    "another program": b"GET / HTTP/1.1\r\nHost: here\r\n\r\n" * 4,
    "another version": hello(version=2),
    "a label that is too long": hello(label_bytes=256) + bytes(1000),
    "an unknown kind": hello() + record(8, 1, b"x"),
    "kind zero": hello() + record(0, 1),
    "an endless path": hello() + record(FILE, 1, path_bytes=0xFFFFFFFF) + bytes(10000),
    "a path one byte too long": hello() + record(FILE, 1, b"x" * 4096),
    "an endless target": hello() + record(SYMLINK, 1, b"l", target_bytes=0x7FFFFFFF) + bytes(10000),
    "an identity out of order": hello() + record(FILE, 2, b"file"),
    "identity zero": hello() + record(FILE, 0, b"file"),
    "a negative length": hello() + record(FILE, 1, b"file", length=1 << 63),
    "impossible nanoseconds": hello() + record(FILE, 1, b"file", nanoseconds=1_000_000_000),
    "data without a file": hello() + record(DATA, 1, length=1, data=b"x"),
    "an end without a file": hello() + record(FILE_END, 1),
    "a file within a file": hello() + BEGIN + record(FILE, 2, b"other"),
    "a directory within a file": hello() + BEGIN + record(DIRECTORY, 2, b"other"),
    "data of another file": hello() + BEGIN + record(DATA, 2, length=1, data=b"x"),
    "data of no length": hello() + BEGIN + record(DATA, 1),
    "data beyond the end": hello() + BEGIN + record(DATA, 1, length=101, data=bytes(101)),
    "data that overflows": hello() + BEGIN + record(DATA, 1, length=50, offset=(1 << 64) - 25, data=bytes(50)),
    "data larger than allowed": hello() + record(FILE, 1, b"file", length=1 << 40) + record(DATA, 1, length=(1 << 20) + 1),
    "data backwards": hello() + BEGIN + record(DATA, 1, length=9, offset=9, data=bytes(9)) + record(DATA, 1, length=9, data=bytes(9)),
    "goodbye within a file": hello() + BEGIN + record(GOODBYE, 1),
    "goodbye that does not count": hello() + record(GOODBYE, 1),
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
def test_nonsense_ends_its_own_session_only(tmp_path, data):
    (tmp_path / "good").write_text("x")
    with Collector(tmp_path / "into", "tcp", "--expect", 2) as collector:
        said = say(collector, data)
        assert collector.ship(tmp_path / "good").returncode == 0
        status, summary = collector.finish()
    assert status == 1
    assert sorted(s["status"] for s in summary["shippers"]) == ["broken", "complete"]
    assert os.listdir(tmp_path / "into") == ["good"]
    if said:  # unless the connection was reset before the answer was read
        assert answers(said)[-1][0] == 3 and answers(said)[-1][2] != 0


REFUSED = {"empty": b"", "dot": b".", "dot dot": b"..", "inside": b"a/../b", "absolute": b"/etc/x", "double": b"a//b", "slash": b"a/",
           "nul": b"a\0b", "dot in it": b"a/./b", "staging": b".wherry-partial.0/x", "long name": b"n" * 300, "deep": b"../" * 1000 + b"x"}


@pytest.mark.parametrize("kind", [FILE, DIRECTORY, SYMLINK], ids=["file", "directory", "symlink"])
@pytest.mark.parametrize("path", REFUSED.values(), ids=REFUSED.keys())
def test_a_path_that_is_not_plainly_below_the_destination_is_refused(tmp_path, kind, path):
    into = tmp_path / "outer/into"
    into.mkdir(parents=True)
    thing = record(kind, 1, path, b"target" if kind == SYMLINK else b"")
    end = record(FILE_END, 1, digest=empty_file_hash()) if kind == FILE else b""
    with Collector(into, "tcp", "--expect", 1) as collector:
        said = say(collector, hello() + thing + end + record(DIRECTORY, 2, b"good") + record(GOODBYE, 2))
        status, summary = collector.finish()
    (kind_of_answer, identity, error, refused_path, message), summary_answer = answers(said)
    assert (kind_of_answer, identity, refused_path) == (2, 1, path) and error != 0 and message != b""
    assert summary_answer[:3] == (3, 2, 0)
    assert status == 1 and summary["shippers"][0]["status"] == "refused"
    assert os.listdir(into.parent) == ["into"]
    assert set(os.listdir(into)) - {"a"} == {"good"}


@pytest.mark.parametrize("length, digest", [(3, 1), (2, 0), (4, 0)], ids=["hash", "shorter", "longer"])
def test_content_that_is_not_what_was_announced_gets_no_name(tmp_path, length, digest):
    with Collector(tmp_path / "into", "tcp", "--expect", 1) as collector:
        said = say(collector, hello() + record(FILE, 1, b"file", length=3) + record(DATA, 1, length=3, data=b"abc")
                   + record(FILE_END, 1, length=length, digest=ABC ^ digest) + record(FILE, 2, b"right", length=3)
                   + record(DATA, 2, length=3, data=b"abc") + record(FILE_END, 2, length=3, digest=ABC) + record(GOODBYE, 2))
        status, _ = collector.finish()
    assert status == 1 and [a[:2] for a in answers(said)] == [(2, 1), (3, 2)]
    assert os.listdir(tmp_path / "into") == ["right"]


def test_a_connection_that_ends_anywhere_is_a_shipper_that_died(tmp_path):
    whole = (hello() + record(DIRECTORY, 1, b"d", mode=0o755) + record(FILE, 2, b"d/f", length=3)
             + record(DATA, 2, length=3, data=b"abc") + record(FILE_END, 2, length=3, digest=ABC) + record(GOODBYE, 2))
    cuts = range(0, len(whole), 7)
    with Collector(tmp_path / "into", "tcp", "--expect", len(cuts)) as collector:
        for cut in cuts:
            say(collector, whole[:cut])
        status, summary = collector.finish()
    assert status == 1 and {s["status"] for s in summary["shippers"]} == {"died"}


def test_what_was_whole_when_the_connection_ended_is_kept(tmp_path):
    with Collector(tmp_path / "into", "tcp", "--expect", 1) as collector:
        say(collector, hello() + record(FILE, 1, b"whole", length=3) + record(DATA, 1, length=3, data=b"abc")
            + record(FILE_END, 1, length=3, digest=ABC) + record(FILE, 2, b"half", length=3) + record(DATA, 2, length=3, data=b"ab"))
        status, summary = collector.finish()
    assert status == 1 and (summary["shippers"][0]["status"], summary["shippers"][0]["incomplete_file"]) == ("died", "half")
    assert summary["files"] == 1 and os.listdir(tmp_path / "into") == ["whole"]


@pytest.mark.parametrize("begun", [0, 1, 63, 64, 66])
def test_what_has_arrived_gets_its_name_though_the_next_record_does_not_end(tmp_path, begun):
    with Collector(tmp_path / "into", "tcp", "--expect", 1) as collector:
        with socket.create_connection(address_of(collector.address), timeout=WATCHDOG) as connection:
            connection.sendall(hello() + record(FILE, 1, b"whole") + record(FILE_END, 1, digest=empty_file_hash())
                               + record(DIRECTORY, 2, b"next")[:begun])
            wait_until(lambda: os.listdir(tmp_path / "into") == ["whole"], "the file")


@pytest.mark.parametrize("length, stored", [(3, True), (2, False), (4, False), (UNKNOWN, False)])
def test_a_length_that_is_told_at_the_end_must_be_that_of_what_came(tmp_path, length, stored):
    with Collector(tmp_path / "into", "tcp", "--expect", 1) as collector:
        said = say(collector, hello() + record(FILE, 1, b"file", length=UNKNOWN) + record(DATA, 1, length=3, data=b"abc")
                   + record(FILE_END, 1, length=length, digest=ABC) + record(GOODBYE, 1))
        status, _ = collector.finish()
    assert status == (0 if stored else 1) and [a[:2] for a in answers(said)] == [*([] if stored else [(2, 1)]), (3, 1)]
    assert os.listdir(tmp_path / "into") == (["file"] if stored else [])


def test_noise(tmp_path):
    source = random.Random(20261120)
    with Collector(tmp_path / "into", "tcp", "--expect", 100) as collector:
        for _ in range(100):
            noise = bytearray(hello() + b"".join(record(source.randrange(9), i, b"d/f", length=source.randrange(5)) for i in range(1, 9)))
            for _ in range(source.randrange(6)):
                noise[source.randrange(len(noise))] = source.randrange(256)
            say(collector, bytes(noise))
        status, summary = collector.finish()
    assert status == 1 and len(summary["shippers"]) == 100


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n" + bytes(100), b"short", b"",
                                    struct.pack("<IIQIIII", 1, 2, 1, 5, 0xFFFFFFFF, 0, 0), struct.pack("<IIQIIII", 1, 9, 1, 0, 0, 0, 0),
                                    struct.pack("<IIQIIII", 1, 3, 7, 0, 0, 0, 0)],
                         ids=["another program", "short", "nothing", "endless path", "unknown answer", "wrong count"])
def test_a_shipper_whose_collector_is_none_fails_and_says_so(tmp_path, answer):
    (tmp_path / "file").write_bytes(bytes(10 << 20))
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with subprocess.Popen([PROGRAM, "ship", "--to", address, tmp_path / "file"], env=environment(), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as shipper:
            connection, _ = server.accept()
            with connection:
                with contextlib.suppress(OSError):  # the shipper may have given up already
                    connection.sendall(answer)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(1 << 20):
                        pass
            _, errors = shipper.communicate(timeout=WATCHDOG)
    assert shipper.returncode == 1 and errors.startswith("wherry ship: ") and errors.count("\n") == 1, errors
