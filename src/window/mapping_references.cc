// SPDX-License-Identifier: Apache-2.0
#include "window/mapping_references.hpp"

#include <iterator>

#include "base/fork_generation.hpp"

namespace wherry::window {

MappingReferences::MappingReferences(PeersPage& peers) : generation_(fork_generation()), peers_(&peers) {}

void MappingReferences::add(const Entry& entry) {
  const std::lock_guard lock(mutex_);
  ++mapped_[entry];
  store_mark(entry.index);
}

void MappingReferences::remove(const Entry& entry) {
  const std::lock_guard lock(mutex_);
  const auto counted = mapped_.find(entry);
  if (counted == mapped_.end() || --counted->second != 0) return;
  mapped_.erase(counted);
  if (fork_generation() == generation_) store_mark(entry.index);
}

void MappingReferences::close() {
  const std::lock_guard lock(mutex_);
  peers_ = nullptr;
}

/// Stores the mark of the latest sequence: a thread that has not noticed that its window is gone must not hide the mark
/// of the next window.
void MappingReferences::store_mark(std::size_t index) {
  if (peers_ == nullptr) return;
  const auto behind = mapped_.lower_bound({.index = index + 1, .sequence = 0});
  const bool some = behind != mapped_.begin() && std::prev(behind)->first.index == index;
  peers_->store_mark(index, some ? std::prev(behind)->first.sequence : 0);  // WINDOW-MARK
}

}  // namespace wherry::window
