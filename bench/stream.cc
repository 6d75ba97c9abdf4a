// SPDX-License-Identifier: Apache-2.0
//
// How fast does one process hand bytes to another? One sends messages of one size, the other receives them: over a
// stream of this library with its default ring, and over TCP on the loopback interface. The systems take turns within
// each sample, so that whatever else the machine does meets both. The sender sends the same bytes again and again and
// the receiver does not look at them ("handover").
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <vector>

#include <wherry/wherry.hpp>

#include "base/child_process.hpp"
#include "base/config.hpp"
#include "base/scoped_environment.hpp"
#include "base/unique_fd.hpp"
#include "bench/common/options.hpp"

namespace {

using namespace wherry;
using bench::Row;

constexpr std::chrono::seconds kPatience{20};

struct Load {
  std::size_t size;
  std::uint64_t messages;
};

/// Enough messages for a fair fraction of a second, whatever the size.
Load load_of(std::size_t size, bool smoke) {
  const std::uint64_t bytes = smoke ? 1 << 20 : std::uint64_t{1} << 30;
  const std::uint64_t most = smoke ? 1000 : 2'000'000;
  return {size, std::clamp<std::uint64_t>(bytes / size, 2, most)};
}

/// Seconds from the first byte sent to the receiver's word that it has the last.
double over_wherry(const Load& load) {
  Listener listener = listen("wherry+shm://*:*");
  Child receiver([&] {
    Stream stream = connect(listener.local().to_string(), {}, kPatience);
    std::vector<std::byte> buffer(load.size);
    for (std::uint64_t i = 0; i < load.messages; ++i) {
      if (!stream.receive_all(buffer).ok()) return false;
    }
    return stream.send(std::span(buffer).first(1)).ok();
  });
  Stream stream = listener.accept(kPatience);
  std::vector<std::byte> message(load.size, std::byte{1});
  const std::int64_t start = monotonic_ns();
  for (std::uint64_t i = 0; i < load.messages; ++i) {
    if (!stream.send(message).ok()) throw std::runtime_error("send failed");
  }
  if (!stream.receive(std::span(message).first(1)).ok()) throw std::runtime_error("the receiver failed");
  return static_cast<double>(monotonic_ns() - start) / 1e9;
}

void check(bool holds, const char* what) {
  if (!holds) throw std::system_error(errno, std::system_category(), what);
}

bool receive_all(int socket, std::span<std::byte> buffer) {
  while (!buffer.empty()) {
    const ssize_t n = ::recv(socket, buffer.data(), buffer.size(), MSG_WAITALL);
    if (n <= 0) return false;
    buffer = buffer.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

void send_all(int socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    check(n > 0, "send");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void no_delay(int socket) {
  const int on = 1;
  check(::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "setsockopt");
}

double over_tcp(const Load& load) {
  const UniqueFd listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  socklen_t length = sizeof address;
  check(::bind(listening.get(), reinterpret_cast<sockaddr*>(&address), length) == 0, "bind");
  check(::listen(listening.get(), 1) == 0, "listen");
  check(::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0, "getsockname");
  Child receiver([&] {
    const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    check(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, "connect");
    std::vector<std::byte> buffer(load.size);
    for (std::uint64_t i = 0; i < load.messages; ++i) {
      if (!receive_all(socket.get(), buffer)) return false;
    }
    send_all(socket.get(), std::span(buffer).first(1));
    return true;
  });
  const UniqueFd socket(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  check(socket.valid(), "accept");
  no_delay(socket.get());
  std::vector<std::byte> message(load.size, std::byte{1});
  const std::int64_t start = monotonic_ns();
  for (std::uint64_t i = 0; i < load.messages; ++i) send_all(socket.get(), message);
  if (!receive_all(socket.get(), std::span(message).first(1))) throw std::runtime_error("the receiver failed");
  return static_cast<double>(monotonic_ns() - start) / 1e9;
}

struct System {
  const char* name;
  double (*run)(const Load&);
};
constexpr std::array kSystems{System{"wherry shm", over_wherry}, System{"tcp loopback", over_tcp}};

/// Both figures of each system at one size.
std::vector<Row> measure(const Load& load, int samples) {
  std::array<std::vector<double>, kSystems.size()> seconds;
  for (int i = 0; i < samples; ++i) {
    for (std::size_t s = 0; s < kSystems.size(); ++s) seconds[s].push_back(kSystems[s].run(load));
  }
  std::vector<Row> rows;
  for (std::size_t s = 0; s < kSystems.size(); ++s) {
    const auto row = [&](const char* metric, double amount) {
      Row result{
          .bench = "stream", .system = kSystems[s].name, .mode = "handover", .size = load.size, .metric = metric};
      std::vector<double> rates;
      for (const double time : seconds[s]) rates.push_back(amount / time);
      summarise(result, std::move(rates));
      return result;
    };
    const auto messages = static_cast<double>(load.messages);
    rows.push_back(row("GB/s", messages * static_cast<double>(load.size) / 1e9));
    rows.push_back(row("msgs/s", messages));
  }
  fmt::print("{:>8}   {:>8.3f} GB/s {:>12.0f} msgs/s   {:>8.3f} GB/s {:>12.0f} msgs/s   {:6.1f} x\n",
             bench::size_text(load.size), rows[0].median, rows[1].median, rows[2].median, rows[3].median,
             rows[0].median / rows[2].median);
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"How fast one process hands bytes to another: this library, and TCP"};
  bench::Options options;
  std::vector<std::string> sizes{"64", "256", "1K", "4K", "16K", "64K", "256K", "1M", "4M", "16M"};
  add_options(app, options);
  app.add_option("--sizes", sizes, "Bytes of one message, several values");
  return run_benchmark(app, options, argc, argv, [&] {
    const ScopedEnvironment job("WHERRY_JOB", std::to_string(::getpid()).c_str());
    fmt::print("{:>8}   {:>30}   {:>30}   {:>8}\n", "size", kSystems[0].name, kSystems[1].name, "ratio");
    std::vector<Row> rows;
    for (const std::string& size : sizes) {
      const Load load = load_of(config::parse_bytes("--sizes", size), options.smoke);
      for (Row& row : measure(load, options.smoke ? 1 : options.samples)) rows.push_back(std::move(row));
    }
    return rows;
  });
}
