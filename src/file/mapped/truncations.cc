// SPDX-License-Identifier: Apache-2.0
#include "file/mapped/truncations.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "file/mapped/guarded_copy.hpp"

namespace wherry::file::mapped {
namespace {

using Page = layout::TruncationPage;

constinit Page own_page{};
constinit std::atomic<Page*> page{nullptr};

/// Maps the shared page, and creates its file if needed. Null: that failed, or the file belongs to another user.
Page* map_page() {
  std::array<char, 64> path{"/dev/shm/wherry-truncations-"};
  *std::to_chars(path.data() + std::strlen(path.data()), std::prev(path.end()), ::geteuid()).ptr = '\0';
  const int fd = ::open(path.data(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
  if (fd < 0) return nullptr;
  struct stat status{};
  bool usable = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid();
  // Allocates the page: with a full /dev/shm the first count would raise SIGBUS.
  const bool allocated = usable && status.st_size >= static_cast<off_t>(sizeof(Page)) && status.st_blocks > 0;
  usable = usable && (allocated || ::posix_fallocate(fd, 0, sizeof(Page)) == 0);
  void* const place = usable ? ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  ::close(fd);
  return place == MAP_FAILED ? nullptr : static_cast<Page*>(place);
}

Page& shared_page() {
  Page* known = page.load(std::memory_order_acquire);  // PAGE acquire: it is mapped
  if (known != nullptr) return *known;
  const int error = errno;
  // A function that is noexcept must not be cancelled, and open and close are cancellation points.
  int cancel = PTHREAD_CANCEL_ENABLE;
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
  Page* const mapped = map_page();
  ::pthread_setcancelstate(cancel, nullptr);
  errno = error;
  Page* const mine = mapped == nullptr ? &own_page : mapped;
  // PAGE release: it is mapped. Another thread may have been faster.
  if (page.compare_exchange_strong(known, mine, std::memory_order_acq_rel)) return *mine;
  if (mapped != nullptr) ::munmap(mapped, sizeof(Page));
  return *known;
}

TruncationCounter& counter_of(dev_t device, ino_t inode) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;
  const std::uint64_t hash = (std::uint64_t{device} * kGolden ^ std::uint64_t{inode}) * kGolden;
  return shared_page().counters[(hash >> 32) % layout::kTruncationCounters];
}

}  // namespace

void note_truncation(dev_t device, ino_t inode) noexcept { count_in(counter_of(device, inode)); }

void note_any_truncation() noexcept {
  for (TruncationCounter& counter : shared_page().counters) count_in(counter);
}

void note_truncation(int fd) noexcept {
  const int error = errno;
  struct stat status{};
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) note_truncation(status.st_dev, status.st_ino);
  errno = error;
}

int set_size(int fd, std::uint64_t size) noexcept {
  if (::ftruncate(fd, static_cast<off_t>(size)) != 0) return errno;
  note_truncation(fd);
  return 0;
}

const TruncationCounter& truncation_counter(dev_t device, ino_t inode) noexcept { return counter_of(device, inode); }

void count_in(TruncationCounter& counter) noexcept {
  static_assert(sizeof(counter) == sizeof(std::uint32_t));
  const int error = errno;
  std::atomic_thread_fence(std::memory_order_release);  // TRUNCATED release: the truncation
  // Adds one, and wakes the waiters of the counter, of which there are none.
  (void)::syscall(SYS_futex, &counter, FUTEX_WAKE_OP, 0, nullptr, &counter,
                  FUTEX_OP(FUTEX_OP_ADD, 1, FUTEX_OP_CMP_LT, 0));
  errno = error;
}

bool read_counter(const TruncationCounter& counter, std::uint32_t& value) noexcept {
  return copy_or_fault(&value, &counter, sizeof value);
}

}  // namespace wherry::file::mapped
