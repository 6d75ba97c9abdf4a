# SPDX-License-Identifier: Apache-2.0
"""What is in a file, as text that can be compared with that of another; and what hadd makes of the same files."""

import subprocess
from pathlib import Path

import ROOT

ROOT.gInterpreter.Declare(r"""
#include <TBufferJSON.h>
#include <TFile.h>
#include <TKey.h>
#include <TTree.h>
#include <TTreeIndex.h>
#include <sstream>

namespace beside {

void describe_branches(TObjArray& branches, const std::string& path, std::ostream& out) {
  for (TObject* object : branches) {
    auto* branch = static_cast<TBranch*>(object);
    const std::string name = path + branch->GetName();
    out << "  " << name << " '" << branch->GetTitle() << "' " << branch->ClassName() << ' ' << branch->GetEntries() << ' '
        << branch->GetTotBytes() << ' ' << branch->GetZipBytes() << ' ' << branch->GetWriteBasket() << ' '
        << branch->GetCompressionSettings() << '\n';
    describe_branches(*branch->GetListOfBranches(), name + ".", out);
  }
}

void describe_list(const char* name, TList* list, std::ostream& out) {
  if (list != nullptr && !list->IsEmpty()) out << "  " << name << ' ' << TBufferJSON::ConvertToJSON(list) << '\n';
}

void describe_tree(TTree& tree, std::ostream& out) {
  out << "  " << tree.GetName() << " '" << tree.GetTitle() << "' " << tree.GetEntries() << " entries, autosave "
      << tree.GetAutoSave() << ", autoflush " << tree.GetAutoFlush() << ", weight " << tree.GetWeight() << '\n';
  describe_list("aliases", tree.GetListOfAliases(), out);
  describe_list("friends", tree.GetListOfFriends(), out);
  describe_list("user info", tree.GetUserInfo(), out);
  if (auto* index = dynamic_cast<TTreeIndex*>(tree.GetTreeIndex())) {
    out << "  index " << index->GetMajorName() << ',' << index->GetMinorName() << ' ' << index->GetN() << ':';
    for (Long64_t i = 0; i < index->GetN(); ++i) {
      out << ' ' << index->GetIndexValues()[i] << ',' << index->GetIndexValuesMinor()[i] << '=' << index->GetIndex()[i];
    }
    out << '\n';
  }
  describe_branches(*tree.GetListOfBranches(), "", out);
}

void describe(TDirectory& directory, const std::string& path, bool trees, std::ostream& out) {
  for (TObject* object : *directory.GetListOfKeys()) {
    auto* key = static_cast<TKey*>(object);
    out << path << key->GetName() << ';' << key->GetCycle() << ' ' << key->GetClassName() << " '" << key->GetTitle() << "'\n";
    TClass* type = TClass::GetClass(key->GetClassName());
    if (type->InheritsFrom("TDirectory")) {
      describe(*key->ReadObject<TDirectory>(), path + key->GetName() + "/", trees, out);
    } else if (type->InheritsFrom("TTree")) {
      // The file deletes it.
      if (trees) describe_tree(*key->ReadObject<TTree>(), out);
    } else if (type != TClass::GetClass("ROOT::RNTuple")) {
      void* read = key->ReadObjectAny(type);
      out << "  " << TBufferJSON::ConvertToJSON(read, type) << '\n';
    }
  }
}

std::string describe_file(const char* path, bool trees) {
  const TDirectory::TContext context;
  TFile file(path);
  std::ostringstream out;
  out << "compression " << file.GetCompressionSettings() << '\n';
  describe(file, "/", trees, out);
  return out.str();
}

}  // namespace beside
""")


def contents(path, trees=True):
    """Directories, keys in their order with cycles and titles, objects with all their members, headers of trees."""
    return str(ROOT.beside.describe_file(str(path), trees)).splitlines()


def hadd(output, *inputs, verbosity=0):
    """What it says. The compression is that of the first input, as wherry-merge has it."""
    program = Path(str(ROOT.TROOT.GetBinDir())) / "hadd"
    run = subprocess.run([program, "-f", "-ff", "-v", str(verbosity), output, *inputs], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout + run.stderr
