# SPDX-License-Identifier: Apache-2.0
"""Kills of workers, of the merging process and of wherry-merge as a whole."""

import os
import signal

import pytest
from processes import (
    COPYING,
    Server,
    check,
    children_of,
    go_on,
    kill_both,
    live,
    preloading,
    start_waiting_worker,
    start_worker,
    stopped_child,
)
from waiting import wait_until_stopped


def test_a_worker_that_is_killed_loses_only_its_unfinished_file(tmp_path):
    server = Server(tmp_path / "out.root", "--workers", 3)
    victim = start_worker(server.url(), 9, 4, 1000, "wait")
    assert victim.stdout.readline() == "waiting\n"
    victim.kill()
    victim.wait()
    server.wait_for("is gone without finishing")
    workers = [start_worker(server.url(), seed, 3, 200) for seed in range(2)]
    assert [worker.wait() for worker in workers] == [0, 0]
    status, summary = server.end()
    assert status == 3 and summary["lost_workers"] == 1
    check(server.output, {9: 3000, 0: 600, 1: 600})


def test_a_death_behind_the_completion_of_an_output_costs_nothing(tmp_path, stopping):
    server = Server(tmp_path / "out.root", "--workers", 1, "--force", environment=stopping)
    assert start_worker(server.url(), 1, 2, 50).wait() == 0
    os.kill(stopped_child(server), signal.SIGKILL)
    assert server.end()[0] == 0
    check(server.output, {1: 100})


def test_outputs_whose_copies_have_one_name_do_not_become_each_others(tmp_path, tmp_path_factory):
    servers = []
    for name in ["run1", "run2"]:
        environment = preloading(COPYING, tmp_path_factory.mktemp(name))
        server = Server(tmp_path / name, "--workers", 1, environment=environment | {"STOP_BESIDE": str(tmp_path / name)})
        seed = len(servers)
        assert start_worker(server.url(), seed, 50, 20).wait() == 0
        servers.append((server, stopped_child(server)))
    # The first one's copy is written to its end while the second one's, which has its name, is not whole.
    for server, child in servers:
        os.kill(child, signal.SIGCONT)
        assert server.end()[0] == 0
    for seed, (server, _) in enumerate(servers):
        check(server.output, {seed: 1000})
    assert any("another output uses the name of its copy" in message for message in servers[0][0].messages)
    assert sorted(os.listdir(tmp_path)) == ["run1", "run1.json", "run2", "run2.json"]


def workers_in(output):
    return set(live(output, "worker").tolist())


def test_workers_that_wait_go_on_with_a_restarted_server(tmp_path):
    server = Server(tmp_path / "out.root", "--workers", 3)
    workers = [start_worker(server.url("?reconnect=60"), seed, 3000, 20, "wait") for seed in range(3)]
    # A worker that has not connected yet looks for no restarted server.
    while not server.output.exists() or workers_in(server.output) != {0, 1, 2}:
        pass
    for _ in range(3):
        # The merging process dies in the middle of its work, and its supervisor begins another.
        [child] = children_of(server.process.pid)
        os.kill(child, signal.SIGKILL)
        server.wait_for("listening on")
        assert len(live(server.output, "number")) % 20 == 0
    assert [go_on(worker).wait() for worker in workers] == [0, 0, 0]
    status, summary = server.end()
    assert (status, summary["restarts"], summary["lost_workers"]) == (0, 3, 0)
    check(server.output, {seed: 60000 for seed in range(3)})


def test_a_worker_that_computes_on_while_the_server_is_restarted_is_waited_for(tmp_path):
    server = Server(tmp_path / "out.root")
    worker = start_waiting_worker(server, "?reconnect=60", 1, 2, 50)
    [child] = children_of(server.process.pid)
    os.kill(child, signal.SIGKILL)
    server.wait_for("listening on")
    assert start_worker(server.url(), 2, 2, 50).wait() == 0
    server.wait_for(f"waiting for 1 worker to come back; .* {worker.pid}$")
    assert go_on(worker).wait() == 0
    status, summary = server.end()
    assert (status, summary["finished"], summary["lost_workers"]) == (0, 2, 0)
    check(server.output, {1: 100, 2: 100})


@pytest.mark.parametrize("options, before", [("", False), ("?reconnect=60", False), ("?reconnect=60", True)])
def test_a_worker_that_cannot_come_back_after_a_restart_is_not_waited_for(tmp_path, options, before):
    server = Server(tmp_path / "out.root")
    worker = start_waiting_worker(server, options, 1, 2, 50)
    [child] = children_of(server.process.pid)
    server.process.send_signal(signal.SIGSTOP)
    wait_until_stopped(server.process.pid)
    os.kill(child, signal.SIGKILL)
    if before:
        worker.kill()
        worker.wait()
    server.process.send_signal(signal.SIGCONT)
    server.wait_for("listening on")
    if options:
        worker.kill()
    status, summary = server.end()
    assert (status, summary["lost_workers"]) == (3, 1)
    assert not any("to come back" in message for message in server.messages)


def test_another_process_goes_on_where_a_killed_one_left_the_output(tmp_path):
    server = Server(tmp_path / "out.root", "--workers", 1)
    port = server.address.rsplit(":", 1)[1]
    worker = start_worker(server.url("?reconnect=60"), 3, 2000, 12, "wait")
    while not server.output.exists():
        pass
    kill_both(server)
    again = Server(tmp_path / "out.root", "--workers", 1, address=f"wherry://*:{port}")
    assert go_on(worker).wait() == 0
    assert again.end()[0] == 0
    check(again.output, {3: 24000})


def test_a_crash_while_nobody_can_be_blamed_drops_nobody(tmp_path):
    server = Server(tmp_path / "out.root", "--workers", 1)
    [child] = children_of(server.process.pid)
    os.kill(child, signal.SIGSEGV)
    server.wait_for("listening on")
    worker = start_worker(server.url(), 5, 3, 100)
    assert worker.wait() == 0
    status, summary = server.end()
    assert (status, summary["restarts"]) == (0, 1)
    check(server.output, {5: 300})


# A process in which a file is tried is asked to end, as with all of its group.
ASKING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
unsigned alarm(unsigned seconds) {
  if (unlink(getenv("STOP_ONCE")) == 0) raise(SIGTERM);
  return ((unsigned (*)(unsigned))dlsym(RTLD_NEXT, "alarm"))(seconds);
}
"""


def test_a_stop_while_a_file_is_tried_refuses_no_file(tmp_path, tmp_path_factory):
    folder = tmp_path_factory.mktemp("asking")
    server = Server(tmp_path / "out.root", "--workers", 1, environment=preloading(ASKING, folder))
    [child] = children_of(server.process.pid)
    os.kill(child, signal.SIGSEGV)
    server.wait_for("listening on")
    assert start_worker(server.url(), 5, 3, 100).wait() == 0
    assert server.end()[0] == 0 and not (folder / "once").exists()
    check(server.output, {5: 300})
