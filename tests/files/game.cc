// SPDX-License-Identifier: Apache-2.0
//
// files_game FILE OPERATIONS WORKER...: workers take turns at one file, after each call another may be the next; each
// byte that one reads is compared with what the last one left. WORKER is a command line (tests/files/turns.hpp says
// what is put behind it), with or without Wherry. This program itself is without: after an fsync and after a close, now
// and then, it reads the file as any program would, and compares all of it. Prints for each worker how many of its
// reads, of those made in a pause, the kernel has not seen. Exit status 1: a byte was not right.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/files/truth.hpp"
#include "tests/files/turns.hpp"

namespace {

struct Worker {
  std::string command{};
  pid_t pid = -1;
  int orders = -1;
  int answers = -1;
  Answer all{};
};

[[noreturn]] void become(const std::string& command, const std::vector<std::string>& more) {
  std::vector<std::string> words;
  std::istringstream line(command);
  for (std::string word; line >> word;) words.push_back(word);
  words.insert(words.end(), more.begin(), more.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(pointers[0], pointers.data());
  fail("cannot run %s", pointers[0]);
}

Worker start(const char* command, std::uint64_t seed, int truth) {
  std::array<int, 2> orders{};
  std::array<int, 2> answers{};
  want(pipe2(orders.data(), O_CLOEXEC) == 0 && pipe2(answers.data(), O_CLOEXEC) == 0, "pipe2");
  const pid_t pid = fork();
  want(pid >= 0, "fork");
  if (pid == 0) {
    for (const int kept : {orders[0], answers[1]}) fcntl(kept, F_SETFD, 0);
    become(command,
           {std::to_string(seed), std::to_string(orders[0]), std::to_string(answers[1]), std::to_string(truth)});
  }
  close(orders[0]);
  close(answers[1]);
  return {.command = command, .pid = pid, .orders = orders[1], .answers = answers[0]};
}

void turn(Worker& worker, const Order& order) {
  Answer answer;
  want(write(worker.orders, &order, sizeof(order)) == sizeof(order), "write to a pipe");
  if (read(worker.answers, &answer, sizeof(answer)) != sizeof(answer)) fail("%s: has ended", worker.command.c_str());
  worker.all = answer;
}

void compare(const Truth& truth, const char* path, const char* after) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  struct stat status{};
  want(file >= 0 && fstat(file, &status) == 0, "open");
  if (status.st_size != static_cast<off_t>(truth.size)) {
    fail("after %s the file has %lld bytes, not %zu", after, static_cast<long long>(status.st_size), truth.size);
  }
  std::vector<unsigned char> bytes(truth.size);
  want(read(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "read");
  for (std::size_t i = 0; i < bytes.size(); i++) {
    if (bytes[i] != truth.bytes[i]) fail("after %s byte %zu is %02x, not %02x", after, i, bytes[i], truth.bytes[i]);
  }
  close(file);
}

void play(std::vector<Worker>& workers, const Truth& truth, const char* path, unsigned long operations,
          std::mt19937_64& random) {
  unsigned long turns = 0;
  for (unsigned long done = 0; done < operations; turns++) {
    const bool quiet = turns % 50 == 0;
    Order order{.operations = quiet ? 0U : 1U};
    if (turns % 20 == 7) order.then = turns % 40 == 7 ? Then::sync : Then::reopen;
    turn(workers[random() % workers.size()], order);
    if (order.then != Then::nothing) compare(truth, path, order.then == Then::sync ? "fsync" : "close");
    done += quiet ? 200 : 1;
  }
}

}  // namespace

int main(int count, char** words) {
  if (count < 4) fail("usage: files_game FILE OPERATIONS WORKER...");
  const char* const path = words[1];
  const char* const given = std::getenv("WHERRY_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::printf("WHERRY_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  std::mt19937_64 random(seed);

  const int shared = memfd_create("truth", 0);
  want(shared >= 0 && ftruncate(shared, sizeof(Truth)) == 0, "memfd_create");
  Truth& truth = map_truth(shared);
  make_file(truth, path, random);
  std::vector<Worker> workers;
  for (int i = 3; i < count; i++) workers.push_back(start(words[i], seed + static_cast<unsigned>(i), shared));
  play(workers, truth, path, std::strtoul(words[2], nullptr, 10), random);
  for (const Worker& worker : workers) {
    close(worker.orders);
    int status = 0;
    want(waitpid(worker.pid, &status, 0) == worker.pid && status == 0, worker.command.c_str());
    std::printf("%llu of %llu reads were not seen by the kernel: %s\n",
                static_cast<unsigned long long>(worker.all.unseen), static_cast<unsigned long long>(worker.all.reads),
                worker.command.c_str());
  }
  return 0;
}
