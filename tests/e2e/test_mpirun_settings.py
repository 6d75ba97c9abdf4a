# SPDX-License-Identifier: Apache-2.0
"""wherry mpirun: the values that it sets, and those that it refuses before a process starts. The MPIs here are stubs."""

import resource
import subprocess

import pytest
from mpi_stubs import AS_ROOT, HYDRA, refused
from mpi_stubs import installation, mpich, mpirun, openmpi, prefix  # noqa: F401
from program import environment


def mpirun_with_files(prefix, limits, *arguments):
    return subprocess.run([prefix / "bin" / "wherry", "mpirun", *map(str, arguments)], env=environment(**AS_ROOT), capture_output=True,
                          text=True, timeout=100, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limits))


def test_a_job_that_needs_more_files_than_the_user_may_open_is_refused(prefix, mpich, openmpi):
    refused(mpirun_with_files(prefix, (512, 512), "-n", 2000, mpich), "2000 processes", "each may need 12064 open files",
            "and this user may have 512: start fewer, or raise the limit (ulimit -Hn")
    refused(mpirun_with_files(prefix, (512, 512), "-n", 2000, openmpi), "each may need 8064 open files")


def test_two_processes_start_where_the_user_may_open_128_files(prefix, mpich, openmpi):
    for app in (mpich, openmpi):
        result = mpirun_with_files(prefix, (128, 128), "-n", 2, app)
        assert result.returncode == 7, result.stderr


def test_the_limit_of_open_files_is_raised_as_far_as_the_user_may(prefix, mpich):
    (mpich.parent / "bin" / "mpiexec").write_text(f"#!/bin/sh\nprintf '%s' '{HYDRA}'\nulimit -n\n")
    assert mpirun_with_files(prefix, (64, 100), "-n", 2, mpich).stdout.splitlines()[-1] == "100"
    assert mpirun_with_files(prefix, (64, 1000), "-n", 2, mpich).stdout.splitlines()[-1] == "268"


@pytest.mark.parametrize("budget", ["much", "1", "4095", "2G", "-1", ""])
def test_a_budget_that_is_not_valid_is_refused_with_what_is(mpirun, mpich, budget):
    refused(mpirun("-n", 1, "--budget", budget, mpich), f"--budget {budget}: Invalid argument; give a number of bytes from 4K to 1G")


@pytest.mark.parametrize("budget", ["4K", "1G"])
def test_a_budget_may_be_as_small_and_as_large_as_is_said(mpirun, mpich, budget):
    assert f"WHERRY_MPI_BUDGET={budget}" in mpirun("-n", 1, "--budget", budget, mpich).stdout


@pytest.mark.parametrize("name, value", [("MPI_BUDGET", "1"), ("MPI_LAYOUT", "ring"), ("MPI_EAGER", "1M"), ("RING", "7"), ("SPIN", "x"),
                                         ("CONNECT_TIMEOUT", "x"), ("JOB", "a b"), ("NODE", "x")])
def test_a_variable_that_the_provider_would_refuse_is_refused_before_a_process_starts(mpirun, mpich, name, value):
    refused(mpirun("-n", 1, mpich, **{f"WHERRY_{name}": value}), f"configure WHERRY_{name}={value}: Invalid argument; use ")


def test_an_option_counts_before_its_variable(mpirun, mpich):
    shown = mpirun("-n", 1, "--budget", "8K", "--layout", "equal", mpich, WHERRY_MPI_BUDGET="1", WHERRY_MPI_LAYOUT="ring").stdout
    assert {"WHERRY_MPI_BUDGET=8K", "WHERRY_MPI_LAYOUT=equal"} <= set(shown.splitlines())


def test_a_layout_in_the_environment_counts_where_no_option_says_one(mpirun, mpich):
    shown = mpirun("-n", 1, mpich, WHERRY_MPI_LAYOUT="adaptive").stdout
    assert "WHERRY_MPI_LAYOUT=adaptive" in shown and "LD_PRELOAD" not in shown


def test_a_job_stays_on_this_machine_where_a_file_names_other_hosts(mpirun, mpich):
    assert "WHERRY_FABRIC=shm" in mpirun("-n", 1, mpich, WHERRY_HOSTS="/hosts").stdout.splitlines()
    assert "WHERRY_FABRIC=faulty" in mpirun("-n", 1, mpich, WHERRY_HOSTS="/hosts", WHERRY_FABRIC="faulty").stdout.splitlines()
    assert "WHERRY_FABRIC" not in mpirun("-n", 1, mpich).stdout


def test_jobs_of_more_processes_than_cores_have_small_buffers_unless_the_user_says_otherwise(mpirun, mpich, openmpi):
    assert "WHERRY_MPI_BUDGET=16K" in mpirun("-n", 1000, mpich).stdout
    assert {"WHERRY_MPI_BUDGET=16K", "WHERRY_MPI_EAGER=4K"} <= set(mpirun("-n", 1000, openmpi).stdout.splitlines())
    set_by_user = mpirun("-n", 1000, openmpi, WHERRY_MPI_BUDGET="2M", WHERRY_MPI_EAGER="8K").stdout.splitlines()
    assert {"WHERRY_MPI_BUDGET=2M", "WHERRY_MPI_EAGER=8K"} <= set(set_by_user)
