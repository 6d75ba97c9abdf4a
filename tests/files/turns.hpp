// SPDX-License-Identifier: Apache-2.0
// What files_game says to its workers, and they to it. A worker is any program: it is started with the words of its
// command, and behind them SEED ORDERS ANSWERS TRUTH, a number and three descriptors.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "tests/files/truth.hpp"

enum class Then : std::uint32_t { nothing, sync, reopen };

struct Order {
  std::uint32_t operations = 0;  ///< to make; 0: reads in order, after a pause in which nothing was changed
  Then then = Then::nothing;
};

/// All of a worker's reads up to now.
struct Answer {
  std::uint64_t reads = 0;
  std::uint64_t unseen = 0;  ///< of those that were made in a pause, by the kernel
};

inline Truth& map_truth(int descriptor) {
  void* const shared = mmap(nullptr, sizeof(Truth), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  want(shared != MAP_FAILED, "mmap");
  return *static_cast<Truth*>(shared);
}

/// Does what it is told until its input ends. `make(truth, seed)` returns a worker: it can make(number),
/// read_quietly(), sync() and reopen(), and notes in unseen() how many of its quiet reads the kernel
/// has not counted.
template <class Make>
int take_turns(char** words, Make make) {
  const int orders = std::atoi(words[1]);
  const int answers = std::atoi(words[2]);
  Truth& truth = map_truth(std::atoi(words[3]));
  auto worker = make(truth, std::strtoull(words[0], nullptr, 10));
  Answer all;
  for (Order order; read(orders, &order, sizeof(order)) == sizeof(order);) {
    const std::uint64_t before = truth.reads;
    order.operations == 0 ? worker.read_quietly() : worker.make(order.operations);
    if (order.then == Then::sync) worker.sync();
    if (order.then == Then::reopen) worker.reopen();
    all.reads += truth.reads - before;
    all.unseen = worker.unseen();
    want(write(answers, &all, sizeof(all)) == sizeof(all), "write to a pipe");
  }
  return 0;
}
