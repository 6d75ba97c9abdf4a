# SPDX-License-Identifier: Apache-2.0
"""wherry-merge --shards: an output that several threads write is what one would have written, whoever is killed."""

import os
import random
import resource
import shutil
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
import rich_files
import ROOT
import uproot
from merge_test import Merging, clusters, make_odd, parts  # noqa: F401
from processes import (
    PROGRAM,
    Server,
    check,
    children_of,
    kill_both,
    post,
    start,
    start_worker,
    stopped_child,
)
from waiting import wait_until_stopped

ROOT.gInterpreter.Declare(r"""
#include <TFile.h>
#include <TH1.h>
void write_bins(const char* path, const char* name, int bins, double end) {
  TFile file(path, "RECREATE");
  TH1D histogram(name, "", bins, 0, end);
  histogram.Fill(1.5);
  histogram.Write();
}
""")

# The first worker is of shard 0, which is the output itself.
LISTENING_OR_ENDING = r"listening on (\S+)|completing its output"


def shard(output, number):
    return Path(f"{output}.shard-{number}.root")


def files_of(output):
    """The output's own, without summary and parts of the test."""
    return sorted(path.name for path in output.parent.iterdir() if path.name.startswith(f"{output.name}."))


def finished(server, status=0):
    found, summary = server.end()
    assert found == status, server.messages
    return summary


@pytest.mark.parametrize("shards", [1, 3, 64])
def test_what_several_threads_write_is_what_one_would_have_written(tmp_path, parts, shards):
    server = Server(tmp_path / "out.root", "--workers", len(parts), "--shards", shards)
    for path, _ in parts:
        assert post(server, path) == (0, 1, "")
    summary = finished(server)
    assert (summary["files"], summary["joined"]) == (len(parts), min(shards, len(parts)) - 1)
    # Workers go to the shards in turn, and the shards follow each other.
    order = [path for first in range(shards) for path, _ in parts[first::shards]]
    rich_files.check(server.output, order, ntuple=True)
    assert files_of(server.output) == ["out.root.json"]


def test_root_reads_it_and_its_clusters_end_where_those_of_the_files_did(tmp_path):
    sizes = (200, 50, 90, 120)
    paths = [tmp_path / f"{i}.root" for i in range(4)]
    for i, path in enumerate(paths):
        rich_files.make(path, i, sizes[i])
    server = Server(tmp_path / "out.root", "--workers", 4, "--shards", 2)
    for path in paths:
        post(server, path)
    finished(server)
    expected, before = [], 0
    for i in (0, 2, 1, 3):
        expected += [before + start for start in clusters(paths[i])]
        before += sizes[i]
    assert clusters(server.output) == expected
    file = ROOT.TFile.Open(str(server.output))
    assert not file.TestBit(ROOT.TFile.kRecovered)
    # The file describes all classes.
    assert {"TTree", "TProfile", "TVector3"} <= {info.GetName() for info in file.GetStreamerInfoList()}


def test_a_given_compression_is_that_of_all_shards(tmp_path, parts):
    server = Server(tmp_path / "out.root", "--workers", 3, "--shards", 3, "--compression", 404)
    for path, _ in parts[:3]:
        post(server, path)
    finished(server)
    rich_files.check(server.output, [path for path, _ in parts[:3]])
    file = ROOT.TFile.Open(str(server.output))
    assert file.Get("types").GetBranch("d").GetCompressionSettings() == 404


def test_workers_at_once_write_one_file(tmp_path):
    server = Server(tmp_path / "out.root", "--workers", 6, "--shards", 3, "--threads", 2)
    workers = [start_worker(server.url(), seed, 20, 300 + seed) for seed in range(6)]
    assert [worker.wait() for worker in workers] == [0] * 6
    assert finished(server)["files"] == 120
    check(server.output, {seed: 20 * (300 + seed) for seed in range(6)})


def test_a_shard_alone_with_all_files_is_the_output(tmp_path, parts):
    # The first worker hands over nothing that can be merged.
    (tmp_path / "text").write_text("root of all evil" * 100)
    server = Server(tmp_path / "out.root", "--workers", 2, "--shards", 2)
    assert post(server, tmp_path / "text")[0] == 1
    assert post(server, parts[0][0], parts[1][0])[0] == 0
    finished(server, 3)
    rich_files.check(server.output, [path for path, _ in parts[:2]], ntuple=True)


ODD = {
    "a tree of other branches": ("numbers", 10),
    "a histogram for a tree": ("histogram", "", "types"),
    "a histogram for a directory": ("histogram", "", "outer"),
    "a note for a histogram": ("note", "histogram"),
    "an RNTuple of other fields": ("ntuple", "rntuple", 10),
}


@pytest.mark.parametrize("restart", [False, True])
def test_what_does_not_fit_to_another_shard_is_refused_at_once(tmp_path, parts, restart):
    server = Server(tmp_path / "out.root", "--workers", 2 + 2 * len(ODD), "--shards", 2)
    numbers = tmp_path / "numbers.root"
    ROOT.RDataFrame(10).Define("other", "1").Snapshot("numbers", str(numbers))
    assert post(server, parts[0][0], numbers)[0] == 0
    if restart:
        [child] = children_of(server.process.pid)
        os.kill(child, signal.SIGKILL)
        server.wait_for("listening on")
    for number, (name, words) in enumerate(ODD.items()):
        make_odd(tmp_path / f"{number}.root", *words)
        # Of these two workers one belongs to shard 1, which has nothing yet.
        assert [post(server, tmp_path / f"{number}.root")[0] for _ in range(2)] == [1, 1], name
    assert post(server, parts[1][0])[0] == 0
    assert finished(server, 3)["refused"] == 2 * len(ODD)
    rich_files.check(server.output, [path for path, _ in parts[:2]], ntuple=True)


def test_what_a_refused_file_looks_like_binds_nobody(tmp_path, parts):
    # ROOT finds only while it appends them that these cannot be merged; `types` is a tree in all that follow.
    make_odd(tmp_path / "bad.root", "unchecked", "types", 3000)
    server = Server(tmp_path / "out.root", "--workers", 7, "--shards", 3)
    assert [post(server, tmp_path / "bad.root")[0] for _ in range(3)] == [1, 1, 1]
    assert [post(server, path)[0] for path, _ in parts[:3]] == [0, 0, 0]
    make_odd(tmp_path / "other.root", "histogram", "", "types")
    assert post(server, tmp_path / "other.root")[0] == 1, "what is in an output binds all"
    finished(server, 3)
    rich_files.check(server.output, [path for path, _ in parts[:3]], ntuple=True)


@pytest.mark.parametrize("restart", [False, True])
def test_killed_after_a_shard_was_joined_and_before_it_was_removed_it_is_in_once(tmp_path, parts, restart):
    whole, part = Merging(tmp_path / "out.root"), Merging(tmp_path / "part.root")
    whole.add("one", 1, parts[0][1])
    for number in (1, 2):
        part.add("two", number, parts[number][1])
    part.add("three", 1, parts[3][1])
    part.merge()
    del part.merger
    for name in ["part.root", "part.root.journal"]:
        shutil.copy(tmp_path / name, tmp_path / f"{name} kept")
    assert whole.merger.Join(str(tmp_path / "part.root")), whole.merger.Error()
    assert not (tmp_path / "part.root").exists()
    for name in ["part.root", "part.root.journal"]:
        (tmp_path / f"{name} kept").rename(tmp_path / name)
    if restart:
        del whole.merger
        whole = Merging(tmp_path / "out.root")
    assert whole.merger.Join(str(tmp_path / "part.root")), whole.merger.Error()
    assert whole.merger.Has("two", 2) and not whole.merger.Has("two", 3)
    whole.close()
    assert os.listdir(tmp_path) == ["out.root"]
    rich_files.check(tmp_path / "out.root", [path for path, _ in parts[:4]], ntuple=True)


def test_an_output_with_other_files_of_the_same_worker_is_not_joined(tmp_path, parts):
    whole, part = Merging(tmp_path / "out.root"), Merging(tmp_path / "part.root")
    for merging, number in [(whole, 1), (part, 2)]:
        merging.add("one", number, parts[number][1])
        merging.merge()
    del part.merger
    assert not whole.merger.Join(str(tmp_path / "part.root"))
    assert "in both" in str(whole.merger.Error())
    rich_files.check(tmp_path / "out.root", [parts[1][0]], ntuple=True)
    rich_files.check(tmp_path / "part.root", [parts[2][0]], ntuple=True)


def test_histograms_that_do_not_add_up_stay_in_their_shard(tmp_path):
    for name, bins, end in [("one", 10, 10.0), ("two", 7, 3.0)]:
        ROOT.write_bins(str(tmp_path / f"{name}.root"), "histogram", bins, end)
    server = Server(tmp_path / "out.root", "--workers", 2, "--shards", 2)
    for name in ["one", "two"]:
        assert post(server, tmp_path / f"{name}.root")[0] == 0
    finished(server, 1)
    assert f"the rest is in {shard(server.output, 1)}" in "".join(server.messages)
    with uproot.open(server.output) as first, uproot.open(shard(server.output, 1)) as second:
        assert (len(first["histogram"].values()), len(second["histogram"].values())) == (10, 7)


def test_killed_before_the_end_the_shards_are_readable_and_can_be_joined_by_hand(tmp_path, parts):
    server = Server(tmp_path / "out.root", "--workers", 100, "--shards", 3)
    for path, _ in parts:
        post(server, path)
    kill_both(server)
    found = [server.output, shard(server.output, 1), shard(server.output, 2)]
    for number, path in enumerate(found):
        rich_files.check(path, [path for path, _ in parts[number::3]], ntuple=True)
    merger = ROOT.TFileMerger(False)
    merger.OutputFile(str(tmp_path / "by hand.root"), "RECREATE", 101)
    assert all(merger.AddFile(str(path), False) for path in found) and merger.Merge()
    with uproot.open(tmp_path / "by hand.root") as file:
        expected = [uproot.open(path)["types"]["i"].array(library="np") for first in range(3) for path, _ in parts[first::3]]
        assert np.array_equal(file["types"]["i"].array(library="np"), np.concatenate(expected))


def seed_of(test):
    seed = int(os.environ.get("WHERRY_TEST_SEED", random.randrange(1 << 30)))
    print(test, "seed", seed)
    return seed


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A file of 8 MB, of which joining takes a while."""
    path = tmp_path_factory.mktemp("large") / "large.root"
    make_odd(path, "large", 1, 1000)
    return path


def fill(output, large, workers, files, shards, **options):
    """A server that has all it waits for but one worker, who hands over nothing: with him the end begins."""
    server = Server(output, "--workers", workers + 1, "--shards", shards, **options)
    posters = [start([os.environ["WHERRY_POSTER"], server.address, *[large] * files], stdout=subprocess.DEVNULL)
               for _ in range(workers)]
    assert [poster.wait() for poster in posters] == [0] * workers
    return server


def check_large(output, large, files):
    with uproot.open(large) as file:
        expected = file["large"]["values"].array(library="np")
    with uproot.open(output) as file:
        assert file["large"].num_entries == files * 1000
        for i in range(files):
            part = file["large"]["values"].array(library="np", entry_start=i * 1000, entry_stop=(i + 1) * 1000)
            assert np.array_equal(part, expected)


def joining_begins(server):
    """Of another shard; or the server ends."""
    return server.wait_for(r"joining .*shard|\(end\)")[0] != "(end)"


def test_killed_at_any_moment_of_the_joining_nothing_is_lost_or_doubled(tmp_path, large):
    chance = random.Random(seed_of("joining"))
    output = tmp_path / "out.root"
    server = fill(output, large, workers=4, files=3, shards=4)
    assert post(server) == (0, 0, "")
    kills, whole = 0, 0
    while joining_begins(server):
        if kills == 12:
            continue
        # Joining a shard takes some ten milliseconds; a successor begins with the one that was not complete.
        for _ in range(chance.randrange(800000)):
            pass
        try:
            if chance.random() < 0.5:
                os.kill(children_of(server.process.pid)[0], signal.SIGKILL)
                kills += 1
                continue
        except (IndexError, ProcessLookupError):
            continue  # it has ended, perhaps for another to begin
        kill_both(server)
        kills, whole = kills + 1, whole + 1
        with uproot.open(output) as file:
            assert file["large"].num_entries % 3000 == 0
        if not Path(f"{output}.journal").exists():
            break
        # Another number of shards is as good.
        server = Server(output, "--workers", 5, "--shards", chance.choice([1, 2, 7]), up=LISTENING_OR_ENDING)
        if server.address is not None:
            server.process.send_signal(signal.SIGTERM)
    print(kills, "kills,", whole, "of the whole server")
    server.reader.join()
    assert files_of(output) in ([], ["out.root.json"])
    check_large(output, large, 12)


def test_a_disk_that_is_full_in_the_end_loses_nothing(tmp_path, large):
    server = fill(tmp_path / "out.root", large, workers=3, files=2, shards=3)
    [child] = children_of(server.process.pid)
    # Two shards fit into it.
    resource.prlimit(child, resource.RLIMIT_FSIZE, (40 << 20, 40 << 20))
    assert post(server) == (0, 0, "")
    finished(server, 1)
    said = "".join(server.messages)
    assert f"is not complete: the rest is in {shard(server.output, 2)}, which can be read" in said
    with uproot.open(server.output) as whole, uproot.open(shard(server.output, 2)) as rest:
        assert (whole["large"].num_entries, rest["large"].num_entries) == (4000, 2000)
    again = Server(server.output, "--workers", 4, "--shards", 3, up=LISTENING_OR_ENDING)
    assert again.address is None
    assert finished(again)["joined"] == 1
    check_large(server.output, large, 6)
    assert files_of(server.output) == ["out.root.json"]


def test_a_stop_joins_what_was_handed_over_though_a_kill_interrupts_it(tmp_path, large, stopping):
    server = fill(tmp_path / "out.root", large, workers=3, files=2, shards=3, environment=stopping)
    server.process.send_signal(signal.SIGTERM)
    # Behind the first shard, in front of the second.
    os.kill(stopped_child(server), signal.SIGKILL)
    # One worker has not come, which is not forgotten.
    assert finished(server, 3)["never_came"] == 1
    check_large(server.output, large, 6)


def test_who_dies_before_he_sees_that_he_is_stopped_has_a_successor_that_stops(tmp_path, parts):
    server = Server(tmp_path / "out.root", "--workers", 100, "--shards", 2)
    for path, _ in parts[:2]:
        post(server, path)
    [child] = children_of(server.process.pid)
    os.kill(child, signal.SIGSTOP)
    wait_until_stopped(child)
    server.process.send_signal(signal.SIGTERM)
    os.kill(child, signal.SIGKILL)
    assert finished(server, 3)["stopped"]
    rich_files.check(server.output, [path for path, _ in parts[:2]], ntuple=True)


def test_in_a_directory_each_name_has_shards_and_they_are_joined_though_nobody_comes_back(tmp_path):
    server = Server(tmp_path / "", "--workers", 100, "--shards", 2)
    bad = [start_worker(f"{server.address}/{name}", 1, 1, 10) for name in ["c.root.shard-1.root", "d" * 230]]
    assert all(worker.wait() != 0 for worker in bad)
    for name in ["a.root", "b.root"]:
        for seed in range(2):
            assert start_worker(f"{server.address}/{name}", seed, 2, 50).wait() == 0
    kill_both(server)
    assert {"a.root.shard-1.root", "b.root.shard-1.root"} <= set(os.listdir(tmp_path))
    again = Server(tmp_path / "", "--workers", 1)
    assert post(again) == (0, 0, "")
    assert finished(again)["joined"] == 2
    for name in ["a.root", "b.root"]:
        check(tmp_path / name, {0: 100, 1: 100})
    assert sorted(path.name for path in tmp_path.iterdir() if "journal" in path.name or "shard" in path.name) == []


def test_a_shard_without_its_journal_is_not_touched(tmp_path):
    shard(tmp_path / "out.root", 1).write_text("precious")
    for force in [[], ["--force"]]:
        run = subprocess.run([PROGRAM, "wherry://*:*", "-o", tmp_path / "out.root", "--shards", "2", *force],
                             capture_output=True, text=True)
        assert run.returncode == 2 and "without its journal" in run.stderr
    assert shard(tmp_path / "out.root", 1).read_text() == "precious"


def test_an_output_that_another_process_is_merging_is_left_to_it(tmp_path, parts):
    server = Server(tmp_path / "out.root", "--workers", 2, "--shards", 2)
    assert post(server, parts[0][0])[0] == 0
    [child] = children_of(server.process.pid)
    run = subprocess.run([PROGRAM, "wherry://*:*", "-o", server.output], capture_output=True, text=True)
    assert run.returncode == 1 and f"is being merged by process {child}" in run.stderr
    assert post(server, parts[1][0])[0] == 0
    finished(server)
    rich_files.check(server.output, [path for path, _ in parts[:2]], ntuple=True)
