// SPDX-License-Identifier: Apache-2.0
//
// Both ends of a connection of shared memory in one thread: what the calls themselves take, without a second core and
// without waiting. Under callgrind it gives the instructions per message (docs/design/speed.md).
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <wherry/wherry.hpp>

#include "base/clock.hpp"
#include "base/scoped_environment.hpp"
#include "bench/standalone/options.hpp"

namespace {

using namespace wherry;
using bench::Row;

constexpr const char* kAnywhere = "wherry+shm://*:*";
/// Bytes that are sent before the other end receives: they fit in each ring, section and cache.
constexpr std::size_t kBurstBytes = 16 << 10;

struct Load {
  std::size_t size = 64;
  std::uint64_t messages = 1'000'000;
  [[nodiscard]] std::uint64_t burst() const { return std::clamp<std::uint64_t>(kBurstBytes / size, 1, 64); }
};

void moved(const Result& result) {
  if (!result.ok()) throw std::system_error(result.error, std::system_category(), "a message");
}

/// Returns the ns of a message.
double time(const Load& load, const std::function<std::uint64_t(std::uint64_t left)>& move) {
  const std::uint64_t start = monotonic_ns();
  for (std::uint64_t done = 0; done < load.messages;) done += move(load.messages - done);
  return static_cast<double>(monotonic_ns() - start) / static_cast<double>(load.messages);
}

double time_streams(const Load& load, bool polled) {
  Listener listener = listen(kAnywhere);
  std::optional<Stream> sender;
  std::thread connecting([&] { sender.emplace(connect(listener.local().to_string())); });
  Stream receiver = listener.accept();
  connecting.join();
  Poller poller;
  if (polled) poller.add(receiver, 0);
  std::vector<std::byte> message(load.size);
  std::array<std::size_t, 1> ready{};
  return time(load, [&](std::uint64_t left) {
    const std::uint64_t burst = std::min(load.burst(), left);
    for (std::uint64_t i = 0; i < burst; ++i) moved(sender->send(message));
    for (std::uint64_t i = 0; i < burst; ++i) {
      if (polled) (void)poller.wait(ready);
      moved(receiver.receive_all(message));
    }
    return burst;
  });
}

double time_mailboxes(const Load& load, Layout layout) {
  const MailboxOptions options{.budget = 384 << 10, .layout = layout};
  Mailbox receiver(options);
  Mailbox sender(options);
  receiver.listen(kAnywhere);
  const Mailbox::Peer to = sender.connect(receiver.local());
  const std::vector<std::byte> message(load.size);
  std::vector<std::byte> received(load.size);
  const iovec piece{const_cast<std::byte*>(message.data()), message.size()};
  return time(load, [&](std::uint64_t /*left*/) {
    Mailbox::Outgoing outgoing{.pieces = {&piece, 1}, .bytes = message.size()};
    Mailbox::Peer from = Mailbox::kNoPeer;
    for (;;) {
      if (outgoing.taken < outgoing.bytes && sender.try_send(to, outgoing).failed()) {
        throw std::runtime_error("a mailbox refused a message");
      }
      if (receiver.try_receive(received, from).ok()) return 1;
      receiver.progress();  // accepts the sender, and returns room
      sender.progress();
    }
  });
}

const std::map<std::string, std::function<double(const Load&)>> kWays{
    {"stream", [](const Load& load) { return time_streams(load, false); }},
    {"poller", [](const Load& load) { return time_streams(load, true); }},
    {"mailbox-equal", [](const Load& load) { return time_mailboxes(load, Layout::equal); }},
    {"mailbox-adaptive", [](const Load& load) { return time_mailboxes(load, Layout::adaptive); }},
};

Row measure(const bench::Options& options, const Load& load, const std::string& way) {
  std::vector<double> samples;
  for (int i = 0; i < options.samples; ++i) samples.push_back(kWays.at(way)(load));
  Row row{.bench = "one-thread", .system = "wherry shm", .mode = way, .size = load.size, .metric = "ns"};
  summarise(row, std::move(samples));
  fmt::print("{:<18} {:8} bytes: {:9.1f} ns (n {})\n", way, load.size, row.median, row.n);
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Both ends of a connection in one thread: what the calls take"};
  bench::Options options;
  Load load;
  std::vector<std::string> ways;
  add_options(app, options);
  app.add_option("--size", load.size, "Bytes of a message")->check(CLI::Range(1, 16384));
  app.add_option("--messages", load.messages, "Messages of a sample");
  app.add_option("--ways", ways, "stream, poller, mailbox-equal, mailbox-adaptive; default: all")
      ->delimiter(',')
      ->check(CLI::IsMember(kWays));
  return run_benchmark(app, options, argc, argv, [&] {
    const ScopedEnvironment job("WHERRY_JOB", std::to_string(::getpid()).c_str());
    if (options.smoke) options.samples = 1, load.messages = 1000;
    std::vector<Row> rows;
    for (const auto& [way, time] : kWays) {
      if (ways.empty() || std::ranges::find(ways, way) != ways.end()) rows.push_back(measure(options, load, way));
    }
    return rows;
  });
}
