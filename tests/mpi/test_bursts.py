# SPDX-License-Identifier: Apache-2.0
"""A send that has returned arrives while its sender is away: bursts.c, over Wherry."""

import os
import subprocess
from pathlib import Path

import pytest
from mpis import environment

PROGRAM = os.environ["WHERRY_PROGRAM"]
SOAK = "WHERRY_SOAK" in os.environ
# The first connects the ranks. Of each, 256 messages and 256 KiB may wait for a receiver; beyond that its sender may wait.
BURSTS = ["1x8", "5x1000", "20x4000", "64x8", "64x4096", "1000x8", "600x1000", "200x4096", "60x16384", "20x65536"]
MANY = [f"{count}x{size}" for count in (1, 10, 100, 1000, 10000) for size in (8, 64, 1000, 4096, 16384, 65536)]
# Where the senders are: in sleep, in read, in a barrier. Each layout begins with another.
KINDS = {"topology": "srb", "adaptive": "rbs", "equal": "bsr"}
EAGER, EAGER_IN_TURN = 16384, 4096  # the second with more ranks than cores, for Open MPI

if not (Path(os.environ["WHERRY_MPI_LIBRARIES"]) / "libwherry-fi.so").exists():
    pytest.skip("the provider was not built: libfabric's headers are missing (scripts/setup mpi)", allow_module_level=True)


@pytest.fixture(scope="module")
def bursts(mpi, tmp_path_factory):
    return mpi.compile(tmp_path_factory.mktemp(mpi.name) / "bursts", Path(__file__).parent / "bursts.c", options=["-D_GNU_SOURCE"])


def play(mpi, bursts, folder, processes, layout, kinds, messages):
    shared = folder / "shared"
    shared.write_bytes(bytes(4096))
    os.mkfifo(folder / "shared.pipe")
    eager = EAGER if mpi.is_mpich or processes <= len(os.sched_getaffinity(0)) else EAGER_IN_TURN
    result = subprocess.run([PROGRAM, "mpirun", "-n", str(processes), "--layout", layout, bursts, shared, str(eager), kinds, *messages],
                            env=environment(), capture_output=True, text=True, timeout=20000 if SOAK else 500)
    assert (result.returncode, result.stdout) == (0, "passed\n"), result.stderr


@pytest.mark.parametrize("layout", KINDS)
def test_what_was_sent_to_one_receiver_arrives_while_the_sender_is_away(mpi, bursts, layout, tmp_path):
    play(mpi, bursts, tmp_path, 2, layout, KINDS[layout], BURSTS + MANY if SOAK else BURSTS)


@pytest.mark.parametrize("first", ["256x8", "16x16384"])
def test_the_first_messages_to_a_receiver_arrive_while_the_sender_is_away(mpi, bursts, first, tmp_path):
    play(mpi, bursts, tmp_path, 2, "topology", "s", [first])


@pytest.mark.parametrize("processes", [4, 8, 12, 48] if SOAK else [4, 8])
@pytest.mark.parametrize("layout", KINDS)
def test_what_was_sent_from_one_to_several_and_back_arrives_while_the_senders_are_away(mpi, bursts, layout, processes, tmp_path):
    if not SOAK and (mpi.name, processes) not in (("mpich", 4), ("mpich", 8), ("openmpi", 4)):
        pytest.skip("these show it; all in make soak")
    kinds = KINDS[layout] if SOAK else KINDS[layout][0]
    play(mpi, bursts, tmp_path, processes, layout, kinds + kinds.upper(), BURSTS)
