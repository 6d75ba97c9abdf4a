// SPDX-License-Identifier: Apache-2.0
#include "own_numbers.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace wherry::preload {
namespace {

constinit std::array<std::atomic<std::uint64_t>, kDescriptors / 64> own_numbers{};

constexpr std::uint64_t bit_of(unsigned number) { return std::uint64_t{1} << number % 64; }

/// Calls take(number) for each open descriptor of this process. Returns false if not for all.
template <typename Take>
bool each_open(Take take) noexcept {
  const int folder = ::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  struct Name {
    std::uint64_t inode;
    std::int64_t next;
    std::uint16_t length;
    std::uint8_t type;
    char name[1];
  };
  alignas(8) std::array<char, 4096> names;
  long got = 0;
  while ((got = ::syscall(SYS_getdents64, folder, names.data(), names.size())) > 0) {
    for (long at = 0; at < got;) {
      const auto* const one = reinterpret_cast<const Name*>(names.data() + at);
      int number = 0;
      for (const char* digit = one->name; *digit >= '0' && *digit <= '9'; digit++)
        number = 10 * number + (*digit - '0');
      if (one->name[0] != '.' && number != folder) take(static_cast<unsigned>(number));
      at += one->length;
    }
  }
  ::close(folder);
  return got == 0;
}

constexpr bool is_noted_here(unsigned number) { return number < kDescriptors; }

}  // namespace

OpenNumbers OpenNumbers::now() noexcept {
  OpenNumbers found;
  found.known_ = each_open([&](unsigned number) {
    if (is_noted_here(number))
      found.bits_[number / 64] |= bit_of(number);
    else
      found.others_++;
  });
  return found;
}

bool OpenNumbers::note_new_ones() const noexcept {
  unsigned others = 0;
  const bool all = each_open([&](unsigned number) {
    if (!is_noted_here(number))
      others++;
    else if ((bits_[number / 64] & bit_of(number)) == 0)
      own_numbers[number / 64].fetch_or(bit_of(number), std::memory_order_relaxed);
  });
  return all && others <= others_;
}

StandardNumbersTaken::StandardNumbersTaken() noexcept {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; number++) {
    if (::syscall(SYS_fcntl, number, F_GETFD) >= 0) continue;
    // The lowest free number.
    const long got = ::syscall(SYS_openat, AT_FDCWD, "/", O_PATH | O_CLOEXEC);
    if (got == number) {
      taken_ |= 1U << number;
    } else if (got >= 0) {
      ::syscall(SYS_close, got);
    }
  }
}

StandardNumbersTaken::~StandardNumbersTaken() {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; number++) {
    // Not if the program has put a file there meanwhile.
    if ((taken_ & 1U << number) != 0 && (::syscall(SYS_fcntl, number, F_GETFL) & O_PATH) != 0)
      ::syscall(SYS_close, number);
  }
}

bool take_own_number(int fd) noexcept {
  const auto number = static_cast<unsigned>(fd);
  if (number >= kDescriptors) return false;
  auto& bits = own_numbers[number / 64];
  if ((bits.load(std::memory_order_relaxed) & bit_of(number)) == 0) return false;
  return (bits.fetch_and(~bit_of(number), std::memory_order_relaxed) & bit_of(number)) != 0;
}

void forget_own_numbers() noexcept {
  // A look first: stores would cost a forked child its own pages.
  for (auto& bits : own_numbers) {
    if (bits.load(std::memory_order_relaxed) != 0) bits.store(0, std::memory_order_relaxed);
  }
}

}  // namespace wherry::preload
