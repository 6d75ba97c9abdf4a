// SPDX-License-Identifier: Apache-2.0
#include "file/mount/offered_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

namespace wherry::file::mount {
namespace {

/// Whether a process's descriptor is of memory. Others are not taken: the close of a file of this mount would wait for
/// this mount.
bool is_of_memory(pid_t process, int descriptor) {
  constexpr std::string_view kMemory = "/memfd:";
  std::array<char, kMemory.size()> target{};
  const std::string link = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(descriptor);
  const ssize_t bytes = ::readlink(link.c_str(), target.data(), target.size());
  return bytes == static_cast<ssize_t>(target.size()) && std::string_view(target.data(), target.size()) == kMemory;
}

/// Whether the memory can be mapped without a later SIGBUS.
bool is_sound(int memory, std::size_t bytes) {
  struct stat found{};
  const int seals = ::fcntl(memory, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && ::fstat(memory, &found) == 0 &&
         static_cast<std::uint64_t>(found.st_size) == bytes;
}

}  // namespace

OfferedMemory::OfferedMemory(UniqueFd memory, std::size_t bytes) : memory_(std::move(memory)), bytes_(bytes) {
  if (!memory_.valid() || !is_sound(memory_.get(), bytes)) return;
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
  if (mapped != MAP_FAILED) begin_ = mapped;
}

OfferedMemory::~OfferedMemory() {
  if (begin_ != nullptr) ::munmap(begin_, bytes_);
}

UniqueFd take_memory(pid_t process, int descriptor) {
  const UniqueFd open(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  if (!open.valid() || !is_of_memory(process, descriptor)) return {};
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_getfd, open.get(), descriptor, 0)));
}

pid_t process_of(pid_t thread) {
  std::ifstream status("/proc/" + std::to_string(thread) + "/status");
  for (std::string word; status >> word;) {
    pid_t process = 0;
    if (word == "Tgid:" && status >> process) return process;
  }
  return 0;
}

}  // namespace wherry::file::mount
