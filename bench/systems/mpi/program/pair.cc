// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "bench/systems/mpi/program/figures.hpp"
#include "bench/systems/mpi/program/world.hpp"

namespace wherry::bench::mpi {
namespace {

constexpr std::size_t kLarge = 64UL << 10;
constexpr std::uint64_t kChecked = 4;

/// What ranks 0 and 1 have between them.
class Pair {
 public:
  Pair(const Communicator& ring, std::size_t bytes) : ring_(ring), other_(1 - ring.rank()), buffer_(bytes) {}

  [[nodiscard]] bool first() const { return ring_.rank() == 0; }
  void send() { MPI_Send(buffer_.data(), size(), MPI_BYTE, other_, 0, ring_.get()); }
  void receive() { MPI_Recv(buffer_.data(), size(), MPI_BYTE, other_, 0, ring_.get(), MPI_STATUS_IGNORE); }
  MPI_Request start() {
    MPI_Request request = MPI_REQUEST_NULL;
    if (first()) {
      MPI_Isend(buffer_.data(), size(), MPI_BYTE, other_, 0, ring_.get(), &request);
    } else {
      MPI_Irecv(buffer_.data(), size(), MPI_BYTE, other_, 0, ring_.get(), &request);
    }
    return request;
  }
  void exchange() {
    if (first()) send();
    receive();
    if (!first()) send();
  }

  /// Messages that all differ, outside of every clock.
  void verify() {
    for (std::uint64_t salt = 0; salt < kChecked; ++salt) {
      std::fill(buffer_.begin(), buffer_.end(), std::byte{0});
      if (first()) mpi::fill(buffer_, salt);
      exchange();
      mpi::check(buffer_, salt);
    }
  }
  /// What is there now went to and fro all the time.
  void verify_last() const { mpi::check(buffer_, kChecked - 1); }

 private:
  [[nodiscard]] int size() const { return count_of(buffer_.size()); }

  const Communicator& ring_;
  int other_;
  std::vector<std::byte> buffer_;
};

/// Has ranks 0 and 1 of the ring of all do it; the others wait for them.
Found between_two(std::size_t bytes, const std::function<Found(const Communicator&, Pair&)>& measure) {
  const Communicator ring(make_grid(1));
  MPI_Comm two = MPI_COMM_NULL;
  MPI_Comm_split(ring.get(), ring.rank() < 2 ? 0 : MPI_UNDEFINED, 0, &two);
  Found found;
  if (two != MPI_COMM_NULL) {
    const Communicator both(two);
    Pair pair(ring, bytes);
    pair.verify();
    found = measure(both, pair);
    pair.verify_last();
  }
  meet_quietly(ring.get());
  return found;
}

}  // namespace

Found latency(std::size_t bytes, double seconds) {
  return between_two(bytes, [seconds](const Communicator& both, Pair& pair) -> Found {
    const double round_trip = time_rounds(both, seconds / 2, [&](std::uint64_t) { pair.exchange(); });
    std::vector<double> halves(
        std::clamp<std::size_t>(static_cast<std::size_t>(seconds / 2 * 1e9 / round_trip), 10, 100'000));
    std::uint64_t count = halves.size();
    MPI_Bcast(&count, 1, MPI_UINT64_T, 0, both.get());
    halves.resize(count);
    for (double& half : halves) {
      const double start = now_ns();
      pair.exchange();
      half = (now_ns() - start) / 2;
    }
    const auto middle = halves.begin() + static_cast<std::ptrdiff_t>(halves.size() / 2);
    std::nth_element(halves.begin(), middle, halves.end());
    return {{"ns_p50", *middle}};
  });
}

Found bandwidth(std::size_t bytes, double seconds) {
  return between_two(bytes, [bytes, seconds](const Communicator& both, Pair& pair) -> Found {
    std::vector<MPI_Request> window(bytes <= kLarge ? 64 : 4, MPI_REQUEST_NULL);
    char answer = 0;
    const double ns = time_rounds(both, seconds, [&](std::uint64_t) {
      for (MPI_Request& request : window) request = pair.start();
      MPI_Waitall(static_cast<int>(window.size()), window.data(), MPI_STATUSES_IGNORE);
      if (pair.first()) {
        MPI_Recv(&answer, 1, MPI_CHAR, 1, 1, both.get(), MPI_STATUS_IGNORE);
      } else {
        MPI_Send(&answer, 1, MPI_CHAR, 0, 1, both.get());
      }
    });
    return {{"GB/s", static_cast<double>(bytes * window.size()) / ns}};
  });
}

}  // namespace wherry::bench::mpi
