// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/file/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "bench/systems/file/content.hpp"

namespace wherry::bench::file {
namespace {

constexpr std::string_view kPrefix = "wherry-bench-file-";
constexpr std::size_t kPiece = std::size_t{1} << 20;
/// For so long after a change its time stamp proves nothing: two ticks of a kernel that has 100 in a second, and more.
constexpr std::chrono::milliseconds kSettled{30};
/// Read ahead by others, or not yet let go: that many pages of a hundred do not count.
constexpr std::size_t kPercentKept = 5;

void check(bool ok, const std::string& what) {
  if (!ok) throw std::system_error(errno, std::system_category(), what);
}

UniqueFd open_file(const std::string& path, int flags) {
  UniqueFd file(::open(path.c_str(), flags | O_CLOEXEC, 0600));
  check(file.valid(), "open " + path);
  return file;
}

template <class Work>
void each(const Job& job, int flags, Work work) {
  for (std::uint32_t i = 0; i < job.processes; ++i) {
    const std::string path = path_of(job, i);
    const UniqueFd file = open_file(path, flags);
    work(file.get(), i, path);
  }
}

void make(const Job& job, std::uint32_t process) {
  const std::string path = path_of(job, process);
  const UniqueFd file = open_file(path, O_WRONLY | O_CREAT);
  std::vector<std::uint64_t> words(std::min<std::uint64_t>(kPiece, job.bytes) / sizeof(std::uint64_t));
  for (std::uint64_t offset = 0; offset < job.bytes;) {
    const std::size_t length = std::min<std::uint64_t>(words.size() * sizeof(std::uint64_t), job.bytes - offset);
    fill(std::span(words).first(length / sizeof(std::uint64_t)), salt_of(job.salt, process), offset);
    const ssize_t written = ::pwrite(file.get(), words.data(), length, static_cast<off_t>(offset));
    check(written > 0 && written % sizeof(std::uint64_t) == 0, "write " + path);
    offset += static_cast<std::uint64_t>(written);
  }
  check(::fsync(file.get()) == 0, "fsync " + path);
}

/// The share of a file's pages that the kernel has, in per cent.
std::size_t percent_kept(int file, std::uint64_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  check(memory != MAP_FAILED, "mmap");
  std::vector<unsigned char> pages((bytes + page - 1) / page);
  const int failed = ::mincore(memory, bytes, pages.data());
  ::munmap(memory, bytes);
  check(failed == 0, "mincore");
  const auto kept = std::count_if(pages.begin(), pages.end(), [](unsigned char one) { return (one & 1U) != 0; });
  return 100 * static_cast<std::size_t>(kept) / pages.size();
}

/// Folders of processes that were killed.
void remove_orphans(const std::filesystem::path& above) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(above, ignored)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kPrefix)) continue;
    const pid_t owner = std::atoi(name.c_str() + kPrefix.size());
    if (owner > 0 && ::kill(owner, 0) != 0 && errno == ESRCH) std::filesystem::remove_all(entry.path(), ignored);
  }
}

}  // namespace

std::string path_of(const Job& job, std::uint32_t process) { return fmt::format("{}-{}", job.files, process); }

Files::Files(const std::filesystem::path& above) {
  remove_orphans(above);
  std::string name = above / fmt::format("{}{}-XXXXXX", kPrefix, ::getpid());
  check(::mkdtemp(name.data()) != nullptr, "make a folder " + name);
  folder_ = std::filesystem::canonical(name);
}

Files::~Files() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void Files::prepare(const Job& job) const {
  bool made = false;
  for (std::uint32_t i = 0; i < job.processes; ++i) {
    std::error_code none;
    if (std::filesystem::file_size(path_of(job, i), none) == job.bytes && !none) continue;
    make(job, i);
    made = true;
  }
  if (made) std::this_thread::sleep_for(kSettled);
}

void Files::touch(const Job& job) {
  each(job, O_RDONLY, [](int file, std::uint32_t, const std::string& path) {
    check(::futimens(file, nullptr) == 0, "touch " + path);
  });
  std::this_thread::sleep_for(kSettled);
}

void Files::evict(const Job& job) {
  each(job, O_RDONLY, [&job](int file, std::uint32_t, const std::string& path) {
    check(::fsync(file) == 0, "fsync " + path);
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    if (percent_kept(file, job.bytes) > kPercentKept) {
      throw std::runtime_error("the kernel keeps the pages of " + path + ": name a --directory on a disk");
    }
  });
}

void Files::flush(const Job& job) {
  each(job, O_RDONLY,
       [](int file, std::uint32_t, const std::string& path) { check(::fsync(file) == 0, "fsync " + path); });
}

void Files::compare(const Job& job) {
  std::vector<std::uint64_t> words(job.bytes / sizeof(std::uint64_t));
  each(job, O_RDONLY, [&](int file, std::uint32_t process, const std::string& path) {
    std::uint64_t done = 0;
    while (done < job.bytes) {
      auto* const to = reinterpret_cast<std::byte*>(words.data()) + done;
      const ssize_t got = ::pread(file, to, job.bytes - done, static_cast<off_t>(done));
      check(got >= 0, "read " + path);
      if (got == 0) throw std::runtime_error(fmt::format("{} has {} bytes instead of {}", path, done, job.bytes));
      done += static_cast<std::uint64_t>(got);
    }
    const std::uint64_t wrong = first_difference(words, salt_of(job.salt, process), 0);
    if (wrong != UINT64_MAX) throw std::runtime_error(fmt::format("{} has not what was written at {}", path, wrong));
  });
}

}  // namespace wherry::bench::file
