# SPDX-License-Identifier: Apache-2.0
"""wherry pipe: bytes go through whole, in both directions, and the exit status says whether they did."""

import hashlib
import os
import signal
import subprocess
import uuid

import pytest
from collecting import WATCHDOG, listing, make_tree
from program import PROGRAM, environment, wherry

PIPE = subprocess.PIPE


@pytest.fixture
def pair(transport):
    """Starts a listening pipe; gives a function that starts the connecting one. Both are killed at the end."""
    job = environment(WHERRY_JOB=f"test-{uuid.uuid4().hex[:12]}")
    running = []

    def start(*arguments, **options):
        process = subprocess.Popen([PROGRAM, "pipe", *arguments], env=job, stderr=PIPE, **options)
        running.append(process)
        return process

    def listen(*arguments, **options):
        process = start("--listen", *arguments, {"tcp": "tcp://127.0.0.1:0", "wherry": "wherry://*:*"}[transport], **options)
        address = process.stderr.readline().decode().strip().removeprefix("wherry pipe: listening on ")
        return process, lambda *more, **how: start(*more, address, **how)

    yield listen
    for process in running:
        if process.poll() is None:
            process.kill()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()
        process.wait()


def end(process):
    return process.wait(timeout=WATCHDOG), process.stderr.read().decode()


def test_tar_into_a_pipe_and_out_of_it(tmp_path, pair):
    make_tree(tmp_path / "tree")
    (tmp_path / "into").mkdir()
    receiver, connect = pair(stdout=PIPE)
    unpack = subprocess.Popen(["tar", "xp", "-C", tmp_path / "into"], stdin=receiver.stdout)
    pack = subprocess.Popen(["tar", "c", "--format=posix", "-C", tmp_path / "tree", "."], stdout=PIPE)
    sender = connect(stdin=pack.stdout)
    assert [pack.wait(timeout=WATCHDOG), unpack.wait(timeout=WATCHDOG)] == [0, 0]
    assert end(sender) == (0, "") and end(receiver) == (0, "")
    assert listing(tmp_path / "into") == listing(tmp_path / "tree")


def test_two_hundred_megabytes_are_the_same_on_the_other_side(tmp_path, pair):
    block = os.urandom(1 << 20)
    source = tmp_path / "source"
    with open(source, "wb") as file:
        for _ in range(200):
            file.write(block)
    receiver, connect = pair(stdout=PIPE)
    with open(source, "rb") as file:
        sender = connect(stdin=file)
    arrived = hashlib.file_digest(receiver.stdout, "sha256").digest()
    assert end(sender) == (0, "") and end(receiver) == (0, "")
    with open(source, "rb") as file:
        assert hashlib.file_digest(file, "sha256").digest() == arrived


def test_nothing_at_all_is_a_good_end(pair):
    receiver, connect = pair(stdout=PIPE)
    sender = connect(stdin=subprocess.DEVNULL)
    assert receiver.stdout.read() == b"" and end(sender) == (0, "") and end(receiver) == (0, "")


def test_what_is_typed_arrives_at_once(pair):
    receiver, connect = pair(stdout=PIPE)
    sender = connect(stdin=PIPE)
    for line in (b"one\n", b"two\n"):
        sender.stdin.write(line)
        sender.stdin.flush()
        assert receiver.stdout.readline() == line  # though standard input is still open
    sender.stdin.close()
    assert end(sender) == (0, "") and end(receiver) == (0, "")


def test_the_listening_side_can_send(pair):
    sender, connect = pair("--send", stdin=PIPE)
    receiver = connect("--receive", stdout=PIPE)
    sender.stdin.write(b"backwards")
    sender.stdin.close()
    assert receiver.stdout.read() == b"backwards" and end(sender) == (0, "") and end(receiver) == (0, "")


def test_both_directions_at_once_each_with_its_own_end(pair):
    left, connect = pair("--duplex", stdin=PIPE, stdout=PIPE)
    right = connect("--duplex", stdin=PIPE, stdout=PIPE)
    left.stdin.write(b"from left")
    left.stdin.close()
    assert right.stdout.read() == b"from left"
    right.stdin.write(b"from right")  # this direction is still open
    right.stdin.close()
    assert left.stdout.read() == b"from right" and end(left) == (0, "") and end(right) == (0, "")


def test_a_receiver_that_is_killed_fails_the_sender(pair):
    receiver, connect = pair(stdout=PIPE)
    with open("/dev/zero", "rb") as endless:
        sender = connect(stdin=endless)
    assert receiver.stdout.read(1 << 20)
    receiver.kill()
    status, errors = end(sender)
    assert status == 1 and errors.startswith("wherry pipe: ") and errors.count("\n") == 1


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_sender_that_is_killed_is_no_end(pair, transport, how):
    receiver, connect = pair(stdout=PIPE)
    sender = connect(stdin=PIPE)
    sender.stdin.write(b"the beginning of something")
    sender.stdin.flush()
    assert receiver.stdout.read(26) == b"the beginning of something"
    sender.send_signal(how)
    status, errors = end(receiver)
    if transport == "tcp":  # TCP has no way to tell a death from an end: one of the reasons for Wherry
        assert status == 0
    else:
        assert status == 1 and errors.startswith("wherry pipe: ") and errors.count("\n") == 1


def test_a_reader_of_the_output_that_is_gone_fails_both(pair):
    receiver, connect = pair(stdout=PIPE)
    with open("/dev/zero", "rb") as endless:
        sender = connect(stdin=endless)
    receiver.stdout.read(10)
    receiver.stdout.close()
    status, errors = end(receiver)
    assert status == 1 and "write standard output: Broken pipe" in errors
    assert end(sender)[0] == 1


@pytest.mark.parametrize("size", [1, 10_000_000])
def test_a_receiver_that_cannot_write_fails_the_sender(pair, tmp_path, size):
    (tmp_path / "input").write_bytes(bytes(size))
    with open("/dev/full", "wb") as full, open(tmp_path / "input", "rb") as file:
        receiver, connect = pair(stdout=full)
        sender = connect(stdin=file)
    status, errors = end(receiver)
    assert status == 1 and "write standard output: No space left on device" in errors
    status, errors = end(sender)
    assert status == 1 and errors.startswith("wherry pipe: send") and errors.count("\n") == 1


def test_a_sender_that_cannot_read_fails_the_receiver(pair, tmp_path):
    receiver, connect = pair(stdout=PIPE)
    folder = os.open(tmp_path, os.O_RDONLY)  # as `cat < FOLDER`
    sender = connect(stdin=folder)
    os.close(folder)
    status, errors = end(sender)
    assert status == 1 and "read standard input: Is a directory" in errors
    assert receiver.stdout.read() == b"" and end(receiver)[0] == 1


def test_nobody_listens(transport):
    address = {"tcp": "tcp://127.0.0.1:1", "wherry": "wherry://0:4711"}[transport]
    result = wherry("pipe", "--wait", 0, address, env={"WHERRY_JOB": "nobody-here"})
    assert result.returncode == 1 and result.stderr.startswith("wherry pipe: connect ") and result.stderr.count("\n") == 1


@pytest.mark.parametrize("address", ["nonsense", "tcp://", "tcp://host", "wherry://x:y", "wherry://0:99999", "nosuch://0:1"])
def test_an_address_that_is_none_says_what_one_looks_like(address):
    result = wherry("pipe", "--wait", 0, address)
    assert result.returncode == 1 and "://" in result.stderr and ";" in result.stderr and result.stderr.count("\n") == 1, result.stderr
