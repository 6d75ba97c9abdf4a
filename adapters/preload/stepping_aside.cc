// SPDX-License-Identifier: Apache-2.0
#include "stepping_aside.hpp"

#include <atomic>
#include <cerrno>

#include "descriptors.hpp"
#include "file/mapped/fault_signals.hpp"
#include "file/mapped/regions.hpp"
#include "sharing.hpp"
#include "vfork.hpp"
#include "write_rings.hpp"

namespace wherry::preload {
namespace {

constinit std::atomic<bool> aside{false};
constinit std::atomic<bool> filtered{false};

}  // namespace

void step_aside() noexcept {
  if (in_vfork_child() || aside.load(std::memory_order_relaxed)) return;
  const int error = errno;
  share_all_for_good();
  file::mapped::release_faults();
  aside.store(true, std::memory_order_relaxed);
  errno = error;
}

// The child of a vfork runs in its parent's memory, so its filter is noted for the thread that called vfork, until the
// child is gone.

FilterBegins::FilterBegins() noexcept : before_(is_filtered()) {
  step_aside();
  if (in_vfork_child()) {
    detail::vfork_child_is_filtered = true;
  } else {
    filtered.store(true, std::memory_order_relaxed);
  }
}

long FilterBegins::ended(long result) const noexcept {
  if (result >= 0 || before_) return result;
  if (in_vfork_child()) {
    detail::vfork_child_is_filtered = false;
  } else {
    filtered.store(false, std::memory_order_relaxed);
  }
  return result;
}

bool is_filtered() noexcept {
  return filtered.load(std::memory_order_relaxed) || (in_vfork_child() && detail::vfork_child_is_filtered);
}

void unmap_for_good() noexcept {
  const int error = errno;
  file::mapped::map_no_more();
  give_up_all_rings();
  drop_all_mappings();
  errno = error;
}

}  // namespace wherry::preload
