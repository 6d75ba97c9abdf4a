# SPDX-License-Identifier: Apache-2.0
"""Classes of one name and version that have other members in the files of another output, or of the same one."""

import subprocess
import sys

import numpy as np
import pytest
import ROOT
import uproot
from merge_test import Merging

# A process of its own, for ROOT knows one class of a name. Its members have an x at least, and are as they are made but for it.
WRITER = r"""
import sys, warnings
warnings.filterwarnings("ignore")
import ROOT
path, members, version, split_level, alone = sys.argv[1:]
ROOT.gInterpreter.Declare('''
#include <TFile.h>
#include <TTree.h>
struct Event {
  %s
  ClassDefNV(Event, %s)
};
void write_events(const char* path, int split_level, bool alone) {
  TFile file(path, "RECREATE");
  auto* tree = new TTree("tree", "");
  auto* event = new Event;
  tree->Branch("event", &event, 32000, split_level);
  for (int i = 0; i < 100; ++i) {
    event->x = 1.5 * i;
    tree->Fill();
  }
  if (alone) file.WriteObject(event, "alone");
  file.Write();
  file.Close();
}
''' % (members, version))
ROOT.write_events(path, int(split_level), alone == "alone")
"""

ONE = "double x = 0; int y = 7;"
OTHER = "int z = 3; float x = 0; double w = 2.5;"


def write(path, members, version=2, split_level=99, alone=False):
    command = [sys.executable, "-c", WRITER, path, members, str(version), str(split_level), "alone" if alone else ""]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, timeout=600)
    return np.fromfile(path, dtype=np.uint8)


@pytest.fixture(scope="module", params=[99, 0])
def images(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("events")
    return [write(folder / f"{i}.root", members, split_level=request.param) for i, members in enumerate([ONE, OTHER])]


def described(path):
    """Of the class, by name: a list, for it may be described twice."""
    with uproot.open(path) as file:
        return [[element.member("fName") for element in info.elements] for info in file.file.streamers["Event"].values()]


def values(path):
    with uproot.open(path) as file:
        found = file["tree"].arrays(library="np")
    return {name: [getattr(value, "all_members", value) for value in array] for name, array in found.items()}


@pytest.mark.parametrize("restart, compact", [(False, False), (True, False), (False, True)])
def test_each_output_describes_the_classes_of_its_own_files(tmp_path, images, restart, compact):
    paths = [tmp_path / "one.root", tmp_path / "other.root"]
    mergings = [Merging(path, compact=compact) for path in paths]
    for number in [1, 2]:
        for merging, image in zip(mergings, images):
            merging.add("worker", number, image)
            merging.merge()
        if restart:
            for merging in mergings:
                del merging.merger
            mergings = [Merging(path) for path in reversed(paths)][::-1]
    for merging in mergings:
        merging.close()
        assert set(merging.outcome.values()) <= {""}
    assert described(paths[0]) == [["x", "y"]]
    assert described(paths[1]) == [["z", "x", "w"]]
    for path, image in zip(paths, images):
        image.tofile(tmp_path / "in.root")
        expected = values(tmp_path / "in.root")
        assert values(path) == {name: array * 2 for name, array in expected.items()}
        # hadd is a process that knows one of them only.
        beside = subprocess.run([sys.executable, "-c", READER, path], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert beside.stdout.split() == ["200", str(2 * sum(1.5 * i for i in range(100)))], beside.stderr


# ROOT itself, which has not seen the other.
READER = r"""
import sys, warnings
warnings.filterwarnings("ignore")
import ROOT
file = ROOT.TFile.Open(sys.argv[1])
tree = file.Get("tree")
tree.SetEstimate(-1)
count = tree.Draw("x", "", "goff")
print(count, sum(tree.GetV1()[i] for i in range(count)))
"""


@pytest.mark.parametrize("turned", [False, True])
def test_a_class_that_has_other_members_in_the_output_is_refused(tmp_path, images, turned):
    first, second = images[::-1] if turned else images
    merging = Merging(tmp_path / "out.root")
    merging.add("first", 1, first)
    merging.add("second", 1, second)
    merging.add("first", 2, first)
    merging.close()
    assert merging.outcome["first", 1] == merging.outcome["first", 2] == ""
    assert "class Event, version 2, has the members " in merging.outcome["second", 1]
    assert len(described(tmp_path / "out.root")) == 1


def test_outputs_that_will_be_joined_agree_on_classes(tmp_path, images):
    shapes = ROOT.TScifMerger.MakeShapes()
    one, other = (Merging(tmp_path / name, shapes=shapes) for name in ["one.root", "other.root"])
    one.add("first", 1, images[0])
    one.merge()
    other.add("second", 1, images[1])
    other.merge()
    assert "class Event, version 2" in other.outcome["second", 1] or "branch event" in other.outcome["second", 1]


@pytest.mark.parametrize("options", [{}, {"compression": 505}])
def test_objects_that_root_would_misread_are_refused(tmp_path, options):
    alone = not options
    images = [write(tmp_path / f"{i}.root", members, 5, 0, alone) for i, members in enumerate([ONE, OTHER])]
    one, other = (Merging(tmp_path / name, **options) for name in ["one.root", "other.root"])
    one.add("first", 1, images[0])
    one.merge()
    other.add("second", 1, images[1])
    other.merge()
    assert one.outcome["first", 1] == ""
    assert "class Event has other members in another output" in other.outcome["second", 1]
    one.close()
    other.close()
