# SPDX-License-Identifier: Apache-2.0
"""Processes that take turns at one file, each call on another path, find each byte where the last one left it; a program
without Wherry, which reads the file after each fsync and close, does too."""

import contextlib
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from program import PROGRAM, environment

BIN = Path(PROGRAM).resolve().parent
GAME, ORDINARY, OWN = BIN / "files_game", BIN / "files_game_worker", BIN / "files_api_worker"
OPERATIONS = int(os.environ.get("WHERRY_FILES_OPERATIONS", 10_000))
SEED = {name: value for name, value in os.environ.items() if name == "WHERRY_TEST_SEED"}

pytestmark = pytest.mark.skipif(not GAME.exists(), reason="a sanitizer's build has no library that programs could load")


@contextlib.contextmanager
def serving(root, job, *options):
    """`wherry serve`: gives its address."""
    command = [PROGRAM, "serve", "--root", root, "--listen", "wherry://*:*", *options]
    with subprocess.Popen(command, env=environment(WHERRY_JOB=job), stderr=subprocess.PIPE, text=True) as server:
        try:
            yield re.search(r"\d+:\d+$", server.stderr.readline().strip())[0]
        finally:
            server.send_signal(signal.SIGTERM)


@pytest.fixture(scope="module")
def job():
    return f"game-{os.getpid()}"


# Of a worker: a program by wherry run --files with a path of its process; or one that uses wherry::files for a file of
# this machine, of a host that lends its descriptors, or of one that does not, with a path of each call.
GAMES = [
    ["run cache", "run auto", "run kernel"],
    ["own cache"],
    ["own kernel"],
    ["own auto"],
    ["far host"],
    ["far auto"],
    ["host host"],
    ["own kernel,cache,auto"],
    ["far host,auto"],
    ["run auto", "own kernel,cache,auto", "far host,auto", "host host,auto"],
]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("workers", GAMES, ids=" and ".join)
def test_whoever_reads_finds_what_the_last_one_wrote_on_whatever_paths(tmp_path, job, workers):
    file = tmp_path / "file"
    with serving(tmp_path, job) as lending, serving(tmp_path, job, "--no-lend") as reading:
        names = {"own": file, "host": f"wherry://{lending}/file", "far": f"wherry://{reading}/file"}
        commands = []
        for kind, paths in map(str.split, workers):
            if kind == "run":
                commands.append(f"{PROGRAM} run --files {tmp_path} --file-path {paths} -- {ORDINARY} {file}")
            else:
                commands.append(f"{OWN} {names[kind]} {paths}")
        env = environment(WHERRY_JOB=job, **SEED)
        game = subprocess.run([GAME, file, str(OPERATIONS), *commands], env=env, capture_output=True, text=True)
        assert game.returncode == 0, game.stdout + game.stderr
    unseen = [int(line.split()[0]) for line in game.stdout.splitlines() if "not seen by the kernel" in line]
    assert len(unseen) == len(workers)
    for worker, count in zip(workers, unseen):
        if worker.startswith(("run", "own")):
            assert (count == 0) == worker.endswith(" kernel"), game.stdout
