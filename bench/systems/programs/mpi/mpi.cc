// SPDX-License-Identifier: Apache-2.0
// MPI as a peer of `wherry bench`: rank 0 receives, the others send. Built once with each MPI's own mpicxx
// (scripts/build-peers); bench/systems/programs/README.md has the lines that rank 0 and `wherry bench` exchange.
//
// Driven as osu_bw does it: a window of MPI_Isend and MPI_Irecv, 64 messages deep up to 64 KiB and 4 above. With the
// payload written and read, the window's messages lie in buffers of their own, as many as stay in the cache, so that
// the next message is written while the last one travels.
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/harness/touch.hpp"

namespace {

constexpr std::size_t kLarge = 64UL << 10;
constexpr std::size_t kInCache = 256UL << 10;

enum Question : std::uint64_t { kEnd, kStream, kLatency };

/// One sample as rank 0 tells the others.
struct Order {
  std::uint64_t question = kEnd;
  std::uint64_t size = 0;
  std::uint64_t messages = 0;  // of each sender; round trips
  std::uint64_t warm_up = 0;
  std::uint64_t touched = 0;
};

struct World {
  int rank = 0;
  int size = 1;
  [[nodiscard]] std::uint64_t senders() const { return static_cast<std::uint64_t>(size - 1); }
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// A broadcast that does not spin: ranks that wait for their orders leave the cores to those that have some.
void quiet_broadcast(Order& order) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibcast(&order, sizeof order / sizeof(std::uint64_t), MPI_UINT64_T, 0, MPI_COMM_WORLD, &request);
  for (int done = 0;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

/// The messages that are on their way together, each with its request and its buffer.
class Window {
 public:
  explicit Window(const Order& order) : size_(order.size), requests_(depth(order)) {
    stride_ = order.touched != 0 ? (size_ + 4095) / 4096 * 4096 : 0;
    const std::size_t bytes = stride_ * (requests_.size() - 1) + size_;
    memory_.reset(static_cast<std::byte*>(operator new(bytes, std::align_val_t{4096})));
    std::fill_n(memory_.get(), bytes, std::byte{1});
    std::fill(requests_.begin(), requests_.end(), MPI_REQUEST_NULL);
  }

  [[nodiscard]] std::size_t depth() const { return requests_.size(); }
  [[nodiscard]] std::span<std::byte> buffer(std::uint64_t i) { return {memory_.get() + i % depth() * stride_, size_}; }
  MPI_Request& request(std::uint64_t i) { return requests_[i % depth()]; }
  void wait(std::uint64_t i) { MPI_Wait(&request(i), MPI_STATUS_IGNORE); }
  void wait_all() { MPI_Waitall(static_cast<int>(depth()), requests_.data(), MPI_STATUSES_IGNORE); }

 private:
  static std::size_t depth(const Order& order) {
    const std::size_t window = order.size <= kLarge ? 64 : 4;
    if (order.touched == 0) return window;
    return std::clamp<std::size_t>(kInCache / order.size, 2, window);
  }

  struct Release {
    void operator()(std::byte* memory) const { operator delete(memory, std::align_val_t{4096}); }
  };
  std::size_t size_;
  std::size_t stride_ = 0;
  std::unique_ptr<std::byte, Release> memory_;
  std::vector<MPI_Request> requests_;
};

/// Receives the messages of all senders and returns the sum of what was in them.
std::uint64_t receive_all(const World& world, const Order& order, std::uint64_t messages, Window& window) {
  const int source = world.senders() == 1 ? 1 : MPI_ANY_SOURCE;
  const std::uint64_t total = messages * world.senders();
  const auto post = [&](std::uint64_t i) {
    MPI_Irecv(window.buffer(i).data(), static_cast<int>(order.size), MPI_BYTE, source, 0, MPI_COMM_WORLD,
              &window.request(i));
  };
  std::uint64_t sum = 0;
  if (order.touched == 0) {
    for (std::uint64_t i = 0; i < total;) {
      const std::uint64_t end = std::min(total, i + window.depth());
      for (; i < end; ++i) post(i);
      window.wait_all();
    }
    return sum;
  }
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(total, window.depth()); ++i) post(i);
  for (std::uint64_t i = 0; i < total; ++i) {
    window.wait(i);
    sum += wherry::bench::sum_all(window.buffer(i));
    if (i + window.depth() < total) post(i + window.depth());
  }
  return sum;
}

/// Sends this rank's messages and returns the sum of what it wrote into them.
std::uint64_t send_all(const World& world, const Order& order, std::uint64_t messages, Window& window) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < messages; ++i) {
    if (order.touched != 0) {
      window.wait(i);
      const std::uint64_t word = wherry::bench::pattern(static_cast<std::uint32_t>(world.rank), i);
      wherry::bench::write_all(window.buffer(i), word);
      sum += wherry::bench::sum_of(order.size, word);
    } else if (i % window.depth() == 0) {
      window.wait_all();
    }
    MPI_Isend(window.buffer(i).data(), static_cast<int>(order.size), MPI_BYTE, 0, 0, MPI_COMM_WORLD,
              &window.request(i));
  }
  window.wait_all();
  return sum;
}

/// From the start together to the last message received.
double stream(const World& world, const Order& order) {
  Window window(order);
  const auto transfer = [&](std::uint64_t messages) {
    return world.rank == 0 ? receive_all(world, order, messages, window) : send_all(world, order, messages, window);
  };
  transfer(order.warm_up);
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = now();
  const std::uint64_t sum = transfer(order.messages);
  const double seconds = now() - start;
  const std::uint64_t sent = world.rank == 0 ? 0 : sum;
  std::uint64_t all_sent = 0;
  MPI_Reduce(&sent, &all_sent, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (world.rank == 0 && sum != all_sent) throw std::runtime_error("what was received is not what was sent");
  return seconds;
}

/// One message to and fro; half of each round trip in nanoseconds, at rank 0.
std::vector<double> round_trips(const World& world, const Order& order) {
  Window window(order);
  auto* data = window.buffer(0).data();
  const int other = 1 - world.rank;
  const auto send = [&] { MPI_Send(data, static_cast<int>(order.size), MPI_BYTE, other, 0, MPI_COMM_WORLD); };
  const auto receive = [&] {
    MPI_Recv(data, static_cast<int>(order.size), MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  };
  std::vector<double> halves;
  halves.reserve(world.rank == 0 ? order.messages : 0);
  for (std::uint64_t i = 0; i < order.warm_up + order.messages; ++i) {
    if (world.rank != 0) {
      receive();
      send();
      continue;
    }
    const double start = now();
    send();
    receive();
    if (i >= order.warm_up) halves.push_back((now() - start) * 1e9 / 2);
  }
  return halves;
}

/// The next order, from `wherry bench`. Its pipe's end is not relied on: not every launcher passes that on.
Order read_order() {
  std::string line;
  if (!std::getline(std::cin, line) || line == "end") return {};
  std::istringstream words(line);
  std::string sample;
  std::string question;
  Order order;
  words >> sample >> question >> order.size >> order.messages >> order.warm_up >> order.touched;
  if (!words || sample != "sample" || order.size == 0) throw std::runtime_error("no order: " + line);
  order.question = question == "latency" ? kLatency : kStream;
  return order;
}

void wait_for_go() {
  std::string line;
  std::getline(std::cin, line);
  if (line != "go") throw std::runtime_error("expected go: " + line);
}

void introduce(const World& world) {
  std::uint64_t pid = static_cast<std::uint64_t>(getpid());
  std::vector<std::uint64_t> pids(static_cast<std::size_t>(world.size));
  MPI_Gather(&pid, 1, MPI_UINT64_T, pids.data(), 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (world.rank != 0) return;
  std::string version(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
  int length = 0;
  MPI_Get_library_version(version.data(), &length);
  std::cout << "processes";
  for (const std::uint64_t one : pids) std::cout << ' ' << one;
  std::cout << "\nversion " << version.substr(0, version.find_first_of("\n,")) << '\n' << std::flush;
}

void serve(const World& world) {
  introduce(world);
  while (true) {
    Order order = world.rank == 0 ? read_order() : Order{};
    quiet_broadcast(order);
    if (order.question == kEnd) return;
    if (world.rank == 0) {
      std::cout << "ready\n" << std::flush;
      wait_for_go();
    }
    Order go = order;
    quiet_broadcast(go);
    if (order.question == kStream) {
      const double seconds = stream(world, order);
      if (world.rank == 0) std::cout << "done " << seconds << '\n' << std::flush;
    } else {
      const std::vector<double> halves = round_trips(world, order);
      if (world.rank == 0) {
        std::cout << "done";
        for (const double half : halves) std::cout << ' ' << half;
        std::cout << '\n' << std::flush;
      }
    }
  }
}

/// "0,1": the receiver's core and the sender's; anything else leaves every rank where the kernel puts it.
void pin(const World& world, std::string_view cores) {
  const auto comma = cores.find(',');
  if (comma == std::string_view::npos || world.size != 2) return;
  const auto mine = world.rank == 0 ? cores.substr(0, comma) : cores.substr(comma + 1);
  int core = 0;
  if (std::from_chars(mine.data(), mine.data() + mine.size(), core).ec != std::errc{}) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  World world;
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.size);
  try {
    pin(world, argc > 1 ? argv[1] : "");
    serve(world);
  } catch (const std::exception& error) {
    std::cerr << "mpi: " << error.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
