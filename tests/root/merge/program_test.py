# SPDX-License-Identifier: Apache-2.0
"""wherry-merge with workers that write TScifFiles: kills of workers and of the server, garbage, hostile files."""

import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import uproot

HERE = Path(__file__).parent
PROGRAM = os.environ["WHERRY_MERGE"]


started = []  # processes that a test which fails leaves behind


def children_of(pid):
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def wait_until_stopped(pid):
    """All of its threads. Or until it has ended."""
    tasks = Path(f"/proc/{pid}/task")
    while tasks.exists():
        try:
            if {task.joinpath("stat").read_text().rsplit(") ")[1][0] for task in tasks.iterdir()} <= {"T", "Z"}:
                return
        except (FileNotFoundError, ProcessLookupError):
            pass  # a thread has just ended


def kill_both(server):
    """Supervisor and merging process, and waits until they are gone: their address is free then."""
    # Stopped, it neither begins another nor lets the number of one that has died go to somebody else.
    server.process.send_signal(signal.SIGSTOP)
    wait_until_stopped(server.process.pid)
    children = [(child, os.pidfd_open(child)) for child in children_of(server.process.pid)]
    for child, _ in children:
        os.kill(child, signal.SIGKILL)
    server.process.kill()
    server.process.wait()
    for _, end in children:
        select.select([end], [], [])
        os.close(end)


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    yield
    for process in started:
        if process.poll() is None:
            # A supervisor that is killed lets its child go on to the end, which may be far.
            for child in children_of(process.pid):
                os.kill(child, signal.SIGKILL)
            process.kill()
        process.wait()
    started.clear()


def start(command, **options):
    started.append(subprocess.Popen(command, text=True, **options))
    return started[-1]


# Stands still, once, where a ledger has just been removed.
STOPPER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
int unlink(const char* path) {
  int (*const real)(const char*) = (int (*)(const char*))dlsym(RTLD_NEXT, "unlink");
  const int result = real(path);
  const char* end = strrchr(path, '.');
  if (result == 0 && end != 0 && strcmp(end, ".ledger") == 0 && real(getenv("STOP_ONCE")) == 0) raise(SIGSTOP);
  return result;
}
"""


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


def preloading(source, folder):
    """The environment of a server that does so."""
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", folder / "preloaded.so", "-ldl"]
    subprocess.run(command, input=source, text=True, check=True)
    (folder / "once").touch()
    return {"LD_PRELOAD": str(folder / "preloaded.so"), "STOP_ONCE": str(folder / "once")}


@pytest.fixture
def stopping(tmp_path_factory):
    return preloading(STOPPER, tmp_path_factory.mktemp("stopping"))


def stopped_child(server):
    [child] = children_of(server.process.pid)
    wait_until_stopped(child)
    return child


class Server:
    """The program under test, up and listening."""

    # Whoever restarts wants his port again, which `*` would give to the next test that runs beside this one.
    # up: what is said first, and its address.
    def __init__(self, output, *options, address=None, up=r"listening on (\S+)", environment={}):
        address = address or f"wherry://*:{random.randrange(20000, 65000)}"
        self.output = output
        self.summary = Path(str(output) + ".json")
        command = [PROGRAM, address, "-o", str(output), "--json", str(self.summary), *map(str, options)]
        environment = os.environ | environment
        self.process = start(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment)
        self.messages = []
        self.seen = 0  # by wait_for
        self.news = threading.Condition()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        self.address = self.wait_for(up)[1]

    def read(self):
        """All of it, always: a server whose messages nobody reads stands still."""
        for line in self.process.stderr:
            with self.news:
                self.messages.append(line)
                self.news.notify()
        with self.news:
            self.messages.append("(end)")
            self.news.notify()

    def wait_for(self, pattern):
        with self.news:
            while True:
                self.news.wait_for(lambda: self.seen < len(self.messages))
                self.seen += 1
                if found := re.search(pattern, self.messages[self.seen - 1]):
                    return found
                assert self.messages[self.seen - 1] != "(end)", f"{pattern} was not said: {self.messages}"

    def end(self):
        """Waits for the end; returns exit status and summary."""
        self.reader.join()
        status = self.process.wait()
        return status, json.loads(self.summary.read_text()) if self.summary.exists() else None

    def url(self, options=""):
        return f"{self.address}/out.root{options}"


def start_worker(url, seed, files, entries, *words):
    command = [sys.executable, str(HERE / "worker.py"), url, str(seed), str(files), str(entries), *words]
    return start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def go_on(worker):
    """Of one that waits in front of its last file."""
    worker.stdin.write("\n")
    worker.stdin.flush()
    return worker


def start_waiting_worker(server, options, seed, files, entries):
    """Has written all but the last file, and the server knows it."""
    worker = start_worker(server.url(options), seed, files, entries, "wait")
    assert worker.stdout.readline() == "waiting\n"
    while not (server.output.exists() and np.sum(live(server.output, "worker") == seed) == (files - 1) * entries):
        pass
    return worker


def check(output, expected):
    """expected: entries of each worker, all of them from 0 on, in order."""
    with uproot.open(output) as file:
        tree = file["tree"].arrays(library="np")
        histogram = file["histogram"].values()
    assert Counter(tree["worker"].tolist()) == Counter(expected)
    for worker, entries in expected.items():
        mine = tree["worker"] == worker
        assert tree["number"][mine].tolist() == list(range(entries))
        for number, values in zip(tree["number"][mine], tree["values"][mine]):
            assert values.tolist() == [worker + number] * (number % 7)
    bins = Counter(number % 10 for entries in expected.values() for number in range(entries))
    assert histogram.tolist() == [bins[i] for i in range(10)]


def test_workers_write_one_file(tmp_path):
    server = Server(tmp_path / "out.root", "--workers", 6)
    workers = [start_worker(server.url(), seed, 5, 300 + seed) for seed in range(6)]
    assert [worker.wait() for worker in workers] == [0] * 6
    status, summary = server.end()
    assert status == 0, server.messages
    check(server.output, {seed: 5 * (300 + seed) for seed in range(6)})
    assert summary["files"] == 30 and summary["workers"] == summary["finished"] == 6
    assert sorted(os.listdir(tmp_path)) == ["out.root", "out.root.json"]


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


def test_a_death_behind_the_completion_of_an_output_costs_nothing(tmp_path, stopping):
    server = Server(tmp_path / "out.root", "--workers", 1, "--force", environment=stopping)
    assert start_worker(server.url(), 1, 2, 50).wait() == 0
    os.kill(stopped_child(server), signal.SIGKILL)
    assert server.end()[0] == 0
    check(server.output, {1: 100})


def test_names_are_files_of_a_directory(tmp_path):
    server = Server(tmp_path, "--workers", 2)
    workers = [start_worker(f"{server.address}/{name}", seed, 2, 50) for seed, name in enumerate(["a.root", "../b.root"])]
    assert [worker.wait() for worker in workers] == [0, 0]
    assert server.end()[0] == 0
    check(tmp_path / "a.root", {0: 100})
    check(tmp_path / "b.root", {1: 100})


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


def test_sigterm_merges_what_was_handed_over_and_ends(tmp_path):
    server = Server(tmp_path / "out.root")
    worker = start_worker(server.url(), 4, 3, 500, "wait")
    assert worker.stdout.readline() == "waiting\n"
    server.process.send_signal(signal.SIGTERM)
    status, summary = server.end()
    assert status == 0 and summary["stopped"]
    assert not (tmp_path / "out.root.ledger").exists()
    check(server.output, {4: 1000})


def test_a_stop_while_the_merging_process_is_forked_is_not_lost(tmp_path, tmp_path_factory):
    server = Server(tmp_path / "out.root", environment=preloading(FORKER, tmp_path_factory.mktemp("forking")))
    status, summary = server.end()
    assert status == 0 and summary["stopped"]


def live(output, branch):
    """Of an output that is being written, from which a header may go while it is read."""
    while True:
        try:
            with uproot.open(output) as file:
                return file["tree"][branch].array(library="np") if "tree" in file else np.empty(0)
        except Exception as problem:  # whatever uproot makes of other bytes
            print("read again:", problem)


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
    server.wait_for(f"1 workers have not come back yet.* {worker.pid}$")
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
    assert not any("have not come back yet" in message for message in server.messages)


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


def post(server, *files):
    """Exit status, files done, what was said. Comes again while a merging process is followed by another."""
    while True:
        command = [os.environ["WHERRY_POSTER"], server.address, *files]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 2 or server.process.poll() is not None:
            return run.returncode, run.stdout.count("done"), run.stderr
        time.sleep(0.05)  # leaves the processor to the server


def test_workers_that_send_garbage_are_dropped_and_the_others_go_on(tmp_path):
    good = HERE.parents[1] / "fuzz/corpus/root_image_fuzz/tree.root"
    image = good.read_bytes()
    bad = {
        "zeros": bytes(4096),
        "noise": np.random.default_rng(7).bytes(100000),
        "truncated": image[:-1],
        "text": b"root of all evil" * 100,
    }
    for name, content in bad.items():
        (tmp_path / name).write_bytes(content)
    server = Server(tmp_path / "out.root", "--workers", 2 + len(bad))
    worker = start_worker(server.url(), 2, 20, 300)
    for name in bad:
        status, done, error = post(server, good, tmp_path / name, good)
        assert (status, done) == (1, 1), (name, error)
    assert worker.wait() == 0
    assert post(server, good) == (0, 1, "")
    status, summary = server.end()
    assert status == 3 and summary["refused"] == len(bad) and summary["restarts"] == 0
    check(server.output, {2: 6000})
    with uproot.open(server.output) as file:
        assert file["t"]["a"].array(library="np").tolist() == list(range(200)) * (len(bad) + 1)


# A histogram in whose list is a list in which is a list: reading them all needs more stack than there is.
DEEP = r"""
import sys, threading, ROOT
ROOT.gInterpreter.Declare('''
void write_deep(const char* path) {
  TFile file(path, "RECREATE");
  TH1D histogram("deep", "", 1, 0, 1);
  TList* list = histogram.GetListOfFunctions();
  for (int i = 0; i < 50000; ++i) {
    auto* inner = new TList;
    list->Add(inner);
    list = inner;
  }
  histogram.Write();
  histogram.SetDirectory(nullptr);
  file.Close();
  _exit(0);
}
''')
threading.stack_size(1 << 30)
threading.Thread(target=lambda: ROOT.write_deep(sys.argv[1])).start()
"""


def test_a_file_that_kills_root_kills_once_and_is_found_before_it_is_read_then(tmp_path):
    subprocess.run([sys.executable, "-c", DEEP, tmp_path / "deep"], check=True)
    assert (tmp_path / "deep").stat().st_size > 100_000
    server = Server(tmp_path / "out.root", "--workers", 3)
    worker = start_worker(server.url("?reconnect=100"), 2, 30, 300)
    # The first time nobody is blamed: what killed may have been in disorder before.
    assert post(server, tmp_path / "deep")[:2] == (1, 0)
    server.wait_for("listening on")
    status, done, error = post(server, tmp_path / "deep")
    assert (status, done) == (1, 0) and "it kills ROOT" in error, error
    assert worker.wait() == 0
    status, summary = server.end()
    assert (status, summary["restarts"], summary["refused"]) == (3, 1, 1), summary
    check(server.output, {2: 9000})


def test_noise_inside_objects_costs_its_workers_only(tmp_path):
    # Structure is checked, the inside of objects is not: this reaches ROOT, which may refuse it, believe it or die. What
    # it reads beyond its buffers is not the same in each process: which of them it does may be chance.
    image = (HERE.parents[1] / "fuzz/corpus/root_image_fuzz/plain.root").read_bytes()
    tree = image.index(b"\x05TTree\x01t\x01t", 200)
    # With ROOT 6.40 and 4 GiB for it: the second mostly kills, the first and the third may, the last is believed.
    seeds = [5, 50, 5, 1, 24]
    server = Server(tmp_path / "out.root", "--workers", 1 + len(seeds))
    worker = start_worker(server.url("?reconnect=100"), 2, 30, 300)
    for seed in seeds:
        noise = np.random.default_rng(seed)
        content = bytearray(image)
        for at in noise.integers(tree + 60, tree + 1500, size=30):
            content[at] = noise.integers(0, 256)
        (tmp_path / "noise").write_bytes(content)
        post(server, tmp_path / "noise")
    assert worker.wait() == 0
    _, summary = server.end()
    print(*server.messages)
    assert summary["finished"] + summary["lost_workers"] == 1 + len(seeds)
    check(server.output, {2: 9000})


def test_a_file_that_is_never_done_costs_its_worker_only(tmp_path):
    # What takes ROOT for ever is stood in for by what takes it longer than is allowed here.
    with uproot.recreate(tmp_path / "slow.root", compression=None) as file:
        file.mktree("slow", {"values": "f8"}).extend({"values": np.random.default_rng(1).random(10_000_000)})
    lzma = 209
    server = Server(tmp_path / "out.root", "--workers", 3, "--compression", lzma, "--file-time", 10)
    worker = start_worker(server.url("?reconnect=100"), 3, 200, 100)
    for _ in range(2):  # the first time nobody is blamed
        assert post(server, tmp_path / "slow.root")[:2] == (1, 0)
        server.wait_for("--file-time")
        server.wait_for("listening on")
    assert worker.wait() == 0
    status, summary = server.end()
    assert (status, summary["restarts"], summary["refused"]) == (3, 2, 1), summary
    check(server.output, {3: 20000})


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


def test_an_output_that_exists_is_not_replaced_unasked(tmp_path):
    (tmp_path / "out.root").write_text("precious")
    run = subprocess.run([PROGRAM, "wherry://*:*", "-o", tmp_path / "out.root"], capture_output=True, text=True)
    assert run.returncode == 2 and "--force" in run.stderr
    assert (tmp_path / "out.root").read_text() == "precious"


def test_in_a_directory_a_name_that_cannot_be_written_costs_its_worker_only(tmp_path):
    (tmp_path / "precious.root").write_text("precious")
    (tmp_path / "folder").mkdir()
    bad = ["precious.root", "folder", "n" * 300, "new.root.ledger"]
    server = Server(tmp_path, "--workers", len(bad) + 1)
    workers = [start_worker(f"{server.address}/{name}", 1, 2, 50) for name in [*bad, "new.root"]]
    assert [worker.wait() == 0 for worker in workers] == [False] * len(bad) + [True]
    assert server.end()[0] == 3
    assert (tmp_path / "precious.root").read_text() == "precious"
    check(tmp_path / "new.root", {1: 100})


@pytest.mark.parametrize("words", [[], ["wherry://*:*"], ["wherry://*:*", "-o", "x", "--batch", "0"], ["--nonsense"]])
def test_a_wrong_command_line_is_status_2(words):
    assert subprocess.run([PROGRAM, *words], capture_output=True).returncode == 2
