# SPDX-License-Identifier: Apache-2.0
"""What a worker writes again replaces what it wrote before: the output is what hadd makes of the workers' own files."""

import os
import signal
import subprocess
import sys

import pytest
import ROOT
import uproot
import whole_worker  # noqa: F401
from beside_hadd import contents, hadd
from processes import COPYING, HERE, Server, children_of, go_on, kill_both, preloading, start, stopped_child


def start_worker(server, seed, rounds, *words):
    command = [sys.executable, str(HERE / "whole_worker.py"), server.url("?reconnect=60"), str(seed), str(rounds), *words]
    return start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def entries(path, tree):
    with uproot.open(path) as file:
        arrays = file[tree].arrays(library="np")
    return sorted(zip(arrays["seed"].tolist(), arrays["number"].tolist()))


def check(output, folder, seeds, rounds, large=0):
    local = [folder / f"local{seed}.root" for seed in seeds]
    for seed, path in zip(seeds, local):
        assert ROOT.whole.work(str(path), seed, rounds, False, large) == 0
    hadd(folder / "hadd.root", *local)
    assert contents(output, trees=False) == contents(folder / "hadd.root", trees=False)
    for tree in ["tree", "memory", "later"]:
        expected = [(seed, number) for seed in seeds for number in range(rounds * 100)]
        assert entries(output, tree) == entries(folder / "hadd.root", tree) == expected


def test_what_is_not_attached_to_the_file_is_in_the_sum_once(tmp_path):
    rounds = 3
    server = Server(tmp_path / "out.root", "--workers", 3)
    workers = [start_worker(server, seed, rounds) for seed in range(2)]
    assert [worker.wait() for worker in workers] == [0, 0]
    # The two have finished, and what they wrote is part of the rest.
    assert start_worker(server, 2, rounds).wait() == 0
    status, _ = server.end()
    assert status == 0, server.messages
    check(server.output, tmp_path, range(3), rounds)


def test_what_is_handed_over_in_parts_is_in_the_sum_once(tmp_path):
    server = Server(tmp_path / "out.root", "--workers", 2, "--max-file", "4MiB")
    workers = [start_worker(server, seed, 3, "large") for seed in range(2)]
    assert [worker.wait() for worker in workers] == [0, 0]
    status, summary = server.end()
    assert status == 0 and summary["files"] > 6, server.messages
    check(server.output, tmp_path, range(2), 3, large=1000)
    with uproot.open(server.output) as file:
        assert file["ballast"].num_entries == 6000
    assert settings(server.output, "ballast") == settings(tmp_path / "hadd.root", "ballast")


def settings(path, tree):
    file = ROOT.TFile.Open(str(path))
    return file.Get(tree).GetAutoSave()


@pytest.mark.parametrize("options", [["--compact"], ["--shards", 2]])
def test_a_merging_process_that_dies_leaves_to_the_next_whose_parts_they_are(tmp_path, options):
    server = Server(tmp_path / "out.root", "--workers", 2, *options)
    workers = [start_worker(server, seed, 3, "wait") for seed in range(2)]
    assert [worker.stdout.readline() for worker in workers] == ["waiting\n"] * 2
    [child] = children_of(server.process.pid)
    os.kill(child, signal.SIGKILL)
    server.wait_for("listening on")
    assert [go_on(worker).wait() for worker in workers] == [0, 0]
    status, summary = server.end()
    assert (status, summary["restarts"]) == (0, 1), server.messages
    check(server.output, tmp_path, range(2), 3)


def test_a_worker_that_comes_back_when_the_end_has_begun_is_not_counted_twice(tmp_path, tmp_path_factory):
    output = tmp_path / "out.root"
    environment = preloading(COPYING, tmp_path_factory.mktemp("copying")) | {"STOP_BESIDE": str(output)}
    server = Server(output, environment=environment)
    worker = start_worker(server, 0, 3, "wait")
    assert worker.stdout.readline() == "waiting\n"
    server.process.send_signal(signal.SIGTERM)
    stopped_child(server)
    kill_both(server)
    again = Server(output, address=server.address, up=r"listening on (\S+)|completing its output")
    go_on(worker)
    status, summary = again.end()
    worker.kill()
    with uproot.open(output) as file:
        assert file["loose"].values().sum() == 200
        assert ".wherry;1" not in file.keys(recursive=False)
    assert (status, summary["whole"]) == (3, False)
    assert any("had not seen all workers finish" in message for message in again.messages)
    assert sorted(os.listdir(tmp_path)) == ["out.root", "out.root.json"]
