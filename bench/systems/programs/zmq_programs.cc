// SPDX-License-Identifier: Apache-2.0
//
// ZeroMQ measured by the programs that its authors measure it with, unmodified: the endpoint is all that differs. They
// are started for each sample, so CPU seconds and context switches are of whole processes: a few milliseconds of each
// are the start.
#include "bench/systems/programs/zmq_programs.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "base/unique_fd.hpp"
#include "bench/harness/names.hpp"
#include "bench/harness/participant.hpp"
#include "bench/harness/process_group.hpp"
#include "bench/harness/programs/folders.hpp"
#include "bench/harness/usage.hpp"

namespace wherry::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::array kPrograms{"local_thr", "remote_thr", "local_lat", "remote_lat"};

/// Where the receiver binds and the sender connects, and how the kernel shows a listener there: a file of
/// /proc/net and what a line of it must contain.
struct Address {
  std::string bind;
  std::string connect;
  std::string file;
  std::string line;
};

Address tcp_address() {
  const std::uint16_t port = free_port();
  const std::string text = fmt::format("tcp://127.0.0.1:{}", port);
  return {text, text, "/proc/net/tcp", fmt::format(":{:04X} 00000000:0000 0A", port)};
}

Address ipc_address() {
  static int number = 0;
  // The kernel frees an abstract name (@) with its socket, however the process ends.
  const std::string name = fmt::format("@wherry-bench-zmq-{}-{}", ::getpid(), ++number);
  return {"ipc://" + name, "ipc://" + name, "/proc/net/unix", name};
}

Address wherry_address() {
  static int port = 0;
  port = port % 60'000 + 1;
  return {fmt::format("wherry://*:{}", port), fmt::format("wherry://0:{}", port), "/proc/net/unix",
          fmt::format("/0:{}", port)};
}

struct Transport {
  const char* name;
  Address (*address)();
};
constexpr std::array kTransports{Transport{"zmq-wherry", wherry_address}, Transport{"zmq-tcp", tcp_address},
                                 Transport{"zmq-ipc", ipc_address}};

bool listened_to(const Address& address) {
  std::ifstream lines(address.file);
  for (std::string line; std::getline(lines, line);) {
    const auto found = line.find(address.line);
    // A port ends where the line does: /0:20 is not /0:2000.
    if (found != std::string::npos && (address.file != "/proc/net/unix" || line.ends_with(address.line))) return true;
  }
  return false;
}

/// A connection refused is tried again only after 100 ms, which remote_lat would count as a round trip.
void wait_for_listener(const Address& address) {
  while (!listened_to(address)) std::this_thread::sleep_for(std::chrono::milliseconds{1});
}

/// What the programs of one sample print.
class Output {
 public:
  Output() : file_(::memfd_create("output", MFD_CLOEXEC)) {
    if (!file_.valid()) throw std::system_error(errno, std::system_category(), "memfd_create");
  }
  /// To be called in the process that is going to print.
  void take_over() const {
    ::dup2(file_.get(), STDOUT_FILENO);
    ::dup2(file_.get(), STDERR_FILENO);
  }
  [[nodiscard]] std::string text() const {
    std::string text(4096, '\0');
    const ssize_t length = ::pread(file_.get(), text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
    while (text.ends_with('\n')) text.pop_back();
    return text;
  }
  /// The figure before `unit`. Throws std::runtime_error.
  [[nodiscard]] double figure(const std::string& unit) const {
    const std::string all = text();
    const auto end = all.find(" [" + unit + "]");
    const auto begin = end == std::string::npos ? end : all.rfind(' ', end - 1);
    double value = 0;
    if (begin != std::string::npos) std::from_chars(&all[begin + 1], &all[end], value);
    if (value <= 0) throw std::runtime_error(fmt::format("prints no {}: {:.300}", unit, all));
    return value;
  }

 private:
  UniqueFd file_;
};

class ZmqPrograms final : public System {
 public:
  ZmqPrograms(const Transport& transport, fs::path prefix, std::string version)
      : transport_(transport), prefix_(std::move(prefix)), version_(std::move(version)) {}

  [[nodiscard]] std::string name() const override { return transport_.name; }
  [[nodiscard]] std::string version() const override { return version_; }
  [[nodiscard]] std::string question() const override { return "zmq"; }
  [[nodiscard]] std::string settings() const override {
    return "libzmq's own local_thr and remote_thr (PUSH/PULL), local_lat and remote_lat (REQ/REP), unmodified: "
           "one I/O thread, high-water marks 1000, default buffers";
  }
  [[nodiscard]] bool can(const Sample& sample) const override {
    return sample.question != Question::asleep && sample.senders == 1 && !sample.touched;
  }
  Outcome run(const Sample& sample) override {
    return sample.question == Question::stream ? throughput(sample) : latency(sample);
  }

 private:
  Outcome throughput(const Sample& sample) const {
    // The receiver's clock starts when the first message is there, but its rate counts that one too.
    const std::uint64_t count = sample.messages + 1;
    Output output;
    Outcome outcome = run_pair("thr", sample, count, output);
    const double bits = static_cast<double>(count) * static_cast<double>(sample.size) * 8;
    outcome.seconds = bits / (output.figure("Mb/s") * 1e6);
    const double share = static_cast<double>(sample.messages) / static_cast<double>(count);
    outcome.cpu_seconds *= share;
    return outcome;
  }

  Outcome latency(const Sample& sample) const {
    Output output;
    Outcome outcome = run_pair("lat", sample, sample.messages, output);
    outcome.mean_latency_ns = output.figure("us") * 1e3;
    outcome.seconds = outcome.mean_latency_ns * 2 / 1e9 * static_cast<double>(sample.messages);
    return outcome;
  }

  /// Runs local_KIND and remote_KIND to their ends.
  Outcome run_pair(const std::string& kind, const Sample& sample, std::uint64_t count, const Output& output) const {
    const Address address = transport_.address();
    const std::array<std::string, 2> numbers{std::to_string(sample.size), std::to_string(count)};
    const Usage before = usage_now(RUSAGE_CHILDREN);
    ProcessGroup group;
    group.start("local_" + kind, [&] {
      output.take_over();
      return become("local_" + kind, sample, 0, {address.bind, numbers[0], numbers[1]});
    });
    group.start("remote_" + kind, [&] {
      output.take_over();
      wait_for_listener(address);
      return become("remote_" + kind, sample, 1, {address.connect, numbers[0], numbers[1]});
    });
    const std::string failure =
        group.wait(std::chrono::milliseconds(static_cast<std::int64_t>(sample.timeout_seconds * 1e3)));
    if (!failure.empty()) throw std::runtime_error(fmt::format("{}: {:.300}", failure, output.text()));
    const Usage used = usage_now(RUSAGE_CHILDREN) - before;
    return {.cpu_seconds = used.cpu, .context_switches = used.switches};
  }

  /// Turns this process into the program. Returns only if that fails.
  [[nodiscard]] int become(const std::string& program, const Sample& sample, std::uint32_t rank,
                           std::array<std::string, 3> arguments) const {
    try {
      pin(sample, rank);
    } catch (const std::exception& error) {
      std::fputs(error.what(), stderr);
      return 1;
    }
    std::string path = prefix_ / "bin" / program;
    std::array<char*, 5> words{path.data(), arguments[0].data(), arguments[1].data(), arguments[2].data(), nullptr};
    ::setenv("LD_LIBRARY_PATH", (prefix_ / "lib").c_str(), 1);
    ::execv(path.c_str(), words.data());
    std::perror(path.c_str());
    return 1;
  }

  const Transport& transport_;
  fs::path prefix_;
  std::string version_;
};

fs::path find_prefix() {
  if (const char* named = std::getenv("WHERRY_BENCH_ZMQ"); named != nullptr && *named != '\0') return named;
  return library_folder() / "zmq";
}

bool complete(const fs::path& prefix) {
  return std::all_of(kPrograms.begin(), kPrograms.end(), [&prefix](const char* program) {
    std::error_code ignored;
    return fs::exists(prefix / "bin" / program, ignored);
  });
}

/// As the library's description for pkg-config says it.
std::string version_in(const fs::path& prefix) {
  std::ifstream lines(prefix / "lib" / "pkgconfig" / "libzmq.pc");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Version: ")) return line.substr(9);
  }
  return {};
}

}  // namespace

void add_zmq_programs(Registry& registry) {
  const fs::path prefix = find_prefix();
  const bool here = complete(prefix);
  for (const Transport& transport : kTransports) {
    if (here) {
      registry.systems.push_back(std::make_unique<ZmqPrograms>(transport, prefix, version_in(prefix)));
    } else {
      registry.missing.push_back({transport.name, "libzmq with its programs is not built; make zmq does it", "zmq"});
    }
  }
}

}  // namespace wherry::bench
