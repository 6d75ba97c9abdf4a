// SPDX-License-Identifier: Apache-2.0
//
// files_changer FILE OPERATIONS [--also NAME]... [--by NAME] [-- COMMAND...]: changes FILE in many ways, and reads it
// after each change; every byte read is compared with what the file must have then. With COMMAND, "COMMAND this-program
// --reader ..." reads, and this program changes; it is to be started without Wherry. Without one, one process does
// both. NAME is of the same file: changes are made by these names as well, or by that one alone. Prints how many
// changes of each kind were made, and how many reads the kernel has not seen. Exit status 1: a byte or a result was not
// right.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/files/beside.hpp"
#include "tests/files/changes.hpp"
#include "tests/files/rereads.hpp"

namespace {

struct Arguments {
  std::string file{};
  unsigned long operations = 0;
  std::vector<std::string> names{};  // for changes
  bool reader_changes = true;
  std::vector<std::string> command{};
};

/// A process that reads when it is told to.
class Reader {
 public:
  Reader(const std::vector<std::string>& command, const std::string& name, int memory, std::uint64_t seed) {
    std::array<int, 2> turns{};
    std::array<int, 2> answers{};
    want(pipe2(turns.data(), O_CLOEXEC) == 0 && pipe2(answers.data(), O_CLOEXEC) == 0, "pipe2");
    pid_ = fork();
    want(pid_ >= 0, "fork");
    if (pid_ == 0) {
      for (const int kept : {turns[0], answers[1], memory}) fcntl(kept, F_SETFD, 0);
      become(command, {"/proc/self/exe", "--reader", name, std::to_string(memory), std::to_string(turns[0]),
                       std::to_string(answers[1]), std::to_string(seed)});
    }
    close(turns[0]);
    close(answers[1]);
    turns_ = turns[1];
    answers_ = answers[0];
  }

  ReadsMade take(const Turn& turn, const char* after) const {
    ReadsMade made;
    want(write(turns_, &turn, sizeof(turn)) == sizeof(turn), "write to a pipe");
    if (read(answers_, &made, sizeof(made)) != sizeof(made)) fail("the reader has ended, after %s", after);
    return made;
  }

  void end() const {
    close(turns_);
    int status = 0;
    want(waitpid(pid_, &status, 0) == pid_ && status == 0, "the reader");
  }

 private:
  [[noreturn]] static void become(std::vector<std::string> words, const std::vector<std::string>& more) {
    std::array<char, 4096> self{};
    want(readlink(more[0].c_str(), self.data(), self.size() - 1) > 0, "readlink");
    words.emplace_back(self.data());
    words.insert(words.end(), more.begin() + 1, more.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    execvp(pointers[0], pointers.data());
    fail("cannot run %s", pointers[0]);
  }

  pid_t pid_ = -1;
  int turns_ = -1;
  int answers_ = -1;
};

std::uint64_t seed_of_run() {
  const char* const given = std::getenv("WHERRY_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::printf("WHERRY_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  return seed;
}

/// Changes made by this process, reads made by `reads(turn, after)`.
template <typename Reads>
void take_turns(const Arguments& arguments, Changes& changes, std::mt19937_64& random, Reads reads) {
  ReadsMade made;
  for (unsigned long done = 0; done < arguments.operations;) {
    const bool own = arguments.reader_changes && random() % 8 == 0;
    if (!own) changes.one();
    // Now and then as many as auto wants to see of a descriptor first.
    const std::uint32_t most = random() % 40 == 0 ? 500 : 20;
    const Turn turn{.reads = 1 + static_cast<std::uint32_t>(random() % most), .changes = own ? 1U : 0U};
    made = reads(turn, changes.last());
    done += 1 + turn.reads;
  }
  changes.print();
  std::printf("%llu of %llu reads were not seen by the kernel\n", static_cast<unsigned long long>(made.unseen),
              static_cast<unsigned long long>(made.reads));
}

void play(const Arguments& arguments) {
  const std::uint64_t seed = seed_of_run();
  std::mt19937_64 random(seed);
  const int memory = memfd_create("beside", MFD_CLOEXEC);
  want(memory >= 0 && ftruncate(memory, sizeof(Beside)) == 0, "memfd_create");
  Beside& beside = map_beside(memory);
  make_file(beside.truth, arguments.names[0].c_str(), random);
  const bool alone = arguments.command.empty();
  if (alone) {
    Changes changes(beside, arguments.names, seed + 1, false);
    Rereads reads(beside, arguments.file.c_str(), seed + 2, false);
    take_turns(arguments, changes, random, [&](const Turn& turn, const char* /*after*/) {
      reads.make(turn.reads);
      return reads.made();
    });
  } else {
    // The reader first: what this process opens is not its.
    const Reader reader(arguments.command, arguments.file, memory, seed + 2);
    Changes changes(beside, arguments.names, seed + 1, true);
    take_turns(arguments, changes, random,
               [&](const Turn& turn, const char* after) { return reader.take(turn, after); });
    reader.end();
  }
}

/// As Reader starts it.
int read_when_told(char** words) {
  const int turns = std::atoi(words[2]);
  const int answers = std::atoi(words[3]);
  Beside& beside = map_beside(std::atoi(words[1]));
  const std::uint64_t seed = std::strtoull(words[4], nullptr, 10);
  Rereads reads(beside, words[0], seed, true);
  Changes changes(beside, {words[0]}, seed + 1, false);
  for (Turn turn; read(turns, &turn, sizeof(turn)) == sizeof(turn);) {
    for (unsigned i = 0; i < turn.changes; i++) changes.one();
    reads.make(turn.reads);
    want(write(answers, &reads.made(), sizeof(ReadsMade)) == sizeof(ReadsMade), "write to a pipe");
  }
  return 0;
}

Arguments read_arguments(int count, char** words) {
  Arguments arguments{.file = words[1], .operations = std::strtoul(words[2], nullptr, 10), .names = {words[1]}};
  for (int i = 3; i < count; i++) {
    if (std::strcmp(words[i], "--also") == 0 && i + 1 < count) {
      arguments.names.emplace_back(words[++i]);
    } else if (std::strcmp(words[i], "--by") == 0 && i + 1 < count) {
      arguments.names = {words[++i]};
      arguments.reader_changes = false;
    } else if (std::strcmp(words[i], "--") == 0) {
      arguments.command.assign(words + i + 1, words + count);
      break;
    } else {
      fail("usage: files_changer FILE OPERATIONS [--also NAME]... [--by NAME] [-- COMMAND...]");
    }
  }
  return arguments;
}

}  // namespace

int main(int count, char** words) {
  if (count == 7 && std::strcmp(words[1], "--reader") == 0) return read_when_told(words + 2);
  if (count < 3) fail("usage: files_changer FILE OPERATIONS [--also NAME]... [--by NAME] [-- COMMAND...]");
  play(read_arguments(count, words));
  return 0;
}
