# SPDX-License-Identifier: Apache-2.0
"""wherry-merge with workers that write TScifFiles: outputs, ends, and what is refused before."""

import contextlib
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
import uproot
from processes import (
    PROGRAM,
    Server,
    check,
    children_of,
    go_on,
    live,
    preloading,
    start,
    start_worker,
)
from waiting import wait_until_stopped


# Is asked to stop, once, where a process has just been forked.
FORKER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
pid_t fork(void) {
  const pid_t child = ((pid_t (*)(void))dlsym(RTLD_NEXT, "fork"))();
  if (child > 0 && unlink(getenv("STOP_ONCE")) == 0) raise(SIGTERM);
  return child;
}
"""


def test_workers_write_one_file(tmp_path):
    server = Server(tmp_path / "out.root", "--workers", 6)
    workers = [start_worker(server.url(), seed, 5, 300 + seed) for seed in range(6)]
    assert [worker.wait() for worker in workers] == [0] * 6
    status, summary = server.end()
    assert status == 0, server.messages
    check(server.output, {seed: 5 * (300 + seed) for seed in range(6)})
    assert summary["files"] == 30 and summary["workers"] == summary["finished"] == 6
    assert sorted(os.listdir(tmp_path)) == ["out.root", "out.root.json"]


def test_a_summary_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "out.root.json").mkdir()
    server = Server(tmp_path / "out.root")
    assert start_worker(server.url(), 1, 0, 0).wait() == 0
    server.reader.join()
    assert server.process.wait() == 1
    assert any("out.root.json: Is a directory" in message for message in server.messages)


def test_it_ends_when_all_that_came_have_finished(tmp_path):
    server = Server(tmp_path / "out.root")
    worker = start_worker(server.url(), 1, 2, 100)
    assert worker.wait() == 0
    assert server.end()[0] == 0
    check(server.output, {1: 200})


def test_an_output_that_another_process_began_first_is_its_alone(tmp_path):
    first, second = (Server(tmp_path / "out.root", "--workers", 1) for _ in range(2))
    worker = start_worker(first.url(), 1, 3, 100, "wait")
    assert worker.stdout.readline() == "waiting\n"
    while not (first.output.exists() and len(live(first.output, "number")) == 200):
        pass
    assert start_worker(second.url(), 2, 3, 100).wait() != 0
    assert second.process.wait() == 1
    worker.kill()
    assert first.end()[0] == 3
    check(first.output, {1: 200})


def test_names_are_files_of_a_directory(tmp_path):
    server = Server(tmp_path, "--workers", 2)
    workers = [start_worker(f"{server.address}/{name}", seed, 2, 50) for seed, name in enumerate(["a.root", "../b.root"])]
    assert [worker.wait() for worker in workers] == [0, 0]
    assert server.end()[0] == 0
    check(tmp_path / "a.root", {0: 100})
    check(tmp_path / "b.root", {1: 100})


def test_sigterm_merges_what_was_handed_over_and_ends(tmp_path):
    server = Server(tmp_path / "out.root")
    worker = start_worker(server.url(), 4, 3, 500, "wait")
    assert worker.stdout.readline() == "waiting\n"
    server.process.send_signal(signal.SIGTERM)
    status, summary = server.end()
    assert summary["stopped"]
    assert not (tmp_path / "out.root.journal").exists()
    check(server.output, {4: 1000})
    # The worker has a third file. It is named, by what tells it from others.
    assert status == 3 and not summary["whole"]
    [missing] = summary["missing"]
    assert missing["process"] == worker.pid and missing["command"].endswith("/out.root 4 3 500 wait")
    said = f"is not whole: process {worker.pid} .*/out.root 4 3 500 wait\\) had not finished"
    assert any(re.search(said, message) for message in server.messages)


def test_sigterm_loses_nothing_of_what_the_server_has_not_heard_yet(tmp_path):
    server = Server(tmp_path / "out.root")
    workers = [start_worker(server.url(), seed, 2, 2000, "wait", "tell") for seed in range(3)]
    assert [worker.stdout.readline() for worker in workers] == ["waiting\n"] * 3
    [child] = children_of(server.process.pid)
    os.kill(child, signal.SIGSTOP)
    wait_until_stopped(child)
    assert [go_on(worker).stdout.readline() for worker in workers] == ["written\n"] * 3
    server.process.send_signal(signal.SIGTERM)
    while "ShdPnd:\t0000000000000000" not in Path(f"/proc/{server.process.pid}/status").read_text():
        pass  # it notes the signal for both
    os.kill(child, signal.SIGCONT)
    assert server.end()[1]["stopped"]
    check(server.output, {seed: 4000 for seed in range(3)})


def test_sigterm_before_all_workers_came_is_said(tmp_path):
    server = Server(tmp_path / "out.root", "--workers", 3)
    assert start_worker(server.url(), 1, 2, 100).wait() == 0
    server.process.send_signal(signal.SIGTERM)
    status, summary = server.end()
    assert (status, summary["whole"], summary["never_came"]) == (3, False, 2)
    assert any("out.root is not whole: 2 of 3 workers never came" in message for message in server.messages)
    check(server.output, {1: 200})


@pytest.mark.parametrize("workers", [[], ["--workers", 2]])
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_where_nobody_came_nothing_is_written_or_replaced(tmp_path, force, workers):
    if force:
        (tmp_path / "out.root").write_text("precious")
    server = Server(tmp_path / "out.root", *force, *workers)
    server.process.send_signal(signal.SIGTERM)
    status, summary = server.end()
    assert (status, summary["whole"], summary["never_came"]) == (3, False, 2 if workers else 0)
    assert any("out.root is not whole: no worker came" in message for message in server.messages)
    assert sorted(os.listdir(tmp_path)) == (["out.root"] if force else []) + ["out.root.json"]
    assert not force or (tmp_path / "out.root").read_text() == "precious"


def test_what_was_to_be_replaced_stays_where_all_that_came_was_lost(tmp_path):
    (tmp_path / "out.root").write_text("precious")
    server = Server(tmp_path / "out.root", "--force")
    worker = start_worker(server.url(), 1, 1, 100, "wait")
    assert worker.stdout.readline() == "waiting\n"
    worker.kill()
    assert server.end()[0] == 3
    assert (tmp_path / "out.root").read_text() == "precious"


def test_workers_that_finish_and_have_nothing_make_an_empty_output(tmp_path):
    server = Server(tmp_path / "out.root", "--workers", 2)
    assert [start_worker(server.url(), seed, 0, 0).wait() for seed in range(2)] == [0, 0]
    status, summary = server.end()
    assert status == 0 and summary["whole"]
    assert uproot.open(server.output).keys() == []


def test_a_stop_while_the_merging_process_is_forked_is_not_lost(tmp_path, tmp_path_factory):
    server = Server(tmp_path / "out.root", environment=preloading(FORKER, tmp_path_factory.mktemp("forking")))
    status, summary = server.end()
    assert status == 3 and summary["stopped"]


def test_an_output_that_exists_is_not_replaced_unasked(tmp_path):
    (tmp_path / "out.root").write_text("precious")
    run = subprocess.run([PROGRAM, "wherry://*:*", "-o", tmp_path / "out.root"], capture_output=True, text=True)
    assert run.returncode == 2 and "--force" in run.stderr
    assert (tmp_path / "out.root").read_text() == "precious"


def test_in_a_directory_a_name_that_cannot_be_written_costs_its_worker_only(tmp_path):
    (tmp_path / "precious.root").write_text("precious")
    (tmp_path / "folder").mkdir()
    bad = ["precious.root", "folder", "n" * 300, "new.root.journal"]
    server = Server(tmp_path, "--workers", len(bad) + 1)
    workers = [start_worker(f"{server.address}/{name}", 1, 2, 50) for name in [*bad, "new.root"]]
    assert [worker.wait() == 0 for worker in workers] == [False] * len(bad) + [True]
    assert server.end()[0] == 3
    assert (tmp_path / "precious.root").read_text() == "precious"
    check(tmp_path / "new.root", {1: 100})


def test_the_summary_counts_as_people_do(tmp_path):
    command = [PROGRAM, "wherry://*:*", "-o", tmp_path / "out.root", "--workers", "1"]
    process = start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    address = re.search(r"listening on (\S+)", process.stderr.readline())[1]
    assert start_worker(f"{address}/out.root", 1, 2, 100).wait() == 0
    summary = process.communicate()[0]
    assert re.fullmatch(r".*/out.root: 2 files of 1 worker, [\d.]+ kB in [\d.]+ m?s \([\d.]+ [kM]?B/s\), (1 batch|2 batches)\n", summary)


def test_a_name_of_a_worker_is_shown_and_not_obeyed(tmp_path):
    (tmp_path / "\x1b[31mred").mkdir()
    server = Server(tmp_path)
    assert start_worker(f"{server.address}/\x1b[31mred", 1, 2, 50).wait() != 0
    server.wait_for(r"\\x1b\[31mred is a directory")
    server.end()
    assert "\x1b" not in "".join(server.messages)


def test_a_path_that_is_not_utf_8_has_a_summary(tmp_path):
    server = Server(tmp_path / os.fsdecode(b"\xff.root"))
    server.process.send_signal(signal.SIGTERM)
    status, summary = server.end()
    assert status == 3 and summary["output"].endswith("/\ufffd.root")


@pytest.mark.parametrize("words", [[], ["wherry://*:*"], ["wherry://*:*", "-o", "x", "--batch", "0"], ["--nonsense"]])
def test_a_wrong_command_line_is_status_2(words):
    assert subprocess.run([PROGRAM, *words], capture_output=True).returncode == 2


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_nothing_of_the_servers_gets_the_number_of_a_standard_stream_that_is_closed(tmp_path, closed):
    process = start([PROGRAM, "wherry://*:*", "-o", tmp_path / "out.root"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    preexec_fn=lambda: os.close(closed))

    def opened():
        found = {}
        for pid in [process.pid, *children_of(process.pid)]:
            for number in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(FileNotFoundError):
                    found[pid, int(number)] = os.readlink(f"/proc/{pid}/fd/{number}")
        return found

    # A socket of its own, not one that it was given as standard input.
    while not any(number > 2 and what.startswith("socket:") for (_, number), what in opened().items()):
        assert process.poll() is None
    assert {what for (_, number), what in opened().items() if number == closed} == {"/"}
    process.send_signal(signal.SIGTERM)
    process.wait()


@pytest.mark.parametrize("options, message", [
    (["--help"], "write standard output: No space left on device"),
    (["--json", "-"], "write standard output: No space left on device"),
    (["--json", "/dev/full"], "write /dev/full: No space left on device"),
])
def test_what_cannot_be_written_is_a_failure(tmp_path, options, message):
    with open("/dev/full", "w") as full:
        process = start([PROGRAM, "wherry://*:*", "-o", tmp_path / "out.root", *options], stdout=full, stderr=subprocess.PIPE)
    for line in process.stderr:
        if "listening on" in line:
            process.send_signal(signal.SIGTERM)
        if message in line:
            break
    else:
        pytest.fail("it did not say so")
    assert process.wait() == 1
