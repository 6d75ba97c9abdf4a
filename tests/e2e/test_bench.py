# SPDX-License-Identifier: Apache-2.0
"""wherry bench: what it prints, what it writes, and what it says about a command line that is wrong."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from program import PROGRAM, environment, wherry

ROW = {"bench", "system", "version", "mode", "senders", "size", "metric", "median", "mad", "n"}
SYSTEMS = ("--systems", "wherry,tcp,limit:in-place")


def bench(*arguments, env=None):
    return wherry("bench", *arguments, env=env, timeout=240)


def measured(tmp_path, *arguments):
    file = tmp_path / "rows.json"
    result = bench(*arguments, "--smoke", "--json", file)
    assert result.returncode == 0, result.stderr
    return result.stdout, json.loads(file.read_text())


def test_stream_writes_rows_of_both_modes_and_says_how_it_was_measured(tmp_path):
    table, document = measured(tmp_path, "stream", *SYSTEMS, "--sizes", "64,64K")
    rows = document["rows"]
    assert all(set(row) == ROW for row in rows)
    assert {(row["system"], row["mode"]) for row in rows if row["metric"] == "GB/s"} == {
        ("wherry", "handover"), ("wherry", "touched"), ("tcp", "handover"), ("tcp", "touched"), ("limit:in-place", "touched")}
    assert {row["size"] for row in rows} == {64, 65536}
    assert {row["metric"] for row in rows} == {"GB/s", "msgs/s", "cpu_s_per_GB", "switches_per_GB"}
    assert all(row["median"] > 0 for row in rows if row["metric"] in ("GB/s", "msgs/s"))
    environment = document["environment"]
    assert environment["systems"]["limit:in-place"]["in_place"] and environment["systems"]["tcp"]["settings"]
    assert {"cpu", "cores", "kernel", "samples", "seed", "not_found", "failed", "retaken"} <= set(environment)
    assert ("cores" in environment["placement"]) == (len(os.sched_getaffinity(0)) > 1)
    assert environment["processor"]["make"] and "caches" in environment["processor"]
    assert "as a multiple of" in table


def test_with_one_core_it_says_that_placements_are_not_told_apart(tmp_path):
    core = min(os.sched_getaffinity(0))
    file = tmp_path / "rows.json"
    result = subprocess.run([PROGRAM, "bench", "stream", "--systems", "limit:two-copy", "--smoke", "--json", file], env=environment(),
                            preexec_fn=lambda: os.sched_setaffinity(0, {core}), capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stderr
    assert "placement of cores not probed: there are no two cores" in result.stdout
    assert "no two cores" in json.loads(file.read_text())["environment"]["placement"]["not_probed"]


def test_latency_has_percentiles_awake_and_from_sleep(tmp_path):
    _, document = measured(tmp_path, "latency", "--systems", "wherry,limit:futex")
    found = {(row["system"], row["metric"]) for row in document["rows"]}
    for system in ("wherry", "limit:futex"):
        for prefix in ("ns_", "asleep_ns_"):
            assert {(system, prefix + share) for share in ("p50", "p99", "max")} <= found


def test_latency_has_a_thousandth_where_there_are_round_trips_enough(tmp_path):
    file = tmp_path / "rows.json"
    enough = {(64, "ns_p99.9"), (4096, "ns_p99.9")}
    for seconds in ("0.2", "0.8", "3"):  # on a busy machine a thousand take longer
        result = bench("latency", "--systems", "wherry", "--sizes", "64,4K", "--samples", "1", "--seconds", seconds, "--json", file)
        assert result.returncode == 0, result.stderr
        found = {(row["size"], row["metric"]) for row in json.loads(file.read_text())["rows"]}
        if seconds != "3":
            # A few hundred wake-ups, of which each takes a millisecond at least, have no thousandth.
            assert (64, "asleep_ns_max") in found and (64, "asleep_ns_p99.9") not in found
            assert "p99.9: one way to a process that sleeps" not in result.stdout
        if enough <= found:
            break
    assert enough <= found and "p99.9: both awake" in result.stdout


def test_many_tells_memory_too(tmp_path):
    _, document = measured(tmp_path, "many", "--systems", "wherry,unix", "--senders", "3")
    memory = [row for row in document["rows"] if row["metric"] == "memory_bytes_per_connection"]
    assert {row["system"] for row in memory} == {"wherry", "unix"}
    assert all(row["senders"] == 3 and row["median"] > 0 for row in memory)


def test_connect_tells_time_and_descriptors_for_each_number_of_connections(tmp_path):
    _, document = measured(tmp_path, "connect", "--systems", "wherry,tcp,unix")
    for metric in ("connect_ns", "descriptors_per_connection", "memory_bytes_per_connection"):
        rows = [row for row in document["rows"] if row["metric"] == metric]
        assert {(row["system"], row["senders"]) for row in rows} == {
            (system, count) for system in ("wherry", "tcp", "unix") for count in (1, 10)}
    descriptors = {row["system"]: row["median"] for row in document["rows"] if row["metric"] == "descriptors_per_connection"}
    assert descriptors["tcp"] == 2 and descriptors["wherry"] == 8


def test_limit_measures_nothing_but_limits(tmp_path):
    _, document = measured(tmp_path, "limit", "--sizes", "64K")
    systems = {row["system"] for row in document["rows"]}
    assert {"limit:memcpy-1", "limit:memcpy-2", "limit:two-copy", "limit:one-copy", "limit:split-copy", "limit:in-place",
            "limit:cache-line", "limit:futex", "limit:eventfd"} == systems


def test_zmq_stands_beside_the_native_stream_and_says_what_to_install_for_those_that_are_not_here(tmp_path):
    nothing = {"WHERRY_BENCH_PEERS": str(tmp_path), "WHERRY_BENCH_ZMQ": str(tmp_path)}
    file = tmp_path / "rows.json"
    result = bench("zmq", "--smoke", "--json", file, env=nothing)
    assert result.returncode == 0, result.stderr
    assert {row["system"] for row in json.loads(file.read_text())["rows"]} == {"wherry"}
    for name, remedy in (("nanomsg-ipc", "libnanomsg-dev"), ("nng-tcp", "libnng-dev"), ("zmq-wherry", "make zmq")):
        assert any(f"{name} is left out" in line and remedy in line for line in result.stderr.splitlines())
    assert "ucx" not in result.stderr


FUSE = Path(PROGRAM).resolve().parent / "wherry-bench-file-fuse"


def descendants(pid):
    try:
        threads = os.listdir(f"/proc/{pid}/task")
        own = [int(child) for thread in threads for child in Path(f"/proc/{pid}/task/{thread}/children").read_text().split()]
    except OSError:  # it has ended
        return []
    return own + [other for child in own for other in descendants(child)]


def mounts(pid):
    try:
        return Path(f"/proc/{pid}/mounts").read_text()
    except OSError:
        return ""


@pytest.mark.skipif(not FUSE.exists(), reason="libfuse was not found when this was built")
@pytest.mark.parametrize("system", ["fuse-cached", "wherry-mount"])
def test_what_is_mounted_for_a_measurement_is_seen_by_nobody_else_and_gone_however_that_ends(tmp_path, system):
    if subprocess.run([FUSE, "check"], capture_output=True).returncode != 0:
        pytest.skip("FUSE is not permitted here")
    words = ["file", "--figures", "hit", "--systems", system, "--seconds", "60", "--directory", tmp_path]
    with subprocess.Popen([PROGRAM, "bench", *words], env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
        # The test's watchdog ends a wait in vain.
        while not any(str(tmp_path) in mounts(pid) for pid in descendants(program.pid)):
            assert program.poll() is None
            time.sleep(0.01)
        assert str(tmp_path) not in mounts("self")
        found = descendants(program.pid)
        program.kill()
    while any(alive(pid) for pid in found):
        time.sleep(0.01)
    assert all(str(tmp_path) not in mounts(pid) for pid in os.listdir("/proc") if pid.isdigit())


@pytest.mark.skipif(not (Path(PROGRAM).resolve().parent / "wherry-bench-file").exists(),
                    reason="a sanitizer's build has no programs of peers to measure with")
def test_file_measures_every_figure_and_leaves_no_files_behind(tmp_path):
    table, document = measured(tmp_path, "file", "--directory", tmp_path, "--figures", "hit,first,write-synced,used-read")
    rows = document["rows"]
    assert {(row["mode"], row["senders"], row["size"]) for row in rows} == {
        ("hit", 1, 4096), ("hit", 2, 4096), ("hit-threads", 2, 4096), ("write-synced-threads", 2, 4096), ("first", 1, 4096), ("first", 2, 4096), ("write-synced", 1, 4096), ("write-synced", 2, 4096),
        ("used-read", 1, 65536), ("used-read", 1, 4 << 20), ("used-read", 2, 65536)}
    assert {row["metric"] for row in rows} == {"GB/s", "cpu_s_per_GB"}
    assert not document["environment"]["failed"] and "nfs" in document["environment"]["not_found"]
    systems = {row["system"] for row in rows}
    assert "native" in systems and systems <= {
        "native", "two-copies", "sshfs", "wherry-run-kernel", "wherry-run-cache", "wherry-run-auto", "fuse-cached", "fuse-direct",
        "fuse-through", "wherry-mount", "wherry-mount-run", "wherry-mount-requests", "wherry-mount-cache", "wherry-mount-card", "wherry-mount-host", "wherry-mount-auto",
        "wherry-api-kernel", "wherry-api-cache", "wherry-api-auto", "wherry-api-host"}
    assert ("as a multiple of native" in table) == (len(systems) > 1)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.json"]


def test_file_says_why_nfs_is_left_out(tmp_path):
    result = bench("file", "--smoke", "--systems", "nfs", "--directory", tmp_path)
    assert result.returncode == 2 and result.stderr.count("\n") == 1, result.stderr
    has_nfs = "nfs" in open("/proc/filesystems").read().split()
    assert ("nfs is not here: mount one" if has_nfs else "nfs is not here: this kernel does not have it") in result.stderr


@pytest.mark.parametrize("arguments", [
    (), ("nothing",), ("stream", "--sizes", "0"), ("stream", "--sizes", "many"), ("stream", "--samples", "0"),
    ("stream", "--modes", "both"), ("stream", "--systems", "tpc"), ("stream", "--plot", "out.gif"),
    ("stream", "--sizes", "2G"), ("many", "--senders", "0"), ("many", "--senders", "1001"), ("connect", "--connections", "10,10"),
    ("connect", "--connections", "10001"), ("stream", "--cores", "100000"),
    ("file", "--figures", "warm"), ("file", "--sizes", "100"), ("file", "--directory", "/nowhere"), ("file", "--cores", "0"),
    ("file", "--threads", "0"),
])
def test_a_wrong_command_line_is_a_usage_error_with_a_reason(arguments):
    result = bench(*arguments)
    assert result.returncode == 2, result.stderr
    assert result.stderr.strip()
    assert not result.stdout


def test_a_name_that_is_unknown_is_answered_with_those_that_are_known():
    assert "unix" in bench("stream", "--systems", "unxi").stderr


def test_a_plot_without_its_script_says_what_to_do(tmp_path):
    result = bench("stream", "--systems", "tcp", "--smoke", "--plot", tmp_path / "a.html", env={"WHERRY_BENCH_REPORT": str(tmp_path)})
    assert result.returncode == 2
    assert "WHERRY_BENCH_REPORT" in result.stderr
    assert not (tmp_path / "a.html").exists() and not result.stdout


def test_a_plot_without_matplotlib_is_refused_before_anything_is_measured(tmp_path):
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    report = tmp_path / "report"  # of an installation: there is no .venv beside it
    report.mkdir()
    (report / "report.py").write_text("")
    result = bench("stream", "--systems", "tcp", "--smoke", "--plot", tmp_path / "a.html",
                   env={"WHERRY_BENCH_REPORT": str(report), "PATH": f"{tmp_path}/venv/bin:{os.environ['PATH']}"})
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1 and "python3-matplotlib" in result.stderr, result.stderr
    assert not result.stdout


@pytest.mark.parametrize("option", ["--json", "--plot"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(tmp_path, option):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "nowhere" / "a.html", tmp_path / "file" / "a.html"):
        result = bench("stream", "--systems", "tcp", "--smoke", option, place)
        assert result.returncode == 2
        assert result.stderr.count("\n") == 1 and f"{option} {place}: cannot write it" in result.stderr, result.stderr
        assert not result.stdout


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_leaves_no_process_behind_whatever_libraries_it_has_loaded(number):
    with subprocess.Popen([PROGRAM, "bench", "stream", "--systems", "tcp", "--seconds", "60", "--bytes", "1000G", "--sizes", "64K"],
                          env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
        def children():
            with open(f"/proc/{program.pid}/task/{program.pid}/children") as file:
                return [int(pid) for pid in file.read().split()]

        while len(found := children()) < 2:
            time.sleep(0.01)
        program.send_signal(number)
        assert program.wait() == -number
    # The test's watchdog ends a wait in vain.
    while any(alive(pid) for pid in found):
        time.sleep(0.01)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_seeds_stand_beside_their_published_figures(tmp_path):
    table, document = measured(tmp_path, "seeds", "--seeds", "trans4scif,rckmpi")
    assert "up to 3 GB/s (4x)" in table and "plot that ends at 30 MB/s" in table
    assert "6.300" not in table
    measured_by = {(row["bench"], row["system"]) for row in document["rows"] if row["metric"] == "GB/s"}
    assert {("stream", "wherry"), ("stream", "tcp"), ("mailbox", "mailbox-equal"), ("mailbox", "mailbox-topology-2")} <= measured_by


def test_a_seed_that_nobody_knows_is_refused():
    result = bench("seeds", "--seeds", "trans4scif,other")
    assert result.returncode == 2 and "other" in result.stderr


def test_seeds_choose_their_systems_themselves():
    result = bench("seeds", "--systems", "tcp")
    assert result.returncode == 2 and "--seeds chooses among them" in result.stderr
