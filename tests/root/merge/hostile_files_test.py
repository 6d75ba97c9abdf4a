# SPDX-License-Identifier: Apache-2.0
"""Garbage, and files that are hostile to ROOT: they cost their workers only."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import ROOT
import uproot
from processes import GOOD, HERE, POSTER, Server, check, children_of, clean_up, post, preloading, start, start_worker


def test_workers_that_send_garbage_are_dropped_and_the_others_go_on(tmp_path):
    image = GOOD.read_bytes()
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
        status, done, error = post(server, GOOD, tmp_path / name, GOOD)
        assert (status, done) == (1, 1), (name, error)
    assert worker.wait() == 0
    assert post(server, GOOD) == (0, 1, "")
    status, summary = server.end()
    assert status == 3 and summary["refused"] == len(bad) and summary["restarts"] == 0
    check(server.output, {2: 6000})
    with uproot.open(server.output) as file:
        assert file["t"]["a"].array(library="np").tolist() == list(range(200)) * (len(bad) + 1)


# What a directory of a derived class has in it ROOT reads in other ways than those that are checked.
ROOT.gInterpreter.Declare(r"""
void write_directory(const char* path, const char* type) {
  TFile file(path, "RECREATE");
  TDirectoryFile inner("inner", "", type, &file);
  inner.cd();
  TNamed("note", "").Write();
  file.Write();
}
""")


def test_a_directory_of_a_derived_class_is_refused(tmp_path):
    server = Server(tmp_path / "out.root", "--workers", 2)
    for type, status in [("TFile", 1), ("TDirectoryFile", 0)]:
        ROOT.write_directory(str(tmp_path / type), type)
        found, _, error = post(server, tmp_path / type)
        assert found == status and ("inner: is a TFile" in error) == (status == 1), error
    assert server.end()[1]["restarts"] == 0


# A histogram with a list that has a list in it, and so on: reading them all needs more stack than there is.
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
    # The first time no worker is blamed: memory may have been in disorder before.
    assert post(server, tmp_path / "deep")[:2] == (1, 0)
    server.wait_for("listening on")
    status, done, error = post(server, tmp_path / "deep")
    assert (status, done) == (1, 0) and "it crashes ROOT" in error, error
    assert worker.wait() == 0
    status, summary = server.end()
    assert (status, summary["restarts"], summary["refused"]) == (3, 1, 1), summary
    check(server.output, {2: 9000})


# Goes round for ever, once, where a file is about to be tried.
HANGER = r"""
#include <stdlib.h>
#include <unistd.h>
unsigned alarm(unsigned seconds) {
  if (unlink(getenv("STOP_ONCE")) == 0) for (;;) pause();
  return 0;
}
"""


def start_trial_without_end(server, environment):
    """Kills the merging process, and has the next one try a file. Returns who handed that over."""
    [child] = children_of(server.process.pid)
    os.kill(child, signal.SIGSEGV)
    server.wait_for("listening on")
    poster = start([POSTER, server.address, GOOD])
    while os.path.exists(environment["STOP_ONCE"]):
        pass
    return poster


def test_a_trial_ends_with_the_merging_process_and_the_next_one_can_listen(tmp_path, tmp_path_factory):
    hanging = preloading(HANGER, tmp_path_factory.mktemp("hanging"))
    server = Server(tmp_path / "out.root", "--workers", 2, environment=hanging)
    poster = start_trial_without_end(server, hanging)
    [child] = children_of(server.process.pid)
    os.kill(child, signal.SIGKILL)
    server.wait_for("listening on")
    assert poster.wait() == 1
    assert start_worker(server.url(), 1, 2, 50).wait() == 0
    assert server.end()[0] == 3
    check(server.output, {1: 100})


# Seconds that these tests last, and that a good file must never take. Where its output is in memory it waits for no disk.
FILE_TIME = 15


@pytest.fixture
def no_disk(tmp_path):
    """A folder in memory, where there is one."""
    shared_memory = Path("/dev/shm")
    if not os.access(shared_memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=shared_memory, prefix="wherry-test-") as folder:
        yield Path(folder)
        clean_up()  # before it goes


def test_a_worker_that_has_left_when_its_file_is_blamed_is_lost_once(tmp_path_factory, no_disk):
    hanging = preloading(HANGER, tmp_path_factory.mktemp("hanging"))
    server = Server(no_disk / "out.root", "--workers", 2, "--file-time", FILE_TIME, environment=hanging)
    poster = start_trial_without_end(server, hanging)
    poster.kill()
    server.wait_for("is gone without finishing")
    server.wait_for("crashed it; the worker is dropped")
    server.wait_for("listening on")
    assert start_worker(server.url(), 1, 2, 50).wait() == 0, server.messages
    status, summary = server.end()
    assert (status, summary["lost_workers"], summary["refused"]) == (3, 1, 1), summary
    check(server.output, {1: 100})


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


# Never comes back from writing so much of the output at once, which only a file with so large a basket asks for.
SINK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  if (size >= 4 << 20) for (;;) pause();
  return ((ssize_t (*)(int, const void*, size_t, off_t))dlsym(RTLD_NEXT, "pwrite"))(fd, data, size, at);
}
ssize_t pwrite64(int fd, const void* data, size_t size, off_t at) { return pwrite(fd, data, size, at); }
"""


def test_a_file_that_is_never_done_costs_its_worker_only(tmp_path, tmp_path_factory, no_disk):
    with uproot.recreate(tmp_path / "endless.root", compression=None) as file:
        file.mktree("endless", {"values": "f8"}).extend({"values": np.random.default_rng(1).random(1_000_000)})
    sinking = preloading(SINK, tmp_path_factory.mktemp("sinking"))
    server = Server(no_disk / "out.root", "--workers", 3, "--file-time", FILE_TIME, environment=sinking)
    worker = start_worker(server.url("?reconnect=100"), 3, 200, 100)
    for _ in range(2):  # the first time no worker is blamed
        assert post(server, tmp_path / "endless.root")[:2] == (1, 0)
        server.wait_for("--file-time")
        server.wait_for("listening on")
    assert worker.wait() == 0, server.messages
    status, summary = server.end()
    assert (status, summary["restarts"], summary["refused"]) == (3, 2, 1), summary
    check(server.output, {3: 20000})
