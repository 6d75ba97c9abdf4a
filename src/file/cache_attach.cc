// SPDX-License-Identifier: Apache-2.0
//
// How a process comes to the segment of its card, and is a client of it.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
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

/// Closed on every way out; errno stays. By calls in which no thread is cancelled, as the other one below.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::syscall(SYS_close, fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

constexpr int kOpenFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

int open_segment(const char* path) {
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, kOpenFlags | O_LARGEFILE, 0));
}

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
  std::snprintf(path.data(), path.size(), "/dev/shm/%.*s%u-%.*s-%u", static_cast<int>(kSegmentPrefix.size()),
                kSegmentPrefix.data(), static_cast<unsigned>(::geteuid()), static_cast<int>(job.size()), job.data(),
                static_cast<unsigned>(number));
  return true;
}

void* map_at_large_page(int fd, std::size_t bytes) noexcept {
  constexpr std::size_t kLarge = layout::kFileLargePage;
  // A guess costs one call, if the place is free: far below the libraries, where their mappings grow down to.
  constexpr std::uintptr_t kFarBelow = std::uintptr_t{1} << 37;
  const std::uintptr_t here = reinterpret_cast<std::uintptr_t>(&map_at_large_page) / kLarge * kLarge;
  if (here > kFarBelow + bytes) {
    auto* const guess = reinterpret_cast<void*>((here - kFarBelow - bytes) / kLarge * kLarge);  // NOLINT
    void* const place = ::mmap(guess, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (place == MAP_FAILED) return nullptr;
    if (reinterpret_cast<std::uintptr_t>(place) % kLarge == 0) return place;
    ::munmap(place, bytes);
  }
  void* const room = ::mmap(nullptr, bytes + kLarge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(room);
  const std::size_t before = (kLarge - reinterpret_cast<std::uintptr_t>(begin) % kLarge) % kLarge;
  void* const base = ::mmap(begin + before, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  const int error = errno;
  if (base == MAP_FAILED) {
    ::munmap(begin, bytes + kLarge);
  } else {
    if (before != 0) ::munmap(begin, before);
    const std::size_t end = before + (bytes + 4095) / 4096 * 4096;
    if (end < bytes + kLarge) ::munmap(begin + end, bytes + kLarge - end);
  }
  errno = error;
  return base == MAP_FAILED ? nullptr : base;
}

/// Only what was checked is used afterwards: the number of sets was read once.
Refusal map_segment(int fd, Segment& segment) noexcept {
  struct ::stat status{};
  if (::fstat(fd, &status) != 0) return {errno, "it cannot be looked at", "see the kernel's log"};
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & 077) != 0) return kNotOurs;
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (bytes < layout::file_segment_bytes(1)) return kDamaged;
  void* const base = map_at_large_page(fd, bytes);
  if (base == nullptr) {
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
  const Refusal refusal = attach_to(file.get(), path);
  if (!segment_) return refusal;
  std::memcpy(path_, path, std::strlen(path) + 1);
  attached_.store(true, std::memory_order_release);  // FILE-ATTACHED: all that attach has set up
  return refusal;
}

/// Without it this card goes without the others' counts.
void Cache::attach_revocations(const char* segment) noexcept {
  std::array<char, kPathBytes> path{};
  if (!revocations_path(segment, path)) return;
  const Descriptor file(open_segment(path.data()));
  if (file.get() >= 0) revocations_ = map_revocations(file.get());
}

Refusal Cache::attach_to(int fd, const char* path) noexcept {
  if (const Refusal refusal = map_segment(fd, segment_)) return refusal;
  if (revocations_ == nullptr) attach_revocations(path);
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

/// The card looks for what is new at each close of the segment's file. By calls in which no thread is
/// cancelled.
void Cache::tell_card() const noexcept {
  const int before = errno;
  const long file = ::syscall(SYS_openat, AT_FDCWD, path_, kOpenFlags, 0);
  if (file >= 0) ::syscall(SYS_close, file);
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

void Cache::count_filled() noexcept { count(counts_here().fills_served); }

void Cache::count_kernels(KernelReason reason) noexcept {
  layout::FileCounts& counts = counts_here();
  switch (reason) {
    case KernelReason::first_touch:
      return count(counts.kernels_first_touch);
    case KernelReason::changed:
      return count(counts.kernels_changed);
    case KernelReason::writer:
      return count(counts.kernels_writer);
    case KernelReason::end:
      return count(counts.kernels_end);
    case KernelReason::other:
      return count(counts.kernels_other);
  }
}

Cache::CardServer Cache::card_server() const noexcept {
  if (!attached()) return {};
  const layout::FileCacheHeader& header = segment_.header();
  // FILE-SERVER acquire: the secrets of this port
  const std::uint64_t server = header.server.load(std::memory_order_acquire);
  return {.port = server & UINT16_MAX,
          .process = static_cast<std::int64_t>(server >> layout::kFileServerShift),
          .token = header.server_token.load(std::memory_order_relaxed),
          .proof = header.server_proof.load(std::memory_order_relaxed)};
}

void Cache::announce(CardServer server) noexcept {
  if (!attached()) return;
  layout::FileCacheHeader& header = segment_.header();
  header.server_token.store(server.token, std::memory_order_relaxed);
  header.server_proof.store(server.proof, std::memory_order_relaxed);
  const auto process = static_cast<std::uint64_t>(server.process);
  header.server.store(server.port | process << layout::kFileServerShift, std::memory_order_release);  // FILE-SERVER
}

bool Cache::has_client(std::int64_t process) const noexcept {
  if (!attached() || process <= 0) return false;
  const std::size_t used = Segment::used(segment_.header().clients_used, layout::kFileMostClients);
  for (std::uint64_t number = 1; number <= used; ++number) {
    if (segment_.client(number).pid.load(std::memory_order_relaxed) == static_cast<std::uint64_t>(process)) return true;
  }
  return false;
}

Counts Cache::counts() const noexcept { return attached() ? counts_of(segment_, client()) : Counts{}; }

Counts counts_of(const Segment& segment, std::uint64_t client) noexcept {
  Counts sum;
  if (client == 0) return sum;
  for (const layout::FileCounts& shard : segment.client(client).counts) {
    const auto add = [](std::uint64_t& to, const Word& from) { to += from.load(std::memory_order_relaxed); };
    add(sum.hits, shard.hits);
    add(sum.hit_bytes, shard.hit_bytes);
    add(sum.misses, shard.misses);
    add(sum.fills, shard.fills);
    add(sum.lost_fills, shard.lost_fills);
    add(sum.changes, shard.changes);
    add(sum.drops, shard.drops);
    add(sum.drop_alls, shard.drop_alls);
    add(sum.fills_served, shard.fills_served);
    add(sum.fills_again, shard.fills_again);
    add(sum.kernels_first_touch, shard.kernels_first_touch);
    add(sum.kernels_changed, shard.kernels_changed);
    add(sum.kernels_writer, shard.kernels_writer);
    add(sum.kernels_end, shard.kernels_end);
    add(sum.kernels_other, shard.kernels_other);
  }
  return sum;
}

}  // namespace wherry::file
