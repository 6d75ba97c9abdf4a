// SPDX-License-Identifier: Apache-2.0
//
// leaver URL WAY: writes 100 entries of a tree to URL, fills 50 more, and leaves the program in that way, without
// Close. It knows ROOT only.
#include <TEnv.h>
#include <TFile.h>
#include <TROOT.h>
#include <TSystem.h>
#include <TTree.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

int x = 0;
TTree* tree = nullptr;
TFile* file = nullptr;

void fill(int entries) {
  for (int i = 0; i < entries; ++i, ++x) tree->Fill();
}

void unwind() {
  try {
    const std::unique_ptr<TFile> mine(file);
    throw std::runtime_error("something");
  } catch (const std::exception&) {
    // As if nothing had been.
  }
}

/// A child of a worker ends, in order, before the worker goes on.
void fork_and_finish() {
  const pid_t child = ::fork();
  if (child == 0) std::exit(0);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) std::_Exit(9);
  file->Write();
  file->Close();
}

const std::map<std::string, std::function<void()>> ways{
    {"segmentation violation", [] { std::raise(SIGSEGV); }},
    {"gSystem->Exit(3)", [] { gSystem->Exit(3); }},
    {"gSystem->Exit(0)", [] { gSystem->Exit(0); }},
    {"exit(3)", [] { std::exit(3); }},
    {"unwound by an exception", unwind},
    {"exit(3), static", [] { std::exit(3); }},
    {"return", [] {}},
    // These are whole.
    {"all written, return", [] { file->Write(); }},
    {"all written, CloseFiles", [] { file->Write(), gROOT->CloseFiles(); }},
    {"tree written, return", [] { tree->Write(); }},
    {"fork", fork_and_finish},
};

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 8;
  gEnv->SetValue("Root.Stacktrace", 0);  // by a debugger, for seconds
  file = TFile::Open(words[1], "RECREATE");
  if (file == nullptr || file->IsZombie()) return 7;
  static const std::unique_ptr<TFile> mine(words[2] == std::string("exit(3), static") ? file : nullptr);
  tree = new TTree("t", "t");
  tree->Branch("x", &x);
  fill(100);
  if (file->Write() <= 0) return 6;
  fill(50);
  ways.at(words[2])();
  return 0;
}
