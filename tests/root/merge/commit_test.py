# SPDX-License-Identifier: Apache-2.0
"""TScifMerger's commits: what is acknowledged is in the output, and an output is readable at every moment."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import rich_files
import uproot
from merge_test import Merging, parts  # noqa: F401

HERE = Path(__file__).parent


def test_what_is_acknowledged_is_in_the_output(tmp_path, parts):
    merging = Merging(tmp_path / "out.root")
    found = []

    def release(_):
        with uproot.open(tmp_path / "out.root") as file:
            found.append(file["types"].num_entries if "types" in file else 0)

    for i, (_, image) in enumerate(parts[:4]):
        merging.merger.Add("worker", i + 1, image, image.size, release)
        if i % 2:
            merging.merge()
    merging.close()
    assert found == [400, 400, 800, 800]


def test_an_output_that_cannot_be_written_acknowledges_nothing(tmp_path, parts):
    merging = Merging("/dev/full/out.root")
    merging.add("worker", 1, parts[0][1])
    assert not merging.merger.Merge()
    assert merging.outcome["worker", 1] != ""


def test_a_commit_that_is_not_in_the_journal_is_not_made(tmp_path, parts):
    output = tmp_path / "out.root"
    merging = Merging(output)
    merging.add("worker", 1, parts[0][1])
    merging.merge()
    descriptors = [int(name) for name in os.listdir("/proc/self/fd")]
    [journal] = [fd for fd in descriptors if os.path.realpath(f"/proc/self/fd/{fd}") == f"{output}.journal"]
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, journal)
    os.close(full)
    merging.add("worker", 2, parts[1][1])
    assert not merging.merger.Merge()
    assert merging.outcome["worker", 2] != ""
    rich_files.check(output, [parts[0][0]], ntuple=True)


MERGING = r"""
import random, sys
sys.path.insert(0, sys.argv[1])
import conftest, merge_test, numpy as np
output, batch, images = sys.argv[2], int(sys.argv[3]), [np.fromfile(name, dtype=np.uint8) for name in sys.argv[4:]]
merging = merge_test.Merging(output, durable=random.random() < 0.3, compact=random.random() < 0.5)
print("merging", flush=True)
for i, image in enumerate(images):
    if merging.merger.Has("worker", i + 1):
        continue
    merging.add("worker", i + 1, image)
    if merging.merger.Pending() == batch:
        merging.merge()
        print(max(sequence for _, sequence in merging.outcome), flush=True)
merging.close()
print("closed", flush=True)
"""


def start_merging(output, batch, paths):
    command = [sys.executable, "-W", "ignore", "-c", MERGING, str(HERE), str(output), str(batch), *map(str, paths)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def acknowledged_before_death(process, chance):
    """Kills at a random moment after a random batch; returns the last file that was acknowledged."""
    last = 0
    for line in process.stdout:
        if line.strip() == "closed":
            break
        if line.strip() != "merging":
            last = int(line)
        if chance.random() < 0.2:
            # Some microseconds into the next batch, which takes some milliseconds.
            for _ in range(chance.randrange(20000)):
                pass
            process.send_signal(signal.SIGKILL)
            break
    rest = [line.strip() for line in process.stdout]
    assert process.wait() in (0, -signal.SIGKILL)
    return max([last, *(int(line) for line in rest if line.isdigit())])


def test_killed_at_any_moment_it_is_readable_and_goes_on_exactly_once(tmp_path, parts):
    seed = int(os.environ.get("WHERRY_TEST_SEED", random.randrange(1 << 30)))
    print("seed", seed)
    chance = random.Random(seed)
    output = tmp_path / "out.root"
    paths = [path for path, _ in parts] * 3
    kills = 0
    while True:
        process = start_merging(output, chance.choice([1, 2, 3]), paths)
        acknowledged = acknowledged_before_death(process, chance)
        if process.returncode == 0:
            break
        kills += 1
        if not output.exists():
            assert acknowledged == 0
            continue
        # As the kill left it, before any repair.
        with uproot.open(output) as file:
            entries = file["types"].num_entries if "types" in file else 0
        assert entries % 200 == 0 and entries // 200 >= acknowledged
        if entries:
            rich_files.check(output, paths[: entries // 200], ntuple=True)
    print(kills, "kills")
    rich_files.check(output, paths, ntuple=True)
    assert [name for name in os.listdir(tmp_path)] == ["out.root"]
