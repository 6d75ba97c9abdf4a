# SPDX-License-Identifier: Apache-2.0
"""Stubs of MPIs, with the sonames, texts and folders by which wherry mpirun tells them apart."""

import shutil
import subprocess

import pytest
from program import PROGRAM, environment

NO_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": ""}
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
MPICH = ["MPIR_CVAR_CH4_NETMOD", "ch4:ucx ofi"]
OPEN_MPI = ["Open MPI v%d.%d.%d", "5.0.11"]
HYDRA = "HYDRA build details:\n    Version:                                 5.0.2\n"
PRTERUN = "mpiexec (Open MPI) 5.0.11\n"


@pytest.fixture
def prefix(tmp_path):
    """An installation of Wherry's with everything in it."""
    (tmp_path / "bin").mkdir()
    shutil.copy(PROGRAM, tmp_path / "bin" / "wherry")
    libraries = tmp_path / "lib" / "wherry" / "mpi"
    libraries.mkdir(parents=True)
    for name in ("libwherry-fi.so", "libwherry-topology.so"):
        (libraries / name).touch()
    return tmp_path


@pytest.fixture
def mpirun(prefix):
    def run(*arguments, **changes):
        variables = environment(**{"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": "", **AS_ROOT, **changes})
        return subprocess.run([prefix / "bin" / "wherry", "mpirun", *map(str, arguments)], env=variables, capture_output=True,
                              text=True, timeout=100)
    return run


def library(path, soname, texts=(), needs=()):
    """A shared library with these texts in it, that needs these others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    source = path.with_suffix(".c")
    source.write_text("".join(f'const char text_{i}[] = "{text}";\n' for i, text in enumerate(texts)) + "int MPI_Init(void) { return 0; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", f"-Wl,-soname,{soname}", source, "-o", path, "-Wl,--no-as-needed",
                    f"-Wl,-rpath,{path.parent}", *needs], check=True)
    return path


def linked(path, mpi):
    source = path.with_suffix(".c")
    source.write_text("int MPI_Init(void); int main(void) { return MPI_Init(); }\n")
    subprocess.run(["cc", source, mpi, f"-Wl,-rpath,{mpi.parent}", "-o", path], check=True)
    return path


def launcher(path, version):
    """Says its version, or else what it was given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\nif [ \"$1\" = --version ]; then printf '%s' '{version}'; exit; fi\necho \"$0 $*\"\nenv | sort\nexit 7\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def installation(tmp_path):
    """A stub of an MPI: its program, linked with it."""
    def make(soname, texts, version, folder="mpi", fabric=True):
        root = tmp_path / folder
        needs = [library(root / "lib" / "libfabric.so.1", "libfabric.so.1")] if fabric else []
        mpi = library(root / "lib" / soname, soname, texts, needs)
        if version:
            launcher(root / "bin" / "mpiexec", version)
        return linked(root / "app", mpi)
    return make


@pytest.fixture
def mpich(installation):
    return installation("libmpi.so.12", MPICH, HYDRA, "mpich")


@pytest.fixture
def openmpi(installation):
    return installation("libmpi.so.40", OPEN_MPI, PRTERUN, "openmpi")


def refused(result, *texts):
    assert (result.returncode, result.stdout) == (125, "")
    assert len(result.stderr.splitlines()) == 1
    for text in texts:
        assert text in result.stderr


def wrong(result, *texts):
    assert (result.returncode, result.stdout) == (2, "") and len(result.stderr.splitlines()) == 1
    for text in texts:
        assert text in result.stderr
