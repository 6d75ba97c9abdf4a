// SPDX-License-Identifier: Apache-2.0
#include "file/in_place/in_place_reader.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/fork_generation.hpp"
#include "file/mapped/fault_signals.hpp"
#include "file/mapped/in_place.hpp"
#include "file/mapped/regions.hpp"

namespace wherry::file {
namespace {

using files::Path;
using mapped::Progress;

/// The process (fork_generation) whose tables of mappings and actions are valid.
constinit std::atomic<std::uint64_t> tables_of{0};
constexpr std::uint64_t kRepairing = ~std::uint64_t{0};

/// Repairs a forked child's copies of its parent's tables, which another thread may have been changing. False: another
/// thread of the child is repairing them.
bool has_tables() {
  const std::uint64_t process = fork_generation();
  std::uint64_t known = tables_of.load(std::memory_order_acquire);  // TABLES acquire: they are repaired
  if (known == process) return true;
  if (known == kRepairing || !tables_of.compare_exchange_strong(known, kRepairing, std::memory_order_relaxed)) {
    return false;
  }
  if (known != 0) {
    mapped::forget_regions_after_fork();
    mapped::repair_faults_after_fork();
  }
  tables_of.store(process, std::memory_order_release);  // TABLES release: they are repaired
  return true;
}

/// Whether this thread takes faults. Asks for its mask again once the known one is older than kSizeCounts.
bool takes_faults_until(std::uint64_t size_counts_until) {
  [[gnu::tls_model("initial-exec")]] static thread_local std::uint64_t known_until = 0;
  if (size_counts_until > known_until) {
    if (const std::uint64_t now = mapped::coarse_clock(); now >= known_until) {
      known_until = now + mapped::kSizeCounts;
      mapped::forget_signal_mask();
    }
  }
  return mapped::takes_faults();
}

constexpr std::uint64_t kAlways = ~std::uint64_t{0};

/// A try-lock. A lock held by a thread of another process, which is the parent, counts as free.
class ProcessLock {
 public:
  explicit ProcessLock(std::atomic<std::uint64_t>& holder) : holder_(holder) {
    const std::uint64_t process = fork_generation();
    std::uint64_t now = holder.load(std::memory_order_relaxed);
    // SETUP-LOCK acquire: what the last holder changed
    held_ = now != process && holder.compare_exchange_strong(now, process, std::memory_order_acquire);
  }
  ~ProcessLock() {
    if (held_) holder_.store(0, std::memory_order_release);  // SETUP-LOCK release: what this holder changed
  }
  ProcessLock(const ProcessLock&) = delete;
  ProcessLock& operator=(const ProcessLock&) = delete;
  explicit operator bool() const { return held_; }

 private:
  std::atomic<std::uint64_t>& holder_;
  bool held_;
};

}  // namespace

struct InPlaceReader::Reading {
  InPlaceReader& reader;
  bool eager;

  [[nodiscard]] mapped::MappedFile& file() const { return reader.file_; }
  [[nodiscard]] std::atomic<std::uint64_t>& progress() const { return reader.progress_; }
  [[nodiscard]] bool is_eager() const { return eager; }
  void map_again() const {
    if (mapped::is_time_to_map_again(reader.progress_)) reader.set_up();
  }
  [[nodiscard]] bool refresh() const { return reader.refresh(); }
};

InPlaceReader::~InPlaceReader() {
  if (process_.load(std::memory_order_relaxed) == fork_generation()) {
    file_.drop(owner());
  }
  for (const View* view = views_.load(std::memory_order_relaxed); view != nullptr;) {
    ::munmap(const_cast<std::byte*>(view->bytes.data()), view->bytes.size());
    delete std::exchange(view, view->before);
  }
}

void InPlaceReader::revoke(std::uintptr_t self, std::uint32_t region) noexcept {
  auto& reader = *reinterpret_cast<InPlaceReader*>(self);  // NOLINT(performance-no-int-to-ptr): a key of the regions
  if (!reader.file_.has_region(region)) return;
  reader.begin_generation();
  reader.file_.forget();
}

/// Call before the mapping goes: copies made meanwhile are discarded.
void InPlaceReader::begin_generation() noexcept {
  generation_.fetch_add(1, std::memory_order_acq_rel);  // GENERATION release: the mapping of that generation
}

void InPlaceReader::drop() noexcept {
  begin_generation();
  file_.drop(owner());
}

bool InPlaceReader::read(std::span<const iovec> to, std::uint64_t bytes, std::uint64_t offset, Path path) noexcept {
  if (!is_ready(offset, bytes, path)) return false;
  // GENERATION acquire: the mapping of that generation
  const std::uint32_t generation = generation_.load(std::memory_order_acquire);
  // Asking for the size makes a guarded copy, too.
  Reading reading{*this, path == Path::cache};
  if (!takes_faults_until(file_.deadline()) || !mapped::is_in_place(reading, offset, bytes)) return false;
  for (const iovec& part : to) {
    if (part.iov_len != 0 && !file_.copy(part.iov_base, offset, part.iov_len)) return false;
    offset += part.iov_len;
  }
  std::atomic_thread_fence(std::memory_order_acquire);  // GENERATION acquire: if another file's byte was copied
  return generation_.load(std::memory_order_relaxed) == generation;
}

/// Whether the file is mapped in this process. If not, adds the cost of this read, and may map the file.
bool InPlaceReader::is_ready(std::uint64_t offset, std::uint64_t bytes, Path path) noexcept {
  const State state = state_.load(std::memory_order_acquire);  // READER acquire: the process
  if (state == State::mapped) [[likely]] {
    if (process_.load(std::memory_order_relaxed) == fork_generation()) [[likely]]
      return true;
    leave_parents_mapping();
    return false;
  }
  if (state == State::never) return false;
  const std::uint64_t spent = spent_.load(std::memory_order_relaxed);
  const auto progress = Progress::of(progress_.load(std::memory_order_relaxed));
  if (mapped::is_time_to_map(spent, offset, bytes, progress, path == Path::cache)) {
    set_up();
    if (state_.load(std::memory_order_acquire) == State::mapped) return true;  // READER acquire: the process
  }
  spent_.store(static_cast<std::uint32_t>(std::min<std::uint64_t>(spent + mapped::cost_of_read(bytes), INT32_MAX)),
               std::memory_order_relaxed);
  return false;
}

/// Maps the file, or records that it never will be mapped.
void InPlaceReader::set_up() noexcept {
  const ProcessLock lock(setup_);
  if (!lock || file_.is_mapped()) return;
  const int error = errno;
  struct ::stat status{};
  bool possible = ::fstat(fd_, &status) == 0 && mapped::can_be_mapped(fd_, status);
  const bool now =
      possible && has_tables() && mapped::catch_faults(::sigaction) && file_.map(fd_, status, owner(), revoke);
  possible = possible && !file_.is_refused();
  auto progress = Progress::of(progress_.load(std::memory_order_relaxed));
  progress.refused = !now;
  progress_.store(progress.word(), std::memory_order_relaxed);
  spent_.store(0, std::memory_order_relaxed);
  if (now) process_.store(fork_generation(), std::memory_order_relaxed);
  if (state_.load(std::memory_order_relaxed) != State::mapped || !possible) {
    // READER release: the process
    state_.store(now ? State::mapped : possible ? State::counting : State::never, std::memory_order_release);
  }
  errno = error;
}

/// Asks for the size. False: the kernel must read.
bool InPlaceReader::refresh() noexcept {
  const ProcessLock lock(setup_);
  if (!lock || !takes_faults_until(kAlways)) return false;
  if (!mapped::are_faults_still_caught()) {
    give_up();
    return false;
  }
  switch (file_.refresh(fd_, file_.truncations())) {
    case mapped::MappedFile::Look::usable:
      return true;
    case mapped::MappedFile::Look::must_map_again:
      drop();
      return false;
    case mapped::MappedFile::Look::other_file:
      give_up();
      return false;
  }
  return false;
}

/// From now on the kernel reads this file.
void InPlaceReader::give_up() noexcept {
  state_.store(State::never, std::memory_order_relaxed);
  drop();
}

/// For a forked child, which does not inherit its parent's mapping.
void InPlaceReader::leave_parents_mapping() noexcept {
  const ProcessLock lock(setup_);
  if (!lock || process_.load(std::memory_order_relaxed) == fork_generation()) return;
  begin_generation();
  file_.forget();
  state_.store(State::counting, std::memory_order_relaxed);
}

/// Maps `bytes`, unless another thread was faster. Null: the kernel refuses. Takes no lock, since a forked child could
/// find it taken.
const InPlaceReader::View* InPlaceReader::add_view(const View* before, std::size_t bytes) {
  auto made = std::make_unique<View>(View{.bytes = {}, .before = before});
  void* const begin = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd_, 0);
  if (begin == MAP_FAILED) return nullptr;
  made->bytes = {static_cast<const std::byte*>(begin), bytes};
  // VIEW release, VIEW acquire: its fields
  if (views_.compare_exchange_strong(before, made.get(), std::memory_order_acq_rel)) return made.release();
  ::munmap(begin, bytes);
  return before;
}

std::span<const std::byte> InPlaceReader::view(std::uint64_t offset, std::size_t length) {
  struct ::stat status{};
  if (::fstat(fd_, &status) != 0 || !mapped::can_be_mapped(fd_, status)) return {};
  // A program cannot tell when such a view is out of date.
  if (mapped::file_system_of_data(fd_) == mapped::kDelegatingMount) return {};
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (offset >= size || length == 0) return {};
  const auto shown = static_cast<std::size_t>(std::min<std::uint64_t>(length, size - offset));
  const View* view = views_.load(std::memory_order_acquire);  // VIEW acquire: its fields
  while (view == nullptr || view->bytes.size() < offset + shown) {
    view = add_view(view, static_cast<std::size_t>(mapped::reach_for(size)));
    if (view == nullptr) return {};
  }
  return view->bytes.subspan(static_cast<std::size_t>(offset), shown);
}

}  // namespace wherry::file
