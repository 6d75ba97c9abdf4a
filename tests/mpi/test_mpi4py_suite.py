# SPDX-License-Identifier: Apache-2.0
"""mpi4py's own test-suite: what passes on an MPI's own transport passes over Wherry.

A part of it with 3 ranks; with WHERRY_SOAK the whole, with 2, 3, 4, 5 and 7. What does not pass over Wherry is run again without it: so
the suite may have failures of the MPI's own, and tests that are skipped."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from mpis import ALL, WHEELS, environment, need

PROGRAM = os.environ["WHERRY_PROGRAM"]
SUITE = WHEELS / "mpi4py" / "test"
RANK = Path(__file__).parent / "mpi4py_suite.py"
SOAK = "WHERRY_SOAK" in os.environ
SECONDS = 3000 if SOAK else 250
# For MPIs that survive a rank.
LEFT_OUT = "ulfm"
# Hangs with MPICH over libfabric's own providers, too (docs/mpi.md).
HANGS_WITH_FOUR = "util_sync"
PART = "dynproc|p2p_buf|p2p_obj|msgzero|comm_topo|cco_ngh|cco_nb_buf|cco_obj|cco_.*inter|threads|rma|request|status"
ARGUMENTS = [] if SOAK else ["-i", f"test_({PART})"]

if not SUITE.exists():
    pytest.skip("mpi4py's test-suite is not here: scripts/setup mpi fetches it", allow_module_level=True)
if not (Path(os.environ["WHERRY_MPI_LIBRARIES"]) / "libwherry-fi.so").exists():
    pytest.skip("the provider was not built: libfabric's headers are missing (scripts/setup mpi)", allow_module_level=True)


@pytest.fixture(params=[mpi for mpi in ALL if mpi.name in ("mpich", "openmpi")], ids=lambda mpi: mpi.name)
def mpi(request):
    need(request.param)
    return request.param


def run(launch, mpi, folder, arguments):
    """The outcome of each test, `pass` if it is that in every rank; and how long it took."""
    folder.mkdir()
    command = [*map(str, launch), str(mpi.python), str(RANK), str(SUITE), str(folder), "-q", *arguments]
    begin = time.monotonic()
    # Open MPI refuses to spawn where all processors have a rank already.
    variables = environment(PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe")
    with subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          start_new_session=True) as job:
        try:
            _, errors = job.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGTERM)
            pytest.fail(f"after {SECONDS} s these run still: {unfinished(folder)}")
    assert job.returncode == 0 and not unfinished(folder), f"{unfinished(folder)} {errors[-4000:]}"
    return merged(folder), time.monotonic() - begin


def lines_of(record):
    return [line.split(" ", 1) for line in record.read_text().splitlines()]


def unfinished(folder):
    """Of each rank that has not come to its end: the line it wrote last."""
    last = {record.name: lines_of(record)[-1:] for record in sorted(folder.iterdir())}
    return {rank: line for rank, line in last.items() if line != [["end"]]}


def merged(folder):
    outcomes = {}
    for record in folder.iterdir():
        for outcome, *name in lines_of(record):
            if name and outcome != "begin" and outcomes.get(name[0]) in (None, "pass"):
                outcomes[name[0]] = outcome
    return outcomes


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 7] if SOAK else [3])
def test_what_passes_on_the_mpis_own_transport_passes_over_wherry(mpi, ranks, tmp_path):
    left_out = f"{LEFT_OUT}|{HANGS_WITH_FOUR}" if mpi.name == "mpich" and ranks >= 4 else LEFT_OUT
    arguments = [*ARGUMENTS, "-e", left_out]
    over, seconds = run([PROGRAM, "mpirun", "-n", ranks], mpi, tmp_path / "wherry", arguments)
    rest = [name for name, outcome in over.items() if outcome != "pass"]
    again = [word for name in rest for word in ("-k", f"*{name}")]
    own, _ = run(mpi.command(ranks, "/usr/bin/env"), mpi, tmp_path / "own", [*arguments, *again])
    print(f"{len(over) - len(rest)} tests of {len(over)} passed over Wherry, all in {seconds:.0f} s")
    assert len(over) > 400
    assert [name for name in rest if own.get(name) == "pass"] == []
