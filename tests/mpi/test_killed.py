# SPDX-License-Identifier: Apache-2.0
"""A rank that is killed in the middle of its messages: the job ends with the MPI's own error, and leaves nothing."""

import os
import re
import signal
import subprocess
import time
import uuid
from pathlib import Path

import pytest
from mpis import ALL, environment, need

PROGRAM = os.environ["WHERRY_PROGRAM"]
# The launcher's or that of a rank, which may be the first to know.
ERROR = re.compile(r"signal 9|[Ee]rror (occurred )?in (MPI_|internal_)\w+|MTL is aborting the MPI job")
# What MPICH itself leaves behind then (docs/mpi.md).
MPICHS_OWN = re.compile("/dev/shm/mpich_shm_")

if not (Path(os.environ["WHERRY_MPI_LIBRARIES"]) / "libwherry-fi.so").exists():
    pytest.skip("the provider was not built: libfabric's headers are missing (scripts/setup mpi)", allow_module_level=True)


@pytest.fixture(params=[mpi for mpi in ALL if mpi.name != "mpich-abi"], ids=lambda mpi: mpi.name)
def mpi(request):
    need(request.param)
    return request.param


@pytest.mark.parametrize("victim", [0, 2])
def test_a_killed_rank_ends_the_job_with_an_error_and_leaves_nothing(mpi, victim, tmp_path):
    program = mpi.compile(tmp_path / "messages", Path(__file__).parent / "messages.c", options=["-D_GNU_SOURCE"])
    mark, temporary = str(uuid.uuid4()), tmp_path / "t"
    temporary.mkdir()
    begin = time.time()
    with subprocess.Popen([PROGRAM, "mpirun", "-n", "3", program, "endless", tmp_path / "pids"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env=environment(MARK=mark, TMPDIR=str(temporary))) as job:
        try:
            pids = [wait_for(tmp_path / f"pids.{rank}", job) for rank in range(3)]
            files = set().union(*map(named_files, processes_marked(mark)))
            os.kill(pids[victim], signal.SIGKILL)
            killed = time.monotonic()
            output, _ = job.communicate(timeout=100)
            print(f"{mpi.name}: the job ended {time.monotonic() - killed:.3f} s after rank {victim} was killed")
        finally:
            job.kill()
    assert job.returncode != 0
    # Of a job that its ranks abort MPICH's launcher loses all output now and then: one in sixty without Wherry, too.
    assert ERROR.search(output) or (mpi.name == "mpich" and not output), output
    while processes_marked(mark):
        time.sleep(0.05)
    left = [file for file in files if os.path.exists(file) and os.stat(file).st_ctime >= begin]
    assert [file for file in left if not MPICHS_OWN.match(file)] == []
    assert list(temporary.iterdir()) == []


def wait_for(file, job):
    """The process that has written its number there, once its messages flow."""
    while not file.exists() or not file.read_text().endswith("\n"):
        assert job.poll() is None
        time.sleep(0.01)
    return int(file.read_text())


def processes_marked(mark):
    """The processes that have inherited this word in their environment, launchers and all."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.append(folder)
        except OSError:
            pass
    return found


def named_files(process):
    """Files in memory or for a while that the process has open or mapped, and that have a name."""
    found = set()
    try:
        links = [os.readlink(link) for link in (process / "fd").iterdir()]
        links += [line.split(maxsplit=5)[5] for line in (process / "maps").read_text().splitlines() if line.count("/") > 0]
    except OSError:
        return found
    return {path for path in links if path.startswith(("/dev/shm/", "/tmp/")) and not path.endswith(" (deleted)")}
