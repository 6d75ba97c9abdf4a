// SPDX-License-Identifier: Apache-2.0
//
// files_versions FILE WRITES COMMAND...: writes versions of blocks in several ways, without a pause, while
// "COMMAND this-program --reader ..." reads them by several threads. A version that was published before a read began
// must be found by it, or a later one. This program is to be started without Wherry. Prints how many reads the kernel
// has not seen. Exit status 1: a read was older.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/files/seen.hpp"
#include "tests/files/truth.hpp"

namespace {

constexpr std::size_t kBlock = 4096;
constexpr std::size_t kBlocks = 64;
constexpr unsigned kThreads = 3;
/// Of one thread, before writes count: the path `auto` maps a file after some thousand reads by one descriptor.
constexpr std::uint64_t kReadsBefore = 20'000;
using Word = std::uint64_t;
using Block = std::array<Word, kBlock / sizeof(Word)>;

struct Board {
  std::array<std::atomic<Word>, kBlocks> published{};  ///< 0: the block may be missing
  std::atomic<Word> shortened{0};                      ///< raised before the last block goes, after it may be missing
  std::atomic<bool> reads{false};
  std::atomic<bool> stop{false};
};

Board& map_board(int descriptor) {
  void* const shared = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  want(shared != MAP_FAILED, "mmap");
  return *static_cast<Board*>(shared);
}

off_t place_of(std::size_t block) { return static_cast<off_t>(block * kBlock); }

class Writer {
 public:
  Writer(Board& board, const char* path) : board_(board) {
    fd_ = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    direct_ = open(path, O_WRONLY | O_DIRECT | O_CLOEXEC);
    donor_ = open((std::string(path) + ".donor").c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    want(fd_ >= 0 && donor_ >= 0, path);
    for (std::size_t block = 0; block < kBlocks; block++) write_block(block);
    mapping_ = static_cast<char*>(mmap(nullptr, kBlocks * kBlock, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0));
    want(mapping_ != MAP_FAILED, "mmap");
  }

  void one(std::mt19937_64& random) {
    const std::size_t block = random() % kBlocks;
    switch (random() % 6) {
      case 0:
        next_version();
        std::memcpy(mapping_ + place_of(block), &bytes_, kBlock);
        return publish(block);
      case 1:
        if (direct_ < 0) return;
        next_version();
        want(pwrite(direct_, &bytes_, kBlock, place_of(block)) == kBlock, "pwrite of O_DIRECT");
        return publish(block);
      case 2:
        return copy(block);
      case 3:
        return shorten();
      default:
        return write_block(block);
    }
  }

 private:
  void next_version() {
    version_++;
    bytes_.fill(version_);
  }
  void publish(std::size_t block) { board_.published[block].store(version_); }
  void write_block(std::size_t block) {
    next_version();
    want(pwrite(fd_, &bytes_, kBlock, place_of(block)) == kBlock, "pwrite");
    publish(block);
  }
  /// The file system may share the block, or copy it in the kernel.
  void copy(std::size_t block) {
    next_version();
    off64_t from = 0;
    off64_t to = place_of(block);
    want(pwrite(donor_, &bytes_, kBlock, 0) == kBlock, "pwrite");
    const file_clone_range range{
        .src_fd = donor_, .src_offset = 0, .src_length = kBlock, .dest_offset = static_cast<std::uint64_t>(to)};
    if (version_ % 2 == 0 || ioctl(fd_, FICLONERANGE, &range) != 0) {
      want(copy_file_range(donor_, &from, fd_, &to, kBlock, 0) == kBlock, "copy_file_range");
    }
    publish(block);
  }
  /// The last block goes, and comes again.
  void shorten() {
    board_.published[kBlocks - 1].store(0);
    board_.shortened.fetch_add(1);
    want(ftruncate(fd_, place_of(kBlocks - 1)) == 0, "ftruncate");
    write_block(kBlocks - 1);
  }

  Board& board_;
  int fd_ = -1;
  int direct_ = -1;
  int donor_ = -1;
  char* mapping_ = nullptr;
  Word version_ = 0;
  alignas(kBlock) Block bytes_{};
};

/// Reads one block by one of three calls. The bytes.
ssize_t read_block(int shared, int own, std::size_t block, Block& bytes, unsigned way) {
  auto* const to = reinterpret_cast<char*>(bytes.data());
  if (way == 0) return pread(shared, to, kBlock, place_of(block));
  if (way == 1) {
    const std::array<iovec, 2> parts{iovec{to, 1000}, iovec{to + 1000, kBlock - 1000}};
    return preadv(own, parts.data(), 2, place_of(block));
  }
  want(lseek(own, place_of(block), SEEK_SET) == place_of(block), "lseek");
  return read(own, to, kBlock);
}

std::uint64_t read_until_stop(Board& board, const char* path, int shared, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const int own = open(path, O_RDONLY | O_CLOEXEC);
  want(own >= 0, path);
  std::uint64_t reads = 0;
  for (Block bytes{}; !board.stop.load(); reads++) {
    const std::size_t block = random() % kBlocks;
    const auto way = static_cast<unsigned>(random() % 3);
    const Word shortened = board.shortened.load();
    const Word expected = board.published[block].load();
    bytes.fill(0);
    const ssize_t got = read_block(shared, own, block, bytes, way);
    want(got >= 0, "a read");
    if (block == kBlocks - 1 && board.shortened.load() != shortened) continue;
    for (const Word found : bytes) {
      if (found < expected) {
        fail("block %zu by way %u: %llu after %llu was published (%zd bytes)", block, way,
             static_cast<unsigned long long>(found), static_cast<unsigned long long>(expected), got);
      }
    }
    if (reads >= kReadsBefore) board.reads.store(true);
  }
  close(own);
  return reads;
}

int read_versions(const char* path, Board& board, std::uint64_t seed) {
  const int shared = open(path, O_RDONLY | O_CLOEXEC);
  want(shared >= 0, path);
  std::array<std::uint64_t, kThreads> reads{};
  const std::uint64_t before = seen_by_kernel();
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; i++) {
    threads.emplace_back([&, i] { reads[i] = read_until_stop(board, path, shared, seed + i); });
  }
  for (std::thread& thread : threads) thread.join();
  const std::uint64_t seen = seen_by_kernel() - before;
  std::uint64_t all = 0;
  for (const std::uint64_t some : reads) all += some;
  std::printf("%llu of %llu reads were not seen by the kernel\n",
              static_cast<unsigned long long>(all > seen ? all - seen : 0), static_cast<unsigned long long>(all));
  return 0;
}

[[noreturn]] void become_reader(int count, char** words, int board, std::uint64_t seed) {
  std::array<char, 4096> self{};
  want(readlink("/proc/self/exe", self.data(), self.size() - 1) > 0, "readlink");
  fcntl(board, F_SETFD, 0);
  std::vector<std::string> command(words + 3, words + count);
  for (const std::string& word : {std::string(self.data()), std::string("--reader"), std::string(words[1]),
                                  std::to_string(board), std::to_string(seed)}) {
    command.push_back(word);
  }
  std::vector<char*> pointers;
  for (std::string& word : command) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(pointers[0], pointers.data());
  fail("cannot run %s", pointers[0]);
}

}  // namespace

int main(int count, char** words) {
  if (count == 5 && std::strcmp(words[1], "--reader") == 0) {
    return read_versions(words[2], map_board(std::atoi(words[3])), std::strtoull(words[4], nullptr, 10));
  }
  if (count < 4) fail("usage: files_versions FILE WRITES COMMAND...");
  const char* const given = std::getenv("WHERRY_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::printf("WHERRY_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  const int memory = memfd_create("board", MFD_CLOEXEC);
  want(memory >= 0 && ftruncate(memory, sizeof(Board)) == 0, "memfd_create");
  Board& board = map_board(memory);
  Writer writer(board, words[1]);
  const pid_t reader = fork();
  want(reader >= 0, "fork");
  if (reader == 0) become_reader(count, words, memory, seed);
  std::mt19937_64 random(seed);
  int status = 0;
  const unsigned long writes = std::strtoul(words[2], nullptr, 10);
  for (unsigned long i = 0; i < writes; i += board.reads.load() ? 1 : 0) {
    writer.one(random);
    if (waitpid(reader, &status, WNOHANG) != 0) return 1;
  }
  board.stop.store(true);
  want(waitpid(reader, &status, 0) == reader, "waitpid");
  return status == 0 ? 0 : 1;
}
