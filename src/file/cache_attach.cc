// SPDX-License-Identifier: Apache-2.0
//
// How a process comes to the segment of its card, and is a client of it.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "arch/barrier.hpp"
#include "base/name.hpp"
#include "base/wiped_on_fork.hpp"
#include "file/cache.hpp"

namespace wherry::file {
namespace {

constexpr Refusal kNoCard{ENOENT, "no card was started",
                          "start the program by wherry run --files, or a card by wherry card"};
constexpr Refusal kNotOurs{EACCES, "the file is not this user's alone", "remove it, or use another WHERRY_JOB"};
constexpr Refusal kDamaged{EINVAL, "the file is damaged, or of another version of Wherry",
                           "end all programs that use it, remove it, and start again"};
constexpr Refusal kOtherPids{EXDEV, "its processes have a pid namespace of their own",
                             "give this container a /dev/shm or a WHERRY_JOB of its own"};
constexpr Refusal kFull{EUSERS, "1024 processes use it already", "give some of them another WHERRY_NODE"};
constexpr Refusal kEnding{EAGAIN, "its card is ending", "try again"};

/// Closed on every way out; errno stays.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

int open_segment(const char* path) { return ::open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY); }

std::string_view variable(const char* name, std::string_view otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

}  // namespace

std::uint64_t pid_namespace() noexcept {
  struct ::stat status{};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

bool segment_path(std::span<char, kPathBytes> path) noexcept {
  const std::string_view job = variable("WHERRY_JOB", "default");
  const std::string_view node = variable("WHERRY_NODE", "0");
  std::uint16_t number = 0;
  const auto [end, error] = std::from_chars(node.data(), node.data() + node.size(), number);
  if (!is_job_name(job) || error != std::errc{} || end != node.data() + node.size()) return false;
  std::snprintf(path.data(), path.size(), "/dev/shm/wherry-files-%u-%.*s-%u", static_cast<unsigned>(::geteuid()),
                static_cast<int>(job.size()), job.data(), static_cast<unsigned>(number));
  return true;
}

/// Only what was checked is used afterwards: the number of sets was read once.
Refusal map_segment(int fd, Segment& segment) noexcept {
  struct ::stat status{};
  if (::fstat(fd, &status) != 0) return {errno, "it cannot be looked at", "see the kernel's log"};
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & 077) != 0) return kNotOurs;
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (bytes < layout::file_segment_bytes(1)) return kDamaged;
  void* const base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) {
    return {errno, "it cannot be mapped", "give the process more address space (ulimit -v), or start a smaller cache"};
  }
  const auto* const header = static_cast<const volatile layout::FileCacheHeader*>(base);
  const std::uint64_t sets = header->sets;
  const bool right = header->magic == layout::kFileCacheMagic && header->version == layout::kFileCacheVersion &&
                     std::has_single_bit(sets) && sets <= layout::kFileMostSets &&
                     layout::file_segment_bytes(sets) == bytes;
  const bool same_pids = header->pid_namespace == pid_namespace();
  if (right && same_pids) {
    segment = Segment(static_cast<std::byte*>(base), sets);
    return {};
  }
  ::munmap(base, bytes);
  return right ? kOtherPids : kDamaged;
}

Refusal Cache::attach() noexcept {
  char path[kPathBytes];
  if (!segment_path(path)) {
    return {EINVAL, "WHERRY_JOB or WHERRY_NODE is not valid", "wherry config says what is allowed"};
  }
  return attach(path);
}

Refusal Cache::attach(const char* path) noexcept {
  if (attached()) return {};
  if (std::strlen(path) >= sizeof path_) return {ENAMETOOLONG, "the path is too long", "use a shorter one"};
  const Descriptor file(open_segment(path));
  if (file.get() < 0) {
    if (errno == ENOENT) return kNoCard;
    if (errno == EACCES || errno == ELOOP) return kNotOurs;
    return {errno, "it cannot be opened", "see whether /dev/shm is mounted, and descriptors are left (ulimit -n)"};
  }
  const Refusal refusal = attach_to(file.get());
  if (!segment_) return refusal;
  std::memcpy(path_, path, std::strlen(path) + 1);
  attached_.store(true, std::memory_order_release);  // FILE-ATTACHED: all that attach has set up
  return refusal;
}

Refusal Cache::attach_to(int fd) noexcept {
  if (const Refusal refusal = map_segment(fd, segment_)) return refusal;
  if (self_ == nullptr) self_ = make_word_wiped_on_fork();
  if (self_ == nullptr) self_ = &own_;
  const Refusal refusal = register_client();
  if (refusal.error == EAGAIN) {
    ::munmap(segment_.base(), segment_.bytes());
    segment_ = {};
  }
  return refusal;
}

Refusal Cache::register_client() noexcept {
  const auto pid = static_cast<std::uint64_t>(::getpid());
  for (std::uint64_t number = 1; number <= layout::kFileMostClients; ++number) {
    Word& place = segment_.client(number).pid;
    std::uint64_t nobody = 0;
    if (place.load(std::memory_order_relaxed) != 0 ||
        // FILE-CLIENT acquire: what the card did for the last owner
        !place.compare_exchange_strong(nobody, pid, std::memory_order_acquire, std::memory_order_relaxed)) {
      continue;
    }
    raise(segment_.header().clients_used, number);
    // FILE-ENDED: this client is seen, or the end is.
    arch::publish_then_look();
    const bool ended = segment_.header().ended.load(std::memory_order_relaxed) != 0;
    std::uint64_t unset = 0;
    // Another thread of a forked child may be faster.
    if (ended || !self_->compare_exchange_strong(unset, number, std::memory_order_relaxed)) {
      place.store(0, std::memory_order_release);  // FILE-CLIENT: nothing was done
    }
    return ended ? kEnding : Refusal{};
  }
  return kFull;
}

std::uint64_t Cache::registered() noexcept {
  if (const std::uint64_t number = client(); number != 0) [[likely]]
    return number;
  if (register_client()) return 0;
  tell_card();
  return client();
}

/// The card looks for new clients whenever somebody closes the segment's file.
void Cache::tell_card() const noexcept {
  const int before = errno;
  {
    const Descriptor file(open_segment(path_));
  }
  errno = before;
}

Refusal Cache::after_fork() noexcept {
  if (!attached()) return {};
  self_->store(0, std::memory_order_relaxed);
  const Refusal refusal = register_client();
  if (!refusal) tell_card();
  return refusal;
}

void Cache::detach() noexcept {
  if (!attached()) return;
  attached_.store(false, std::memory_order_relaxed);
  const std::uint64_t number = self_->exchange(0, std::memory_order_relaxed);
  if (number != 0) repair(segment_, number, false);
  tell_card();
}

layout::FileCounts& Cache::counts_here() const noexcept {
  const std::uint64_t number = client();
  if (number == 0) [[unlikely]]
    return uncounted_;
  // Threads' own memory lies pages apart.
  const auto thread = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
  return segment_.client(number).counts[(thread >> 12 ^ thread >> 16) % layout::kFileCountShards];
}

Counts Cache::counts() const noexcept {
  Counts sum;
  const std::uint64_t number = attached() ? client() : 0;
  if (number == 0) return sum;
  for (const layout::FileCounts& shard : segment_.client(number).counts) {
    const auto add = [](std::uint64_t& to, const Word& from) { to += from.load(std::memory_order_relaxed); };
    add(sum.hits, shard.hits);
    add(sum.hit_bytes, shard.hit_bytes);
    add(sum.misses, shard.misses);
    add(sum.fills, shard.fills);
    add(sum.lost_fills, shard.lost_fills);
    add(sum.changes, shard.changes);
    add(sum.drops, shard.drops);
    add(sum.drop_alls, shard.drop_alls);
  }
  return sum;
}

}  // namespace wherry::file
