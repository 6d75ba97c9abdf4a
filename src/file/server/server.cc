// SPDX-License-Identifier: Apache-2.0
#include "file/server/server.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/log.hpp"
#include "base/machine.hpp"
#include "file/server/server_worker.hpp"

namespace wherry::file {
namespace {

/// Descriptors of a connection, and some to spare.
constexpr std::size_t kDescriptorsEach = 8;
constexpr std::size_t kMostConnections = std::size_t{1} << 16;

/// Pause after a failed accept, for example for lack of descriptors: only time helps.
constexpr int kAcceptPauseMs = 100;

std::size_t cores() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<std::size_t>(CPU_COUNT(&set)) : 1;
}

/// A quarter of the limit is for connections, half for files (HandleBudget).
std::size_t connections_possible() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMostConnections;
  return std::clamp<std::size_t>(limit.rlim_cur / 4 / kDescriptorsEach, 1, kMostConnections);
}

layout::FileHello hello_of(const ServerOptions& options) {
  layout::FileHello hello{};
  hello.version = layout::kFileVersion;
  hello.magic = layout::kFileMagic;
  hello.read_only = options.read_only ? 1 : 0;
  hello.lends = options.lends ? 1 : 0;
  std::ranges::copy(own_boot_id(), hello.boot);
  return hello;
}

UniqueFd event() {
  UniqueFd made(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made.valid()) throw Error(errno, "serve", "", "raise the limit of open files (ulimit -n)");
  return made;
}

}  // namespace

Server::Server(ServerOptions options)
    : service_{Tree(options.root), HandleBudget::of_process(),
               Terms{options.read_only, options.lends, options.delegates, options.delegation_margin,
                     options.recall_timeout},
               hello_of(options), std::move(options.at)},
      most_connections_(options.connections != 0 ? options.connections : connections_possible()),
      stop_(event()),
      left_(event()),
      listener_(listen(options.listen)) {
  if (options.lends) service_.hello.root = static_cast<std::uint64_t>(service_.tree.descriptor()) + 1;
  const std::size_t threads = options.threads != 0 ? options.threads : std::max<std::size_t>(cores(), 2);
  try {
    for (std::size_t i = 0; i < threads; ++i) workers_.push_back(std::make_unique<Worker>(service_, left_.get()));
  } catch (const Error&) {
    throw;
  } catch (const std::system_error& error) {  // from a thread
    throw Error(error.code().value(), "start the threads of", address(), "allow more processes (ulimit -u, pids.max)");
  }
}

Server::~Server() = default;

void Server::stop() noexcept {
  const std::uint64_t one = 1;
  // The counter is full, so the event is readable already.
  if (::write(stop_.get(), &one, sizeof one) < 0) return;
}

std::size_t Server::connections() const {
  std::size_t sum = 0;
  for (const auto& worker : workers_) sum += worker->connections();
  return sum;
}

void Server::run() {
  while (wait()) accept_waiting();
}

/// Waits for a connection. False: the server must stop. A session that ends, which causes most warnings, makes `left_`
/// readable; then the time at which suppressed warnings are reported is computed again.
bool Server::wait() {
  const bool full = connections() >= most_connections_;
  std::array<pollfd, 3> wanted{
      {{stop_.get(), POLLIN, 0}, {left_.get(), POLLIN, 0}, {full ? -1 : listener_.descriptor(), POLLIN, 0}}};
  service_.warnings.report_if_due();
  if (::poll(wanted.data(), wanted.size(), service_.warnings.report_due_in_ms()) < 0 && errno != EINTR)
    throw Error(errno, "wait", address(), "");
  std::uint64_t count = 0;
  if (wanted[1].revents != 0 && ::read(left_.get(), &count, sizeof count) < 0 && errno != EAGAIN) {
    throw Error(errno, "wait", address(), "");
  }
  return wanted[0].revents == 0;
}

void Server::accept_waiting() {
  try {
    while (connections() < most_connections_) {
      std::optional<Stream> stream = listener_.try_accept();
      if (!stream) return;
      const auto least = [](const auto& a, const auto& b) { return a->connections() < b->connections(); };
      (*std::ranges::min_element(workers_, least))->add(std::move(*stream));
    }
  } catch (const Error& error) {
    if (error.what() != last_accept_error_)
      service_.warnings.write(log::Level::warning, std::string("wherry serve: ") + error.what());
    last_accept_error_ = error.what();
    pollfd wanted{stop_.get(), POLLIN, 0};
    ::poll(&wanted, 1, kAcceptPauseMs);
  }
}

}  // namespace wherry::file
