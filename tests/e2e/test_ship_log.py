# SPDX-License-Identifier: Apache-2.0
"""What wherry collect logs of each shipment, and that its summary adds up."""

import re
import subprocess
import uuid

from collecting import LISTEN, WATCHDOG, Collector
from program import PROGRAM, environment
from test_ship_hostile import DATA, DIRECTORY, FILE, FILE_END, empty_file_hash, hello, record, say

STAMP = r"wherry collect: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4} "


def ship_refused(collector, folder, count, *more):
    """A shipper of which `count` paths are refused, for they would leave the destination."""
    (folder / "deep").mkdir(parents=True, exist_ok=True)
    for i in range(count):
        (folder / f"{i}").write_text("x")
    result = collector.ship("--name", "refused", "-C", folder / "deep", *[f"../{i}" for i in range(count)], *more)
    assert result.returncode == 1


def test_each_shipment_is_logged_when_it_has_ended(tmp_path, transport):
    (tmp_path / "file").write_text("12345")
    with Collector(tmp_path / "into", transport) as collector:
        assert re.match(STAMP + "listening on ", collector.messages[0])
        for name in ("first", "second"):
            assert collector.ship("--name", name, tmp_path / "file").returncode == 0
            collector.wait_for_message(f"^{STAMP}'{name}' \\(pid \\d+, node 0\\) complete; stored 1 file, 5 B$")
        status, _ = collector.stop()
    assert status == 0 and len(collector.messages) == 3


def test_refused_paths_are_counted_and_the_first_of_them_named(tmp_path, transport):
    (tmp_path / "work/deep").mkdir(parents=True)
    (tmp_path / "work/deep/good").write_text("12345")
    with Collector(tmp_path / "into", transport, "--expect", 1) as collector:
        ship_refused(collector, tmp_path / "work", 7, "good")
        status, summary = collector.finish()
    line = next(message for message in collector.messages if "7 paths refused" in message)
    assert re.match(STAMP + r"'refused' \(pid \d+, node 0\) refused; stored 1 file, 5 B; 7 paths refused: \.\./0 \(.*'\.\.'", line)
    assert "../4 (" in line and "../5" not in line and line.endswith(" and 2 more")
    assert status == 1 and summary["paths"] == {"all": 8, "stored": 1, "refused": 7, "failed": 0}


def test_the_summary_counts_every_session_and_every_path_once(tmp_path):
    (tmp_path / "good").write_text("x")
    begun = hello() + record(DIRECTORY, 1, b"d", mode=0o755) + record(FILE, 2, b"d/empty") + record(FILE_END, 2, digest=empty_file_hash())
    in_mid_file = record(FILE, 3, b"d/lost", length=100) + record(DATA, 3, length=3, data=b"abc")
    with Collector(tmp_path / "into", "tcp", "--expect", 5) as collector:
        assert collector.ship(tmp_path / "good").returncode == 0
        ship_refused(collector, tmp_path / "work", 3)
        assert collector.ship(tmp_path / "good", tmp_path / "missing").returncode == 1
        say(collector, begun + in_mid_file)
        say(collector, begun + in_mid_file + record(99, 4))
        status, summary = collector.finish()
    assert status == 1
    assert summary["sessions"] == {"all": 5, "complete": 1, "refused": 2, "died": 1, "broken": 1, "interrupted": 0}
    # Of the third shipper one file is missing at its end, of the last two one each was under way.
    assert summary["paths"] == {"all": 12, "stored": 6, "refused": 3, "failed": 3}
    for ours, theirs in (("refused", "refused"), ("failed", "failed")):
        assert sum(shipper[theirs] for shipper in summary["shippers"]) == summary["paths"][ours]
    assert summary["files"] + summary["directories"] + summary["symlinks"] == summary["paths"]["stored"]
    died = next(message for message in collector.messages if "died" in message)
    assert re.match(STAMP + r"'by hand' \(pid \d+, node 0\) died in the middle of d/lost: .*; stored 1 file, 0 B; lost 1 path$", died)


def test_the_summary_in_words_adds_up_too(tmp_path):
    (tmp_path / "good").write_text("x")
    collector = subprocess.Popen([PROGRAM, "collect", "--listen", LISTEN["tcp"], "--into", tmp_path / "into", "--expect", "2"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    address = collector.stderr.readline().split("listening on ")[1].strip()
    for paths in (["good"], ["good", "missing"]):
        subprocess.run([PROGRAM, "ship", "--to", address, *paths], cwd=tmp_path, env=environment(), capture_output=True, timeout=WATCHDOG)
    output, _ = collector.communicate(timeout=WATCHDOG)
    assert "\n2 shippers: 1 complete, 1 refused\n3 paths: 2 stored, 0 refused, 1 failed\n" in output
    assert "; it could not read 1 path" in output


def test_quiet_logs_what_went_wrong_only(tmp_path):
    (tmp_path / "good").write_text("x")
    job = environment(WHERRY_JOB=f"test-{uuid.uuid4().hex[:12]}")  # a quiet one does not say where it listens
    collector = subprocess.Popen([PROGRAM, "collect", "--quiet", "--listen", "wherry://*:2000", "--into", tmp_path / "into", "--expect", "2"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=job)
    for path in ("good", "missing"):
        subprocess.run([PROGRAM, "ship", "--wait", str(WATCHDOG), "--to", "wherry://0:2000", path], cwd=tmp_path, env=job,
                       capture_output=True, timeout=WATCHDOG)
    _, errors = collector.communicate(timeout=WATCHDOG)
    assert errors.count("\n") == 1 and "it could not read 1 path" in errors
