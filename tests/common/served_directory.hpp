// SPDX-License-Identifier: Apache-2.0
// For tests: a server in a process of its own, which may be killed and comes back.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>

#include "base/child_process.hpp"
#include "file/client/host.hpp"
#include "file/server/server.hpp"
#include "tests/common/temporary_directory.hpp"

namespace wherry::file {

/// A point at which a process kills itself, the how manieth time it comes there, and what it has passed.
struct FaultPlan {
  std::atomic<int> point{-1};
  std::atomic<int> countdown{0};
  std::array<std::atomic<int>, kFaultPoints> passed{};

  void kill_at(FaultPoint where, int time) {
    countdown = time;
    point = static_cast<int>(where);
  }
  AtFaultPoint at() {
    return [this](FaultPoint where) {
      ++passed.at(static_cast<std::size_t>(where));
      if (static_cast<int>(where) == point && --countdown == 0) ::kill(::getpid(), SIGKILL);
    };
  }
};

/// Serves a directory that is gone after the test. Forks: to be made before any thread.
class ServedDirectory {
 public:
  explicit ServedDirectory(ServerOptions options = {}) : options_(std::move(options)) {
    if (options_.root.empty()) {
      options_.root = (directory_.path() / "root").string();
      std::filesystem::create_directory(options_.root);
    }
    if (options_.threads == 0) options_.threads = 1;
    options_.listen = "wherry+shm://*:*";
    options_.at = shared_->plan.at();
    supervisor_.emplace([this] {
      while (!shared_->over) {
        Child server([this] { return serve(); });
        shared_->pid = server.pid();
        server.wait();
        ++shared_->deaths;
      }
      return true;
    });
    while (!shared_->ready) ::usleep(100);
  }
  ServedDirectory(const ServedDirectory&) = delete;
  ServedDirectory& operator=(const ServedDirectory&) = delete;

  [[nodiscard]] std::string address() const { return shared_->address.data(); }
  /// All of its data goes through the server.
  [[nodiscard]] HostOptions client(AtFaultPoint at = {}) const {
    return {.address = address(), .timeout = std::chrono::hours(1), .borrows = false, .at = std::move(at)};
  }
  [[nodiscard]] std::filesystem::path root() const { return options_.root; }
  [[nodiscard]] std::filesystem::path outside() const { return directory_.path(); }
  [[nodiscard]] FaultPlan& plan() const { return shared_->plan; }
  [[nodiscard]] int deaths() const { return shared_->deaths; }
  [[nodiscard]] pid_t pid() const { return static_cast<pid_t>(shared_->pid.load()); }
  void kill() const { ::kill(pid(), SIGKILL); }
  /// For good.
  void keep_dead() const {
    shared_->over = true;
    kill();
  }

 private:
  struct Shared {
    FaultPlan plan;
    std::array<char, 128> address{};
    std::atomic<bool> ready{false};
    std::atomic<std::int64_t> pid{0};
    std::atomic<int> deaths{0};
    std::atomic<bool> over{false};
  };

  bool serve() {
    if (shared_->ready) options_.listen = shared_->address.data();
    Server server(options_);
    std::strncpy(shared_->address.data(), server.address().c_str(), shared_->address.size() - 1);
    shared_->ready = true;
    server.run();
    return true;
  }

  test::TemporaryDirectory directory_;
  ServerOptions options_;
  SharedValue<Shared> shared_;
  std::optional<Child> supervisor_;
};

inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::span<const std::byte> as_data(std::string_view text) { return std::as_bytes(std::span(text)); }

/// The whole file, read through a host.
inline std::string read_all(Host& host, Host::Handle handle) {
  std::string all;
  std::string piece(100'000, '\0');
  while (true) {
    const Result result = host.read(handle, all.size(), std::as_writable_bytes(std::span(piece)));
    if (result.failed()) throw std::runtime_error(result.to_string());
    if (result.bytes == 0) return all;
    all.append(piece, 0, result.bytes);
  }
}

}  // namespace wherry::file
