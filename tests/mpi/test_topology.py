# SPDX-License-Identifier: Apache-2.0
"""Which neighbours a program's topologies declare: on each MPI, with a library in the provider's place that records."""

import collections
import os
import subprocess
from pathlib import Path

import pytest
from mpis import ALL, DEBIANS_MPICH, ROOT, environment, need

LIBRARY = Path(os.environ["WHERRY_MPI_LIBRARIES"]) / "libwherry-topology.so"
TESTS = Path(__file__).parent
RANKS = range(6)


@pytest.fixture(scope="module")
def provider(tmp_path_factory):
    library = tmp_path_factory.mktemp("provider") / "libwherry-fi.so"
    subprocess.run(["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-Wl,-soname,libwherry-fi.so", "-I", ROOT, TESTS / "recording_provider.c",
                    "-o", library], check=True)
    return library


def record(mpi, folder, program, *arguments, preload, processes=6, **variables):
    """Runs the program; what each rank declared, by scenario."""
    variables = {"LD_PRELOAD": ":".join(map(str, preload)), "RECORD": folder, **variables}
    result = subprocess.run(mpi.command(processes, program, *arguments, variables=variables), env=environment(),
                            capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return {rank: scenarios((folder / str(rank)).read_text()) for rank in range(processes)}


def scenarios(text):
    found = collections.defaultdict(list)
    name = None
    for line in text.splitlines():
        if line.startswith("scenario "):
            name = line.removeprefix("scenario ")
            found[name] = []
        else:
            found[name].append(line)
    return found


@pytest.fixture(scope="module")
def program(mpi, tmp_path_factory):
    return mpi.compile(tmp_path_factory.mktemp(mpi.name) / "topologies", TESTS / "topologies.c")


@pytest.fixture(scope="module")
def declared(mpi, program, provider, tmp_path_factory):
    return record(mpi, tmp_path_factory.mktemp(mpi.name), program, preload=[provider, LIBRARY])


def neighbours(declared, scenario):
    """By rank: what was declared in the scenario, as a dictionary of weights; the processes of the communicator."""
    found = {}
    for rank in RANKS:
        lines = [line for line in declared[rank][scenario] if line.startswith("topology ")]
        if not lines:
            continue
        [line] = lines
        head, tail = line.split(":")
        found[rank] = ({int(name): int(weight) for name, weight in (word.split("*") for word in tail.split())}, int(head.split()[-1]))
    return found


def even(*ranks):
    return dict.fromkeys(ranks, 1)


def test_the_interface_is_that_of_the_header(mpi, tmp_path):
    program = mpi.compile(tmp_path / "interface", TESTS / "interface.cc", ROOT / "adapters/mpi/topology/mpi.cc", cxx=True,
                          options=["-std=c++20", "-I", ROOT, "-ldl"])
    result = subprocess.run(mpi.command(1, program), env=environment(), capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout) == (0, ""), result.stderr


def test_a_grids_neighbours_are_those_along_its_dimensions(declared):
    assert neighbours(declared, "grid") == {
        0: (even(1, 3), 6), 1: (even(0, 2, 4), 6), 2: (even(1, 5), 6),
        3: (even(0, 4), 6), 4: (even(1, 3, 5), 6), 5: (even(2, 4), 6),
    }


def test_a_part_of_a_grid_has_neighbours_of_its_own(declared):
    assert neighbours(declared, "rows") == {
        0: (even(1), 3), 1: (even(0, 2), 3), 2: (even(1), 3), 3: (even(4), 3), 4: (even(3, 5), 3), 5: (even(4), 3),
    }


def test_freed_communicators_are_forgotten(declared):
    for rank in RANKS:
        assert declared[rank]["free"] == ["forget 2", "forget 1"]


def test_a_neighbour_in_two_directions_counts_twice(declared):
    torus = neighbours(declared, "torus")
    assert torus[0] == ({1: 1, 2: 1, 3: 2}, 6)
    assert torus[4] == ({3: 1, 5: 1, 1: 2}, 6)


def test_processes_outside_the_communicator_declare_nothing(declared):
    assert neighbours(declared, "small") == {0: (even(1), 2), 1: (even(0), 2)}


def declared_and_forgotten(lines):
    """Of a scenario: the numbers of both, and what was declared."""
    topologies = [line.split(" ", 2) for line in lines if line.startswith("topology ")]
    forgotten = [line.split()[1] for line in lines if line.startswith("forget ")]
    return [number for _, number, _ in topologies], forgotten, [rest for _, _, rest in topologies]


@pytest.mark.parametrize("scenario", ["duplicate", "duplicate of a duplicate"])
def test_a_duplicate_keeps_the_neighbours_of_what_is_freed(declared, scenario):
    for rank in RANKS:
        made, forgotten, what = declared_and_forgotten(declared[rank][scenario])
        assert len(made) == len(forgotten) == 1 and made != forgotten
        assert what == ["of 6: " + " ".join(f"{other}*1" for other in (rank - 1, rank + 1) if other in RANKS)]


def test_a_duplicate_made_without_waiting_keeps_them_too_until_both_are_freed(declared):
    for rank in RANKS:
        made, forgotten, _ = declared_and_forgotten(declared[rank]["idup"])
        assert len(made) == 1 and len(forgotten) == 2 and made[0] == forgotten[1]


def test_a_split_communicator_has_no_neighbours_and_leaves_the_others(declared):
    for rank in RANKS:
        made, forgotten, _ = declared_and_forgotten(declared[rank]["split"])
        assert len(made) == 1 and forgotten == made
        assert declared[rank]["split"][-1] == f"forget {made[0]}"


def test_a_graphs_neighbours_are_there_once_without_the_process_itself(declared):
    found = neighbours(declared, "graph")
    assert found[0] == ({1: 2, 2: 1, 3: 1, 4: 1, 5: 1}, 6)
    assert all(found[rank] == (even(0), 6) for rank in RANKS if rank != 0)


def test_the_neighbours_of_a_distributed_graph_are_its_sources(declared):
    assert neighbours(declared, "unweighted") == {rank: (even((rank + 5) % 6), 6) for rank in RANKS}


def test_weights_are_added_and_a_source_without_weight_is_left_out(declared):
    assert neighbours(declared, "weighted") == {rank: ({(rank + 5) % 6: 7}, 6) for rank in RANKS}


def test_empty_lists_of_a_distributed_graph_declare_no_neighbours(declared):
    assert neighbours(declared, "one sender") == {rank: ({0: 7} if rank == 5 else {}, 6) for rank in RANKS}


def test_edges_that_another_process_gives_are_declared_where_they_end(declared):
    expected = {rank: ({}, 6) for rank in RANKS} | {2: ({1: 1, 4: 3}, 6), 3: ({1: 2}, 6)}
    assert neighbours(declared, "edges of others") == expected


@pytest.mark.parametrize("scenario", ["edges on a grid", "edges of others on a grid", "edges on a graph"])
def test_edges_are_declared_whatever_topology_they_are_made_on(declared, scenario):
    assert neighbours(declared, scenario) == {rank: (even((rank + 5) % 6), 6) for rank in RANKS}


def test_graphs_and_grids_are_declared_whatever_topology_they_are_made_on(declared):
    assert neighbours(declared, "graph on a grid") == {rank: (even(rank ^ 1), 6) for rank in RANKS}
    assert neighbours(declared, "grid on edges")[2] == (even(1, 3), 6)


def test_inquiries_that_mpi_refuses_declare_nothing_and_leave_the_error_handler(mpi, tmp_path):
    sources = [TESTS / "inquiries.cc", *(ROOT / "adapters/mpi/topology" / name for name in ("mpi.cc", "neighbours.cc"))]
    program = mpi.compile(tmp_path / "inquiries", *sources, cxx=True, options=["-std=c++20", "-I", ROOT, "-ldl"])
    result = subprocess.run(mpi.command(2, program), env=environment(), capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout) == (0, ""), result.stderr


def test_if_one_process_has_no_memory_none_declares_what_it_is_in_and_the_program_goes_on(mpi, program, provider, tmp_path):
    found = record(mpi, tmp_path, program, preload=[provider, LIBRARY], WITHOUT_MEMORY=4)
    assert found[4] and not any(line.startswith("topology") for lines in found[4].values() for line in lines)
    assert all(found[rank]["grid"] == [] for rank in RANKS)


def test_a_call_that_fails_fails_as_without_the_library(declared):
    assert all(declared[rank]["failure"] == [] for rank in RANKS)


def test_threads_that_make_topologies_at_once_each_have_theirs(declared):
    for rank in RANKS:
        made, forgotten, what = declared_and_forgotten(declared[rank]["threads"])
        assert len(made) in (0, 30) and sorted(made) == sorted(forgotten) and len(set(made)) == len(made)
        assert len(set(what)) <= 1


def test_without_the_provider_programs_run_as_ever(mpi, program, tmp_path):
    found = record(mpi, tmp_path, program, preload=[LIBRARY])
    assert all(lines == [] for rank in RANKS for lines in found[rank].values())


PYTHON = """
import sys
from mpi4py import MPI
grid = MPI.COMM_WORLD.Create_cart([3], periods=[True])
grid.Dup().Free()
grid.Free()
"""


def test_mpi4pys_topologies_are_declared(mpi, provider, tmp_path):
    if mpi.python is None or mpi.name == "mpich-abi":
        pytest.skip("there is no mpi4py for it")
    found = record(mpi, tmp_path, mpi.python, "-c", PYTHON, preload=[provider, LIBRARY], processes=3)
    for rank in range(3):
        others = " ".join(f"{other}*1" for other in range(3) if other != rank)
        assert found[rank][None] == [f"topology 1 of 3: {others}", f"topology 2 of 3: {others}", "forget 2", "forget 1"]


@pytest.mark.parametrize("mpi", [mpi for mpi in [*ALL, DEBIANS_MPICH] if mpi.folder == Path("/usr")], ids=lambda mpi: mpi.name)
@pytest.mark.parametrize("binding", ["mpi", "mpi_f08"])
def test_what_fortran_programs_make_is_declared_once(mpi, provider, tmp_path, binding):
    need(mpi)
    if not mpi.fortran.exists():
        pytest.skip(f"{mpi.name} has no Fortran compiler: scripts/setup mpi installs it")
    source = (TESTS / "topologies.f90").read_text().replace("BINDING", binding).replace("HANDLE", {
        "mpi": "integer", "mpi_f08": "type(MPI_Comm)"}[binding])
    (tmp_path / "topologies.f90").write_text(source)
    subprocess.run([mpi.fortran, tmp_path / "topologies.f90", "-o", tmp_path / "topologies"], check=True)
    found = record(mpi, tmp_path, tmp_path / "topologies", preload=[provider, LIBRARY])
    assert dict(found[0]) == {"grid": ["topology 1 of 6: 1*1 3*1"], "row": ["topology 2 of 3: 1*1"],
                              "graph": ["topology 3 of 6: 1*1 5*1"], "edges": ["topology 4 of 6: 5*2"],
                              "adjacent": ["topology 5 of 6: 5*3"], "duplicate": ["topology 6 of 6: 5*3"],
                              "free": ["forget 5", "forget 6"], "end": ["forget 1", "forget 2", "forget 3", "forget 4"]}


SPAWN = """
import sys
from mpi4py import MPI
parent = MPI.Comm.Get_parent()
is_child = parent != MPI.COMM_NULL
between = parent if is_child else MPI.COMM_SELF.Spawn("/usr/bin/env", ["-u", "LD_PRELOAD", sys.executable, __file__])
both = between.Merge(is_child)
both.Create_cart([2]).Free()
both.Free()
between.Disconnect()
"""


def test_a_topology_with_spawned_processes_does_not_wait_for_those_without_the_library(mpi, provider, tmp_path):
    if mpi.python is None or mpi.name == "mpich-abi":
        pytest.skip("there is no mpi4py for it")
    (tmp_path / "spawn.py").write_text(SPAWN)
    (tmp_path / "0").touch()
    assert record(mpi, tmp_path, mpi.python, tmp_path / "spawn.py", preload=[provider, LIBRARY], processes=1) == {0: {}}
