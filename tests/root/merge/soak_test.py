# SPDX-License-Identifier: Apache-2.0
"""No file is lost, altered or merged twice, whoever is killed: small workers post files to wherry-merge while they, the
merging process and the server are killed at random, and uproot looks at every entry. WHERRY_ROOT_FILES: how many files
(600); WHERRY_ROOT_LARGE: an output of more than 2 GiB, too. `make soak` asks for 100000 and for that."""

import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import awkward
import numpy as np
import pytest
import uproot
from merge_test import Merging, make_odd
from processes import Server, children_of, kill_both, start

FILES = int(os.environ.get("WHERRY_ROOT_FILES", 600))
WORKERS = os.environ["WHERRY_ROOT_WORKERS"]
# The workers never say that they are all: SIGTERM ends the server.
ENDLESS = ["--workers", 1 << 30]


class WorkerGroup:
    def __init__(self, server, folder, workers, files, files_per_life, seed):
        self.lives = folder / "lives"
        words = [f"{server.address}/out.root?reconnect=60", self.lives, workers, files, files_per_life, seed]
        self.process = start([WORKERS, *map(str, words)], stdout=subprocess.PIPE)

    def wait(self):
        """Returns how many lives there were."""
        count = int(self.process.stdout.readline().split()[0])
        assert self.process.wait() == 0
        return count

    def done(self):
        """So many files up to now."""
        return int(np.fromfile(self.lives, dtype=np.uint32)[2::2].sum()) if self.lives.exists() else 0

    def files(self, count):
        """What each life began to hand over, and what it heard to be done."""
        return np.fromfile(self.lives, dtype=np.uint32)[1 : 1 + 2 * count].reshape(-1, 2).T.astype(np.int64)


def seed_of(test):
    seed = int(os.environ.get("WHERRY_TEST_SEED", random.randrange(1 << 30)))
    print(test, "seed", seed)
    return seed


def every_entry(output):
    """Numbers of worker and file of each file, as they follow each other."""
    with uproot.open(output) as file:
        tree = file["work"]
        scalars = tree.arrays(["worker", "file", "entry", "entries", "sum"], library="np")
        values = tree["values"].array()
    weights = awkward.local_index(values) + 1
    sums = awkward.to_numpy(awkward.sum(awkward.values_astype(values, np.uint64) * weights, axis=1)).astype(np.uint64)
    sums += (scalars["worker"] + scalars["file"] + scalars["entry"]).astype(np.uint64)
    assert np.array_equal(sums, scalars["sum"])
    begins = np.flatnonzero(scalars["entry"] == 0)
    lengths = np.diff(np.append(begins, len(sums)))
    assert np.array_equal(lengths, scalars["entries"][begins])
    assert np.array_equal(scalars["entry"], np.arange(len(sums)) - np.repeat(begins, lengths))
    for name in ["worker", "file"]:
        assert np.array_equal(scalars[name], np.repeat(scalars[name][begins], lengths))
    return scalars["worker"][begins], scalars["file"][begins]


def check(output, begun, done):
    """The files of each worker are there from the first on, in order, once; all that it heard to be done."""
    workers, files = every_entry(output)
    order = np.argsort(workers, kind="stable")
    counts = np.bincount(workers, minlength=len(begun))
    assert np.array_equal(files[order], np.concatenate([np.arange(count) for count in counts]))
    assert len(counts) == len(begun) and (done <= counts).all() and (counts <= begun).all()
    return len(files)


def end(server):
    server.process.send_signal(signal.SIGTERM)
    status, summary = server.end()
    assert summary is not None, server.messages
    assert status in (0, 3) and summary["refused"] == 0, server.messages
    return summary


def test_no_file_is_lost_or_altered_when_workers_are_killed(tmp_path):
    server = Server(tmp_path / "out.root", *ENDLESS)
    group = WorkerGroup(server, tmp_path, 4, FILES, 50, seed_of("workers"))
    lives = group.wait()
    summary = end(server)
    files = check(server.output, *group.files(lives))
    print(files, "files of", lives, "lives,", summary["batches"], "batches")
    assert files == summary["files"] and summary["restarts"] == 0


@pytest.mark.parametrize("shards", [[1], [3], [1, 2, 3, 5]])
def test_nor_when_the_merging_process_and_the_server_are_killed_too(tmp_path, shards):
    """A server that is started again may have another number of shards."""
    seed = seed_of("servers")
    chance = random.Random(seed)

    def begin(**where):
        return Server(tmp_path / "out.root", *ENDLESS, "--shards", chance.choice(shards), **where)

    server = begin()
    group = WorkerGroup(server, tmp_path, 4, FILES // 2, 100, seed)
    kills, vain, done = 0, 0, 0
    # At random moments of a work that goes on: nothing waits for the end of a sleep. A machine on which all that a server
    # does between two kills is to begin lets it live longer.
    while group.process.poll() is None:
        time.sleep(chance.uniform(0, 0.5) * 2**vain)
        vain = vain + 1 if group.done() == done else 0
        done = group.done()
        child = children_of(server.process.pid)
        assert server.process.poll() is None, "".join(server.messages[-6:])
        if not child or group.process.poll() is not None:
            continue
        kills += 1
        if chance.random() < 0.3:
            kill_both(server)
            server = begin(address=server.address.replace("//0:", "//*:"))
        else:
            os.kill(child[0], signal.SIGKILL)
            server.wait_for("listening on")
    lives = group.wait()
    end(server)
    print(check(server.output, *group.files(lives)), "files of", lives, "lives,", kills, "kills of servers")
    assert [path for path in tmp_path.iterdir() if "shard" in path.name or "journal" in path.name] == []


def test_sixty_workers_at_once(tmp_path):
    server = Server(tmp_path / "out.root", *ENDLESS)
    group = WorkerGroup(server, tmp_path, 60, FILES, 0, seed_of("sixty"))
    assert group.wait() == 60
    assert end(server)["finished"] == 60
    begun, done = group.files(60)
    assert np.array_equal(begun, done)
    check(server.output, begun, done)


@pytest.mark.skipif("WHERRY_ROOT_LARGE" not in os.environ, reason="takes 6 GB of /dev/shm: make soak")
def test_beyond_2_gib_places_have_64_bits():
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        images = [make_odd(folder / f"{seed}.root", "large", seed, 8000) for seed in range(2)]
        expected = [uproot.open(folder / f"{seed}.root")["large"]["values"].array(library="np") for seed in range(2)]
        merging = Merging(folder / "part.root", durable=True)
        for i in range(40):
            # Another process would go on as this one does, in front of the limit and behind it.
            if i in (30, 37):
                del merging.merger
                merging = Merging(folder / "part.root", durable=True)
            merging.add("worker", i + 1, images[i % 2])
            merging.merge()
        del merging.merger
        assert os.stat(folder / "part.root").st_size > 2 << 30
        merging = Merging(folder / "out.root")
        assert merging.merger.Join(str(folder / "part.root")), merging.merger.Error()
        merging.close()
        assert os.stat(folder / "out.root").st_size > 2 << 30
        with uproot.open(folder / "out.root") as file:
            assert file["large"].num_entries == 40 * 8000
            for i in range(40):
                part = file["large"]["values"].array(library="np", entry_start=i * 8000, entry_stop=(i + 1) * 8000)
                assert np.array_equal(part, expected[i % 2])
    finally:
        shutil.rmtree(folder)
