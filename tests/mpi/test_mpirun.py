# SPDX-License-Identifier: Apache-2.0
"""wherry mpirun with real MPIs: programs that know nothing of Wherry, their messages over it."""

import os
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from mpis import environment

PROGRAM = os.environ["WHERRY_PROGRAM"]
TESTS = Path(__file__).parent

if not (Path(os.environ["WHERRY_MPI_LIBRARIES"]) / "libwherry-fi.so").exists():
    pytest.skip("the provider was not built: libfabric's headers are missing (scripts/setup mpi)", allow_module_level=True)


@pytest.fixture(scope="module")
def halo(mpi, tmp_path_factory):
    return mpi.compile(tmp_path_factory.mktemp(mpi.name) / "halo", TESTS / "halo.c", options=["-D_GNU_SOURCE"])


def mpirun(*arguments, **changes):
    return subprocess.run([PROGRAM, "mpirun", *map(str, arguments)], env=environment(**changes), capture_output=True, text=True,
                          timeout=200)


def ring_of(processes):
    return f"{processes} processes over Wherry, sum {processes * (processes - 1) // 2}\n"


@pytest.mark.parametrize("layout", ["topology", "adaptive", "equal"])
def test_a_program_runs_over_wherry_with_every_layout(halo, layout):
    result = mpirun("-n", 5, "--layout", layout, "--budget", "64K", halo)
    assert (result.returncode, result.stdout) == (0, ring_of(5)), result.stderr


def test_48_processes_run_on_the_cores_there_are(halo):
    result = mpirun("-n", 48, "--budget", "384K", halo)
    assert (result.returncode, result.stdout) == (0, ring_of(48)), result.stderr


def test_two_processes_run_with_128_open_files(halo):
    result = subprocess.run([PROGRAM, "mpirun", "-n", "2", halo], env=environment(), capture_output=True, text=True, timeout=200,
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128)))
    assert (result.returncode, result.stdout) == (0, ring_of(2)), result.stderr


def test_the_exit_status_is_the_programs(halo):
    assert mpirun("-n", 2, halo, "exit", 3).returncode == 3


def test_an_interrupt_ends_the_whole_job(halo, tmp_path):
    marked = shutil.copy(halo, tmp_path / "halo-that-waits")
    with subprocess.Popen([PROGRAM, "mpirun", "-n", "3", marked, "wait", str(tmp_path / "waits")], env=environment(),
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as job:
        while not (tmp_path / "waits").exists():
            assert job.poll() is None
            time.sleep(0.05)
        job.send_signal(signal.SIGINT)
        assert job.wait(timeout=100) != 0
    while processes_of(marked):
        time.sleep(0.05)


def processes_of(program):
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(folder / "exe") == str(program):
                found.append(folder.name)
        except OSError:
            pass
    return found


PYTHON = """
from mpi4py import MPI
ring = MPI.COMM_WORLD.Create_cart([MPI.COMM_WORLD.size], periods=[True])
before, after = ring.Shift(0, 1)
text = "x" * 100000 + str(ring.rank)
assert ring.sendrecv(text, dest=after, source=before) == "x" * 100000 + str(before)

with open("/proc/self/maps") as maps:
    over = "Wherry" if "libwherry-fi.so" in maps.read() else "something else"
if ring.rank == 0:
    print(f"{ring.size} over {over}")
"""


def test_mpi4py_runs_over_wherry(mpi):
    if mpi.python is None or mpi.name == "mpich-abi":
        pytest.skip("there is no mpi4py for it")
    result = mpirun("-n", 3, mpi.python, "-c", PYTHON)
    assert (result.returncode, result.stdout) == (0, "3 over Wherry\n"), result.stderr
