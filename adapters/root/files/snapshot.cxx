// SPDX-License-Identifier: Apache-2.0
#include "snapshot.hpp"

#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace wherry::root {

namespace {
// Frames searched: from TFile::Open's plugin, perhaps called through the interpreter, up to the Snapshot action.
constexpr int kDeepest = 64;
}  // namespace

// Searches the call stack, because the arguments of TFile::Open are the same for other snapshots.
bool is_ntuple_snapshot() {
  std::array<void*, kDeepest> frames{};
  const int count = ::backtrace(frames.data(), kDeepest);
  return std::any_of(frames.begin(), frames.begin() + count, [](void* frame) {
    Dl_info caller{};
    return ::dladdr(frame, &caller) != 0 && caller.dli_sname != nullptr &&
           std::string_view(caller.dli_sname).find("SnapshotRNTupleHelper") != std::string_view::npos;
  });
}

}  // namespace wherry::root
