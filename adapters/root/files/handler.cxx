// SPDX-License-Identifier: Apache-2.0
//
// Registers wherry:// URLs with ROOT: in a process that loads or links this library, TFile::Open makes a TScifFile.
// Without it, ROOT opens a local file of that path.
#include <TPluginManager.h>
#include <TROOT.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace {

constexpr const char* kPlace = "ROOTENV_USER_PATH";  // the folder of the user's .rootrc; unset: the home directory

std::string own_rootrc() {
  const char* folder = std::getenv(kPlace);
  if (folder == nullptr || *folder == '\0') folder = std::getenv("HOME");
  return folder == nullptr ? "" : std::string(folder) + "/.rootrc";
}

/// Makes ROOT read the .rootrc beside this library, unless the user's own already has its line. Used if ROOT is not
/// initialised yet: ROOT must not be started while libraries are being initialised.
void announce() {
  Dl_info self{};
  if (::dladdr(reinterpret_cast<const void*>(&announce), &self) == 0 || self.dli_fname == nullptr) return;
  const std::string path = self.dli_fname;
  const std::size_t end = path.find_last_of('/');
  if (end == std::string::npos) return;
  const std::string folder = path.substr(0, end);
  const std::string own = own_rootrc();
  std::ifstream file(own);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.find(" TScifFile ") != std::string::npos) return;
  if (!text.empty()) {
    std::fprintf(stderr, "libWherryROOT: ROOT reads %s/.rootrc instead of %s; to have both: cat %s/.rootrc >> %s\n",
                 folder.c_str(), own.c_str(), folder.c_str(), own.c_str());
  }
  ::setenv(kPlace, folder.c_str(), 1);
}

bool add_handler() {
  if (ROOT::Internal::gROOTLocal == nullptr) {
    announce();
    return true;
  }
  // A handler from a .rootrc may be the reason why this library is being loaded. Adding it again would delete it while
  // it is in use.
  TPluginManager* const manager = gROOT->GetPluginManager();
  if (manager->FindHandler("TFile", "wherry://") == nullptr) {
    manager->AddHandler("TFile", "^wherry[+:]", "TScifFile", "WherryROOT",
                        "OpenUrl(const char*,Option_t*,const char*,Int_t)");
  }
  return true;
}

[[maybe_unused]] const bool added = add_handler();

}  // namespace
