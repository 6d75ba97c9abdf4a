# SPDX-License-Identifier: Apache-2.0
"""One-sided communication over wherry mpirun: windows.c checks its own results."""

import os
import subprocess
from pathlib import Path

import pytest
from mpis import ALL, environment, need

PROGRAM = os.environ["WHERRY_PROGRAM"]
TESTS = Path(__file__).parent

if not (Path(os.environ["WHERRY_MPI_LIBRARIES"]) / "libwherry-fi.so").exists():
    pytest.skip("the provider was not built: libfabric's headers are missing (scripts/setup mpi)", allow_module_level=True)


@pytest.fixture(scope="module", params=ALL, ids=lambda mpi: mpi.name)
def mpi(request):
    need(request.param)
    if request.param.name == "openmpi-4":
        pytest.skip("4.1.4 crashes in MPI_Compare_and_swap over its own shared memory, with Wherry or without")
    return request.param


@pytest.fixture(scope="module")
def windows(mpi, tmp_path_factory):
    return mpi.compile(tmp_path_factory.mktemp(mpi.name) / "windows", TESTS / "windows.c")


def mpirun(*arguments, preexec_fn=None, **changes):
    return subprocess.run([PROGRAM, "mpirun", *map(str, arguments)], env=environment(**changes), capture_output=True, text=True,
                          timeout=200, preexec_fn=preexec_fn)


@pytest.mark.parametrize("processes", [2, 3])
@pytest.mark.parametrize("accumulates", [(), ("over libfabric",)], ids=["messages", "atomics"])
def test_windows_hold_what_was_put_added_and_swapped(windows, processes, accumulates):
    result = mpirun("-n", processes, windows, *accumulates)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("accumulates", [(), ("over libfabric",)], ids=["messages", "atomics"])
def test_ranks_that_accumulate_do_not_sleep_for_each_message(mpi, tmp_path, accumulates):
    if not mpi.is_mpich:
        pytest.skip("Open MPI accumulates without the provider's atomics, and waits for words that nothing announces")
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("three ranks are to share two cores")
    program = mpi.compile(tmp_path / "accumulates", TESTS / "accumulates.c")
    result = mpirun("-n", 3, program, *accumulates, preexec_fn=lambda: os.sched_setaffinity(0, cores[:2]))
    assert result.returncode == 0, result.stdout + result.stderr
    assert "right after" in result.stdout


@pytest.mark.parametrize("accumulates", [(), ("over libfabric",)], ids=["messages", "atomics"])
def test_what_several_ranks_add_at_once_is_fetched_by_one_of_them_each(mpi, tmp_path, accumulates):
    program = mpi.compile(tmp_path / "atomics", TESTS / "atomics.c")
    result = mpirun("-n", 3, program, 200, *accumulates)
    assert (result.returncode, result.stdout.split("\n")[-2:]) == (0, ["right", ""]), result.stdout + result.stderr


def test_mpich_uses_the_providers_memory_access_and_atomics(mpi, windows):
    if not mpi.is_mpich:
        pytest.skip("only MPICH says so")
    result = mpirun("-n", 2, windows, MPIR_CVAR_DEBUG_SUMMARY="1")
    assert result.returncode == 0, result.stderr
    assert "MPIDI_OFI_ENABLE_RMA: 1" in result.stdout
    assert "MPIDI_OFI_ENABLE_ATOMICS: 1" in result.stdout
