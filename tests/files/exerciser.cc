// SPDX-License-Identifier: Apache-2.0
//
// files_exerciser FILE OPERATIONS [PROCESSES [--no-hits]]: random calls on one file, by processes that take turns. Each
// byte read is compared with what memory that they share says the file has. An ordinary program: what serves its calls
// is the loader's business. Prints how many of its reads the kernel has not seen. Exit status 1: a byte was not right,
// or a result; or the kernel saw every read, unless --no-hits says that this is wanted.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "tests/files/kernel_worker.hpp"
#include "tests/files/seen.hpp"
#include "tests/files/truth.hpp"

namespace {

constexpr unsigned kEnd = ~0U;

/// Makes as many operations as each number that comes says, and tells when they are done.
[[noreturn]] void work(Truth& truth, const char* path, std::uint64_t seed, int orders, int answers) {
  KernelWorker worker(truth, path, seed);
  std::uint64_t unseen = 0;
  for (unsigned operations = 0; read(orders, &operations, sizeof(operations)) == sizeof(operations);) {
    if (operations == kEnd) break;
    const std::uint64_t reads = truth.reads;
    const std::uint64_t seen = seen_by_kernel();
    if (operations == 0) worker.read_quietly();
    worker.make(operations);
    const std::uint64_t now = seen_by_kernel();
    const std::uint64_t made = truth.reads - reads;
    unseen = made > now - seen ? made - (now - seen) : 0;
    want(write(answers, &unseen, sizeof(unseen)) == sizeof(unseen), "write to a pipe");
  }
  std::_Exit(0);
}

struct Process {
  pid_t pid = 0;
  int orders = -1;
  int answers = -1;
};

Process start(Truth& truth, const char* path, std::uint64_t seed) {
  std::array<int, 2> orders{};
  std::array<int, 2> answers{};
  want(pipe2(orders.data(), O_CLOEXEC) == 0 && pipe2(answers.data(), O_CLOEXEC) == 0, "pipe2");
  const pid_t pid = fork();
  want(pid >= 0, "fork");
  if (pid == 0) {
    close(orders[1]);
    close(answers[0]);
    work(truth, path, seed, orders[0], answers[1]);
  }
  close(orders[0]);
  close(answers[1]);
  return {.pid = pid, .orders = orders[1], .answers = answers[0]};
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) fail("usage: files_exerciser FILE OPERATIONS [PROCESSES [--no-hits]]");
  const char* const path = words[1];
  const unsigned long operations = std::strtoul(words[2], nullptr, 10);
  const unsigned long processes = count > 3 ? std::strtoul(words[3], nullptr, 10) : 1;
  const bool want_hits = count <= 4 || std::string(words[4]) != "--no-hits";
  const char* const given = std::getenv("WHERRY_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::printf("WHERRY_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);

  void* const shared = mmap(nullptr, sizeof(Truth), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  want(shared != MAP_FAILED, "mmap");
  auto& truth = *new (shared) Truth;
  std::mt19937_64 random(seed);
  make_file(truth, path, random);

  std::vector<Process> workers;
  for (unsigned long i = 0; i < processes; i++) workers.push_back(start(truth, path, seed + i + 1));
  std::uint64_t unseen = 0;
  unsigned long turn = 0;
  for (unsigned long done = 0; done < operations;) {
    // A quiet turn now and then; else a few calls, and another process has its turn.
    const bool quiet = turn++ % 30 == 0;
    const auto some = quiet ? 0U : 1 + static_cast<unsigned>(random() % 20);
    const Process& worker = workers[random() % workers.size()];
    std::uint64_t answer = 0;
    want(write(worker.orders, &some, sizeof(some)) == sizeof(some), "write to a pipe");
    if (read(worker.answers, &answer, sizeof(answer)) != sizeof(answer)) fail("a process ended");
    unseen += answer;
    done += quiet ? 200 : some;
  }
  for (const Process& worker : workers) {
    want(write(worker.orders, &kEnd, sizeof(kEnd)) == sizeof(kEnd), "write to a pipe");
    int status = 0;
    want(waitpid(worker.pid, &status, 0) == worker.pid && status == 0, "a process");
  }
  std::printf("%llu of %llu reads were not seen by the kernel\n", static_cast<unsigned long long>(unseen),
              static_cast<unsigned long long>(truth.reads));
  return unseen == 0 && want_hits ? 1 : 0;
}
