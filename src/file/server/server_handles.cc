// SPDX-License-Identifier: Apache-2.0
#include "file/server/server_handles.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace wherry::file {
namespace {

constexpr std::uint64_t kMostFiles = std::uint64_t{1} << 20;
constexpr std::uint64_t kUnknownLimit = 1024;

}  // namespace

HandleBudget HandleBudget::of_process() {
  rlimit limit{};
  const std::uint64_t files = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : kUnknownLimit;
  const std::size_t all = std::max<std::size_t>(std::min(files, kMostFiles) / 2, 4);
  return {all, all / 4};
}

Handles::~Handles() {
  // Ends tickets before any lock ends: the next lock owner must find no write by a ticket in progress.
  for (Slot& slot : slots_) slot.file.tickets.end();
  budget_.give_back(open_);
}

int Handles::reserve() {
  if (open_ >= budget_.each()) return EMFILE;
  return budget_.take() ? 0 : ENFILE;
}

std::uint64_t Handles::add(OpenFile file) {
  if (free_.empty()) {
    slots_.emplace_back();
    free_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Slot& slot = slots_[index];
  slot.file = std::move(file);
  ++open_;
  return std::uint64_t{slot.generation} << 32 | index;
}

Handles::Slot* Handles::slot_of(std::uint64_t handle) {
  const std::uint64_t index = handle & UINT32_MAX;
  if (index >= slots_.size()) return nullptr;
  Slot& slot = slots_[index];
  const bool is_open = slot.file.backing != nullptr || slot.file.locks != nullptr;
  return is_open && slot.generation == handle >> 32 ? &slot : nullptr;
}

OpenFile* Handles::find(std::uint64_t handle) {
  Slot* const slot = slot_of(handle);
  return slot == nullptr || slot->file.backing == nullptr ? nullptr : &slot->file;
}

OpenFile* Handles::find_locks(std::uint64_t handle) {
  Slot* const slot = slot_of(handle);
  return slot == nullptr || slot->file.locks == nullptr ? nullptr : &slot->file;
}

int Handles::close(std::uint64_t handle) {
  Slot* const slot = slot_of(handle);
  if (slot == nullptr) return EBADF;
  slot->file.tickets.end();
  const int result = slot->file.backing != nullptr ? slot->file.backing->close() : 0;
  slot->file = {};
  // If the generation wraps around, the slot is given up: the handle could name another file.
  if (++slot->generation != 0) free_.push_back(static_cast<std::uint32_t>(handle & UINT32_MAX));
  budget_.give_back(1);
  --open_;
  // On Linux the descriptor is closed even after EINTR.
  return result == EINTR ? 0 : result;
}

}  // namespace wherry::file
