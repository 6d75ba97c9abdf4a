# SPDX-License-Identifier: Apache-2.0
"""Several outputs in one directory: each is completed, and what is not whole is named by its output."""

import os
import resource
import signal

import pytest
import uproot
from processes import Server, check, children_of, go_on, kill_both, start_worker


def wait_for_journal(folder, name):
    while not (folder / f"{name}.journal").exists():
        pass


def start_two(server, folder):
    """One worker that has finished a.root, and one that waits with b.root. Neither is complete."""
    assert start_worker(f"{server.address}/a.root", 1, 3, 100).wait() == 0
    worker = start_worker(f"{server.address}/b.root?reconnect=60", 2, 3, 100, "wait")
    assert worker.stdout.readline() == "waiting\n"
    wait_for_journal(folder, "a.root")
    wait_for_journal(folder, "b.root")
    return worker


def check_complete(folder, expected):
    for name, entries in expected.items():
        check(folder / name, entries)
        with uproot.open(folder / name) as file:
            assert sorted(file.keys(cycle=False)) == ["histogram", "tree"]
    assert sorted(os.listdir(folder)) == sorted(expected)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "outputs"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("how", [signal.SIGSEGV, signal.SIGKILL])
def test_after_a_crash_outputs_that_nobody_writes_any_more_are_completed(folder, how):
    server = Server(folder, "--workers", 2)
    worker = start_two(server, folder)
    [child] = children_of(server.process.pid)
    os.kill(child, how)
    server.wait_for("listening on")
    assert go_on(worker).wait() == 0
    status, summary = server.end()
    assert (status, summary["restarts"], summary["incomplete"]) == (0, 1, []), server.messages
    check_complete(folder, {"a.root": {1: 300}, "b.root": {2: 300}})


def test_the_same_command_completes_outputs_that_nobody_writes_any_more(folder):
    server = Server(folder, "--workers", 2)
    port = server.address.rsplit(":", 1)[1]
    worker = start_two(server, folder)
    kill_both(server)
    again = Server(folder, "--workers", 1, address=f"wherry://*:{port}")
    assert go_on(worker).wait() == 0
    assert again.end()[0] == 0, again.messages
    check_complete(folder, {"a.root": {1: 300}, "b.root": {2: 300}})


def test_outputs_that_another_process_is_merging_are_left_to_it(folder):
    first = Server(folder, "--workers", 2)
    worker = start_two(first, folder)
    first.summary.unlink(missing_ok=True)
    second = Server(folder, "--workers", 1)
    assert start_worker(f"{second.address}/c.root", 3, 2, 100).wait() == 0
    assert second.end()[0] == 0, second.messages
    for name in ["a.root", "b.root"]:
        assert any(f"{name} is not complete, and is left alone" in message for message in second.messages)
    assert go_on(worker).wait() == 0
    assert first.end()[0] == 0, first.messages
    check_complete(folder, {"a.root": {1: 300}, "b.root": {2: 300}, "c.root": {3: 200}})


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_files_of_another_program_that_are_called_as_outputs_and_journals_are_left_alone(folder, force):
    for name in ["data.db", "data.db.journal", "alone.journal"]:
        (folder / name).write_text(name)
    server = Server(folder, "--workers", 1, *force)
    assert start_worker(f"{server.address}/a.root", 1, 2, 100).wait() == 0
    assert server.end()[0] == 0, server.messages
    for name in ["data.db", "data.db.journal", "alone.journal"]:
        assert (folder / name).read_text() == name
    assert sorted(os.listdir(folder)) == ["a.root", "alone.journal", "data.db", "data.db.journal"]


def test_what_is_not_whole_is_named_by_its_output(folder):
    server = Server(folder, "--workers", 2)
    worker = start_two(server, folder)
    worker.kill()
    status, summary = server.end()
    assert (status, summary["whole"], summary["incomplete"]) == (3, False, [])
    [missing] = summary["missing"]
    assert missing["output"] == str(folder / "b.root")
    said = [message for message in server.messages if "is not whole" in message]
    assert any(f"{folder}/b.root is not whole: process {worker.pid} " in message for message in said), said
    assert not any("a.root" in message for message in said), said
    check_complete(folder, {"a.root": {1: 300}, "b.root": {2: 200}})


def test_an_output_that_could_not_be_completed_is_named(folder):
    server = Server(folder, "--workers", 2)
    worker = start_two(server, folder)
    # As on a disk that is full.
    [child] = children_of(server.process.pid)
    resource.prlimit(child, resource.RLIMIT_FSIZE, (1, 1))
    go_on(worker)
    status, summary = server.end()
    assert status == 1
    assert str(folder / "b.root") in summary["incomplete"]
    assert any(f"{folder}/b.root is not whole: it was not completed" in message for message in server.messages)
