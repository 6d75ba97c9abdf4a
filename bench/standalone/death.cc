// SPDX-License-Identifier: Apache-2.0
//
// How soon is a killed peer noticed? A process is killed with SIGKILL while the survivor is blocked in receive, blocked
// in send, or polls the receive descriptor. The clock runs from right before kill() to the return of the survivor's
// call.
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <vector>

#include <wherry/wherry.hpp>

#include "base/child_process.hpp"
#include "base/scoped_environment.hpp"
#include "bench/standalone/options.hpp"

namespace {

using namespace wherry;
using bench::Row;

constexpr std::chrono::seconds kNoticeTimeout{20};

/// One death: milliseconds until `wait` returned.
template <class Wait>
double one_death(Wait&& wait) {
  Listener listener = listen("wherry+shm://*:*");
  const Child victim([where = listener.local().to_string()] {
    const Stream stream = connect(where, {.ring_bytes = 4096}, kNoticeTimeout);
    while (true) ::pause();
    return true;
  });
  Stream stream = listener.accept(kNoticeTimeout);
  const SharedValue<std::atomic<std::int64_t>> killed_at;
  const Child killer([&, pid = victim.pid()] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    *killed_at = steady_ns();
    return ::kill(pid, SIGKILL) == 0;
  });
  const int error = wait(stream);
  const std::int64_t noticed_at = steady_ns();
  if (error != EPIPE && error != ECONNRESET) throw std::runtime_error("the death was not reported");
  return static_cast<double>(noticed_at - *killed_at) / 1e6;
}

template <class Wait>
Row measure(const bench::Options& options, const char* what, Wait&& wait) {
  std::vector<double> samples;
  for (int i = 0; i < (options.smoke ? 3 : 10 * options.samples); ++i) samples.push_back(one_death(wait));
  const double most = *std::max_element(samples.begin(), samples.end());
  Row row{.bench = "death", .system = "wherry shm", .mode = what, .metric = "ms_until_noticed"};
  summarise(row, std::move(samples));
  fmt::print("{:<22} median {:7.3f} ms   at most {:7.3f} ms   (n {})\n", what, row.median, most, row.n);
  return row;
}

int wait_in_receive(Stream& stream) {
  std::byte buffer[64];
  return stream.receive(buffer, kNoticeTimeout).error;
}

int wait_in_send(Stream& stream) {
  const std::vector<std::byte> bytes(100'000);
  return stream.send(bytes, kNoticeTimeout).error;
}

int wait_in_poll(Stream& stream) {
  std::byte buffer[64];
  Result result = stream.try_receive(buffer);
  while (result.would_block()) {
    pollfd polled{stream.receive_descriptor(), POLLIN, 0};
    if (::poll(&polled, 1, 20'000) != 1) return ETIMEDOUT;
    result = stream.try_receive(buffer);
  }
  return result.error;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"How soon a peer killed with SIGKILL is noticed"};
  bench::Options options;
  add_options(app, options);
  return run_benchmark(app, options, argc, argv, [&] {
    const ScopedEnvironment job("WHERRY_JOB", std::to_string(::getpid()).c_str());
    return std::vector<Row>{measure(options, "blocked in receive", wait_in_receive),
                            measure(options, "blocked in send", wait_in_send),
                            measure(options, "polling a descriptor", wait_in_poll)};
  });
}
