# SPDX-License-Identifier: Apache-2.0
"""TScifFile: what ROOT programs write arrives value for value, as uproot reads it."""

import numpy as np
import pytest
import uproot
from root_file import BIN, Receiver, check_worker_file, end_in_header, start, start_python, succeed


def run_worker(receiver, threads, files, entries):
    return start(BIN / "root_worker", receiver.address + "//data/out.root", threads, files, entries)


def check_workers(receiver, workers, files, entries):
    """Each worker's files are all there, in order, with every value. Returns the threads by worker."""
    found = receiver.files()
    assert len(found) == workers
    threads = []
    for paths in found.values():
        assert len(paths) == files
        writers = {check_worker_file(path, number, entries) for number, path in enumerate(paths)}
        assert len(writers) == 1
        threads.append(writers.pop())
    return threads


# 265 bytes of values and indices an entry.
@pytest.mark.parametrize("entries", [230, 7_500, 30_000], ids=["64KB", "2MB", "8MB"])
def test_threads_write_files_of_all_sizes(tmp_path, entries):
    with Receiver(tmp_path / "got", "unit=262144", f"budget={64 << 20}") as receiver:
        succeed(run_worker(receiver, threads=3, files=4, entries=entries))
        statistics = receiver.end()
        assert sorted(check_workers(receiver, 3, 4, entries)) == [0, 1, 2]
        assert statistics["held"] == 0
        assert {line[3].strip() for line in receiver.lines if line[0] == "posted"} == {"/data/out.root"}
        assert not [line for line in receiver.lines if line[0] == "gone"]


def test_processes_write_at_once_under_a_small_budget(tmp_path):
    with Receiver(tmp_path / "got", "unit=65536", f"budget={1 << 20}") as receiver:
        workers = [run_worker(receiver, threads=2, files=3, entries=3_000) for _ in range(2)]
        for worker in workers:
            succeed(worker)
        receiver.end()
        assert sorted(check_workers(receiver, 4, 3, 3_000)) == [0, 0, 1, 1]


MANY_TYPES = """
import numpy
file = ROOT.TFile.Open(sys.argv[1], "RECREATE")
assert file.ClassName() == "TScifFile", file.ClassName()
tree = ROOT.TTree("t", "of many types")
number = {code: array.array(code, [0]) for code in "bBhHiIqQfd"}
for code, leaf in zip("bBhHiIqQfd", "BbSsIiLlFD"):
    tree.Branch(code if code.islower() else "u" + code.lower(), number[code], "x/" + leaf)
text = ROOT.std.string()
tree.Branch("text", text)
some = ROOT.std.vector["float"]()
tree.Branch("some", some)
folder = file.mkdir("folder")
folder.cd()
histogram = ROOT.TH2D("h", "h", 10, 0, 10, 5, 0, 5)
for part in range(3):
    for i in range(part * 1000, (part + 1) * 1000):
        for code in "bBhHiIqQ":
            number[code][0] = i % 128
        number["i"][0] = -i
        number["q"][0] = i * 10**12
        number["f"][0] = number["d"][0] = i / 8
        text.assign("entry " + str(i))
        some.clear()
        for k in range(i % 5):
            some.push_back(i + k / 4)
        tree.Fill()
        histogram.Fill(i % 10, i % 5)
    assert file.Write() > 0
assert file.GetPosted() == 3
file.Close()
assert not file.TestBit(ROOT.TFile.kWriteError)
"""


def test_trees_of_many_types_and_histograms_in_folders_arrive(tmp_path):
    with Receiver(tmp_path / "got", "unit=65536") as receiver:
        succeed(start_python(tmp_path, MANY_TYPES, receiver.address + "//out.root"))
        receiver.end()
        parts = receiver.all_files()
        assert len(parts) == 3, "an empty file was handed over at the end"
        expected = np.arange(3000)
        counts = 0
        for part, path in enumerate(parts):
            mine = expected[part * 1000 : (part + 1) * 1000]
            assert end_in_header(path) == path.stat().st_size
            with uproot.open(path) as file:
                arrays = file["t"].arrays(library="np")
                counts = counts + file["folder/h"].values()
            for name in ["b", "ub", "h", "uh", "ui", "uq"]:
                assert (arrays[name] == mine % 128).all(), name
            assert (arrays["i"] == -mine).all()
            assert (arrays["q"] == mine * 10**12).all()
            assert (arrays["f"] == mine / 8).all() and (arrays["d"] == mine / 8).all()
            assert list(arrays["text"]) == [f"entry {i}" for i in mine]
            for i, some in zip(mine, arrays["some"]):
                assert list(some) == [i + k / 4 for k in range(i % 5)]
        assert counts.sum() == 3000, "a histogram is counted twice, or not"


WRITE_KEY_ONLY = """
file = ROOT.TFile.Open(sys.argv[1], "RECREATE")
tree = ROOT.TTree("t", "t")
x = array.array("d", [0])
tree.Branch("x", x, "x/D")
for i in range(1000):
    x[0] = i
    tree.Fill()
tree.Write()
file.Close()
"""


def test_close_hands_over_what_no_write_of_the_file_did(tmp_path):
    with Receiver(tmp_path / "got") as receiver:
        succeed(start_python(tmp_path, WRITE_KEY_ONLY, receiver.address + "/relative.root"))
        receiver.end()
        (path,) = receiver.all_files()
        assert (uproot.open(path)["t"]["x"].array(library="np") == np.arange(1000)).all()
        assert receiver.lines[1][3].strip() == "relative.root"


NOTHING_ATTACHED = """
file = ROOT.TFile.Open(sys.argv[1], "RECREATE")
histogram = ROOT.TH1D("histogram", "", 10, 0, 10)
histogram.SetDirectory(ROOT.nullptr)
for i in range(3):
    histogram.Fill(i)
    file.cd()
    histogram.Write()
    assert file.Write() >= 0 and file.GetPosted() == i + 1
assert file.Write() == 0 and file.GetPosted() == 3, "an empty file was handed over"
file.Close()
assert file.Write() <= 0
"""


def test_write_hands_over_what_is_not_attached_to_the_file(tmp_path):
    with Receiver(tmp_path / "got") as receiver:
        succeed(start_python(tmp_path, NOTHING_ATTACHED, receiver.address + "/out.root"))
        receiver.end()
        (files,) = receiver.files().values()
        assert [uproot.open(path)["histogram"].values().sum() for path in files] == [1, 2, 3]


DELETED_DIRECTORY = """
ROOT.gInterpreter.Declare("void drop(TDirectory* directory) { directory->Save(); delete directory; }")
file = ROOT.TFile.Open(sys.argv[1], "RECREATE")
for i in range(2):
    folder = file.mkdir("folder")
    folder.cd()
    histogram = ROOT.TH1D("histogram", "", 10, 0, 10)
    histogram.Fill(i)
    histogram.Write()
    ROOT.drop(folder)
    file.cd()
    if i == 0:
        assert file.UploadAndReset()
file.Close()
"""


def test_what_is_in_a_directory_that_was_deleted_is_handed_over(tmp_path):
    with Receiver(tmp_path / "got") as receiver:
        succeed(start_python(tmp_path, DELETED_DIRECTORY, receiver.address + "/out.root"))
        receiver.end()
        (files,) = receiver.files().values()
        assert [uproot.open(path)["folder/histogram"].values().tolist().index(1) for path in files] == [0, 1]


REAL_ROOT_READS_IT = """
for path in sys.argv[1:]:
    file = ROOT.TFile.Open(path)
    assert not file.IsZombie() and not file.TestBit(ROOT.TFile.kRecovered)
    assert file.Get("t").GetEntries() == 1000
    file.Close()
"""


def test_root_itself_reads_every_file_without_recovering_it(tmp_path):
    with Receiver(tmp_path / "got") as receiver:
        succeed(start_python(tmp_path, MANY_TYPES, receiver.address + "//out.root"))
        receiver.end()
        process = start_python(tmp_path, REAL_ROOT_READS_IT, *receiver.all_files(), plain=True)
        _, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors
        assert "Error" not in errors and "recover" not in errors


ANOTHER_CLASS_LATER = """
file = ROOT.TFile.Open(sys.argv[1], "RECREATE", "", int(sys.argv[2]))
tree = ROOT.TTree("t", "t")
x = array.array("d", [0])
tree.Branch("x", x, "x/D")
for part in range(6):
    if part == 3:
        more = ROOT.TNtuple("more", "more", "y")
    for i in range(1000):
        x[0] = 1000 * part + i
        tree.Fill()
    assert file.Write() > 0
file.Close()
"""


def test_only_headers_of_trees_are_left_uncompressed(tmp_path):
    with Receiver(tmp_path / "got") as receiver:
        succeed(start_python(tmp_path, ANOTHER_CLASS_LATER, receiver.address + "//out.root", 505))
        receiver.end()
        for path in receiver.all_files():
            with uproot.open(path) as file:
                assert file.file.fCompress == 505
                header = file.key("t")
                assert header.data_compressed_bytes == header.data_uncompressed_bytes
                assert file["t"]["x"].compressed_bytes < file["t"]["x"].uncompressed_bytes


@pytest.mark.parametrize("compression", [0, 101, 505])
def test_every_file_describes_the_classes_that_are_in_it(tmp_path, compression):
    with Receiver(tmp_path / "got") as receiver:
        succeed(start_python(tmp_path, ANOTHER_CLASS_LATER, receiver.address + "//out.root", compression))
        receiver.end()
        (paths,) = receiver.files().values()
        known = []
        for part, path in enumerate(paths):
            with uproot.open(path) as file:
                known.append(set(file.file.streamers))
                assert (file["t"]["x"].array(library="np") == 1000 * part + np.arange(1000)).all()
        assert len(known) == 6
        assert all({"TTree", "TBranch", "TLeafD"} <= names for names in known)
        assert ["TNtuple" in names for names in known] == [False] * 3 + [True] * 3


SAY_CLASS = """
if "load" in sys.argv:
    assert ROOT.gSystem.Load(sys.argv[3]) == 0
try:
    file = ROOT.TFile.Open(sys.argv[1], "RECREATE")
    print(file.ClassName())
except OSError:
    print("none")
"""


def test_without_the_adapter_root_writes_a_local_file(tmp_path):
    """Not what anybody wants, but what ROOT does: the class is how a program tells."""
    url = f"wherry://0:7/{tmp_path}/local.root"
    assert succeed(start_python(tmp_path, SAY_CLASS, url, plain=True)).split() == ["TFile"]
    assert (tmp_path / "local.root").exists()


RC = (BIN.parent / "lib/wherry/root/.rootrc").read_text()


def own_rootrc(tmp_path, monkeypatch, place, text):
    """Not where the program starts: there ROOT reads one, too."""
    (tmp_path / "user").mkdir()
    (tmp_path / "user/.rootrc").write_text(text)
    monkeypatch.setenv(place, str(tmp_path / "user"))


@pytest.mark.parametrize("place", ["HOME", "ROOTENV_USER_PATH"])
def test_the_line_in_the_users_rootrc_turns_a_missing_library_into_an_error(tmp_path, monkeypatch, place):
    own_rootrc(tmp_path, monkeypatch, place, "My.Own: 1\n" + RC)
    url = f"wherry://0:7/{tmp_path}/local.root"
    assert succeed(start_python(tmp_path, SAY_CLASS, url, plain=True, keep=[place])).split() == ["none"]
    assert not (tmp_path / "local.root").exists()


@pytest.mark.parametrize("place", ["HOME", "ROOTENV_USER_PATH"])
@pytest.mark.parametrize("own", ["My.Own: 1\n", "My.Own: 1\n" + RC], ids=["without", "with"])
def test_a_users_own_rootrc_does_not_hide_the_adapter(tmp_path, monkeypatch, place, own):
    """ROOT reads one of the two: the user's own only if it has the line, else ours, and the user is told."""
    own_rootrc(tmp_path, monkeypatch, place, own)
    script = "print(ROOT.gEnv.GetValue('My.Own', 'unread'))\n" + SAY_CLASS
    with Receiver(tmp_path / "got") as receiver:
        process = start_python(tmp_path, script, receiver.address + "//x", keep=[place])
        output, errors = process.communicate(timeout=240)
        assert output.split() == ["1" if RC in own else "unread", "TScifFile"]
        assert ("to have both: cat" in errors) == (RC not in own)


def test_with_the_adapter_and_no_server_there_is_an_error_and_no_local_file(tmp_path, monkeypatch):
    monkeypatch.setenv("WHERRY_CONNECT_TIMEOUT", "0")
    url = f"wherry://0:7/{tmp_path}/local.root"
    process = start_python(tmp_path, SAY_CLASS, url)
    output, errors = process.communicate(timeout=240)
    assert output.split() == ["none"]
    assert "nobody listens on port 7 of node 0" in errors
    assert not (tmp_path / "local.root").exists()


def test_loading_the_library_is_enough(tmp_path):
    library = BIN.parent / "lib/wherry/root/libWherryROOT.so"
    with Receiver(tmp_path / "got") as receiver:
        output = succeed(start_python(tmp_path, SAY_CLASS, receiver.address + "//x", "load", library, plain=True))
        assert output.split() == ["TScifFile"]


@pytest.mark.parametrize("url", ["/x?speed=9", "/x?reconnect=soon", "/", ""])
def test_a_url_that_makes_no_sense_is_refused(tmp_path, url):
    with Receiver(tmp_path / "got") as receiver:
        process = start_python(tmp_path, SAY_CLASS, receiver.address + url)
        output, errors = process.communicate(timeout=240)
        assert output.split() == ["none"]
        assert "wherry://NODE:PORT//PATH" in errors


TOO_LARGE = """
file = ROOT.TFile.Open(sys.argv[1], "RECREATE", "", 0)
histogram = ROOT.TH1D("h", "", 400000, 0, 1)
print(file.Write() > 0)
file.Close()
print(file.TestBit(ROOT.TFile.kWriteError))
"""


def test_a_file_beyond_the_servers_limit_is_an_error_and_arrives_in_no_part(tmp_path):
    with Receiver(tmp_path / "got", "unit=65536", f"max_file={1 << 20}") as receiver:
        process = start_python(tmp_path, TOO_LARGE, receiver.address + "//out.root")
        output, errors = process.communicate(timeout=240)
        assert output.split() == ["False", "True"]
        assert "at most 1048576 bytes" in errors and "wherry-merge --max-file" in errors
        statistics = receiver.end()
        assert receiver.all_files() == []
        assert statistics["held"] == 0


READ_INSTEAD = """
for option in ["READ", "UPDATE", ""]:
    try:
        ROOT.TFile.Open(sys.argv[1], option)
        print("opened")
    except OSError:
        print("refused")
"""


def test_such_a_file_can_only_be_written(tmp_path):
    with Receiver(tmp_path / "got") as receiver:
        process = start_python(tmp_path, READ_INSTEAD, receiver.address + "//out.root")
        output, errors = process.communicate(timeout=240)
        assert output.split() == ["refused"] * 3
        assert "can only be written" in errors


SERVER_DIES = """
import time
file = ROOT.TFile.Open(sys.argv[1], "RECREATE")
tree = ROOT.TTree("t", "t")
x = array.array("d", [0])
tree.Branch("x", x, "x/D")
for part in range(6):
    for i in range(1000):
        x[0] = part * 1000 + i
        tree.Fill()
    if file.Write() <= 0:
        break
file.Close()
print(file.TestBit(ROOT.TFile.kWriteError))
"""


def test_a_server_that_dies_is_an_error(tmp_path):
    with Receiver(tmp_path / "got", "drop=2") as receiver:
        process = start_python(tmp_path, SERVER_DIES, receiver.address + "//out.root")
        output, errors = process.communicate(timeout=240)
        assert output.split() == ["True"]
        assert "the server is gone" in errors and "not known to be done" in errors


def test_a_worker_that_is_asked_to_goes_on_with_the_next_server(tmp_path):
    with Receiver(tmp_path / "one", "drop=2") as first:
        process = start_python(tmp_path, SERVER_DIES, first.address + "//out.root?reconnect=200")
        first.process.wait(240)
        with Receiver(tmp_path / "two", "address=" + first.address) as second:
            assert succeed(process).split() == ["False"]
            second.end()
            # The first server had two, and said so of one, which the worker may not have heard: then the second has that
            # too, with all the others.
            values = {}
            for receiver in (first, second):
                for path in receiver.all_files():
                    array = uproot.open(path)["t"]["x"].array(library="np")
                    assert (array == array[0] + np.arange(1000)).all()
                    values.setdefault(int(array[0]) // 1000, []).append(receiver)
            assert sorted(values) == list(range(6))
            assert values[0] in ([first], [first, second])
            assert values[1] == [first, second]
            assert all(values[part] == [second] for part in range(2, 6))
