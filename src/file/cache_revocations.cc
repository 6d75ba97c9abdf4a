// SPDX-License-Identifier: Apache-2.0
//
// What other cards of this kernel changed. The count of a file is read before its blocks are dropped, and stored beside
// it afterwards: what is reachable was read from the kernel after every change that the stored count knows of. So a
// change that is counted before its call returns is seen by every read that begins later, in any card.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "file/cache.hpp"

namespace wherry::file {
namespace {

using layout::kFileRevocationCounts;
using layout::kFileSeenShift;

std::uint64_t index_of(const Key& key) { return mixed(key.device, key.inode) % kFileRevocationCounts; }
std::uint64_t seen_of(std::uint64_t count, std::uint64_t index) { return count << kFileSeenShift | index; }

}  // namespace

bool revocations_path(std::string_view segment, std::span<char, kPathBytes> path) noexcept {
  const std::size_t directory = segment.rfind('/') + 1;
  std::string_view user = segment;
  user.remove_prefix(directory);
  if (directory == 0 || !user.starts_with(kSegmentPrefix)) return false;
  user.remove_prefix(kSegmentPrefix.size());
  user.remove_suffix(user.size() - std::min(user.find('-'), user.size()));
  segment.remove_suffix(segment.size() - directory);
  if (segment.size() + kRevocationsPrefix.size() + user.size() >= path.size()) return false;
  char* end = path.data();
  for (const std::string_view part : {segment, kRevocationsPrefix, user}) end = std::ranges::copy(part, end).out;
  *end = '\0';
  return true;
}

layout::FileRevocations* map_revocations(int fd) noexcept {
  using layout::FileRevocations;
  struct ::stat status{};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::geteuid() ||
      (status.st_mode & 077) != 0 || status.st_size != static_cast<off_t>(sizeof(FileRevocations))) {
    return nullptr;
  }
  void* const base = ::mmap(nullptr, sizeof(FileRevocations), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return nullptr;
  auto* const table = static_cast<FileRevocations*>(base);
  if (table->magic == layout::kFileRevocationsMagic && table->version == layout::kFileRevocationsVersion) return table;
  ::munmap(base, sizeof(FileRevocations));
  return nullptr;
}

std::uint64_t Cache::seen_now(const Key& key) const noexcept {
  if (revocations_ == nullptr) return 0;
  const std::uint64_t index = index_of(key);
  return seen_of(revocations_->count[index].load(std::memory_order_acquire), index);  // FILE-REVOKE: the change
}

/// Whether no other card has changed the file since it was found current last.
bool Cache::is_current(const File& file) const noexcept {
  if (revocations_ == nullptr || file.slot >= layout::kFileSlots) return true;
  // FILE-SEEN acquire: the epoch that followed. The name of the file is to be asked for after this.
  const std::uint64_t seen = segment_.file(file.slot).seen.load(std::memory_order_acquire);
  const std::uint64_t index = seen % (std::uint64_t{1} << kFileSeenShift) % kFileRevocationCounts;
  // FILE-REVOKE acquire: the change that was counted
  return seen_of(revocations_->count[index].load(std::memory_order_acquire), index) == seen;
}

/// A change was counted, or the file has no count yet: its blocks are dropped. False: it may be a change by this card,
/// which is about to say so; until then the file is the kernel's.
bool Cache::make_current(const File& file) noexcept {
  layout::FileSlot& slot = segment_.file(file.slot);
  std::uint64_t before = slot.seen.load(std::memory_order_acquire);  // FILE-SEEN: whose it is
  const Key key(slot.device.load(std::memory_order_relaxed), slot.inode.load(std::memory_order_relaxed));
  const std::uint64_t seen = seen_now(key);
  if (is_changing(key, 0, UINT64_MAX) || !drop_epoch(file, key)) return false;
  // FILE-SEEN: the new epoch. Not if the place was given to another file meanwhile.
  return slot.seen.compare_exchange_strong(before, seen, std::memory_order_release, std::memory_order_relaxed);
}

/// For the other cards. What this card has cached of the file stays: its own changes are noted.
void Cache::revoke_elsewhere(const Key& key) noexcept {
  if (revocations_ == nullptr) return;
  const std::uint64_t index = index_of(key);
  // FILE-REVOKE release: the kernel has made the change
  const std::uint64_t before = revocations_->count[index].fetch_add(1, std::memory_order_acq_rel);
  const std::uint32_t group = group_of(key);
  for (std::uint32_t i = group; i < group + layout::kFileNeighbours; ++i) {
    layout::FileSlot& slot = segment_.file(i);
    if (slot.inode.load(std::memory_order_relaxed) != key.inode) continue;
    std::uint64_t seen = seen_of(before, index);
    // FILE-SEEN: the epoch is as it was
    slot.seen.compare_exchange_strong(seen, seen_of(before + 1, index), std::memory_order_release,
                                      std::memory_order_relaxed);
  }
}

}  // namespace wherry::file
