# SPDX-License-Identifier: Apache-2.0
"""wherry-merge and its workers as processes, for the tests that start, stop and kill them."""

import contextlib
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
import uproot
from waiting import wait_until_stopped

HERE = Path(__file__).parent
# Not there where only tests of the library are run, which load this, too.
PROGRAM = os.environ.get("WHERRY_MERGE")
POSTER = os.environ.get("WHERRY_POSTER")
GOOD = HERE.parents[1] / "fuzz/corpus/root_image_fuzz/tree.root"

started = []  # processes that a test which fails leaves behind


def children_of(pid):
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def kill_both(server):
    """Supervisor and merging process, and waits until they are gone: their address is free then."""
    # Stopped, it neither begins another nor frees the number of one that has died for another process.
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


def clean_up():
    """Of what a test has left."""
    for process in started:
        if process.poll() is None:
            # A supervisor that is killed lets its child go on to the end, which may be far.
            for child in children_of(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            process.kill()
        process.wait()
    started.clear()


def start(command, **options):
    started.append(subprocess.Popen(command, text=True, **options))
    return started[-1]


# Stands still, once, where a journal has just been removed.
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
  if (result == 0 && end != 0 && strcmp(end, ".journal") == 0 && real(getenv("STOP_ONCE")) == 0) raise(SIGSTOP);
  return result;
}
"""


# Stands still, once, where the copy of an output is being written under its hidden name: its output is there.
COPYING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void look(int fd) {
  char link[64], name[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, name, sizeof name);
  if (length > 0 && name[length - 1] == '~' && access(getenv("STOP_BESIDE"), F_OK) == 0 && unlink(getenv("STOP_ONCE")) == 0)
    raise(SIGSTOP);
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  look(fd);
  return ((ssize_t (*)(int, const void*, size_t, off_t))dlsym(RTLD_NEXT, "pwrite"))(fd, data, size, at);
}
ssize_t pwrite64(int fd, const void* data, size_t size, off_t at) { return pwrite(fd, data, size, at); }
"""


def preloading(source, folder):
    """The environment of a server that does so."""
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", folder / "preloaded.so", "-ldl"]
    subprocess.run(command, input=source, text=True, check=True)
    (folder / "once").touch()
    return {"LD_PRELOAD": str(folder / "preloaded.so"), "STOP_ONCE": str(folder / "once")}


def stopped_child(server):
    [child] = children_of(server.process.pid)
    wait_until_stopped(child)
    return child


class Server:
    """The program under test, up and listening."""

    # A restart needs the same port again, which `*` would give to the next test that runs beside this one.
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


def live(output, branch):
    """Of an output that is being written, from which a header may go while it is read."""
    while True:
        try:
            with uproot.open(output) as file:
                return file["tree"][branch].array(library="np") if "tree" in file else np.empty(0)
        except Exception as problem:  # whatever uproot makes of other bytes
            print("read again:", problem)


def start_waiting_worker(server, options, seed, files, entries):
    """Has written all but the last file, and the server knows it."""
    worker = start_worker(server.url(options), seed, files, entries, "wait")
    assert worker.stdout.readline() == "waiting\n"
    while not (server.output.exists() and np.sum(live(server.output, "worker") == seed) == (files - 1) * entries):
        pass
    return worker


def post(server, *files):
    """Exit status, files done, what was said. Comes again while a merging process is followed by another."""
    while True:
        command = [POSTER, server.address, *files]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 2 or server.process.poll() is not None:
            return run.returncode, run.stdout.count("done"), run.stderr
        time.sleep(0.05)  # leaves the processor to the server


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
