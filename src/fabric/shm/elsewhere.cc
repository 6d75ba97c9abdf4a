// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/elsewhere.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>

#include "base/config.hpp"

namespace wherry::fabric::shm {
namespace {

namespace fs = std::filesystem;

/// A program that waits for its listener connects again and again, and has to do something else meanwhile.
constexpr std::int64_t kFirstRestNs = 1'000'000'000;
constexpr std::int64_t kLongestRestNs = 64 * kFirstRestNs;

bool rested() {
  static std::atomic<std::int64_t> next{0};
  static std::atomic<std::int64_t> rest{kFirstRestNs};
  const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
  const std::int64_t pause = rest.load(std::memory_order_relaxed);
  std::int64_t due = next.load(std::memory_order_relaxed);
  if (now < due || !next.compare_exchange_strong(due, now + pause, std::memory_order_relaxed)) return false;
  rest.store(std::min(2 * pause, kLongestRestNs), std::memory_order_relaxed);
  return true;
}

/// The user in a line of /proc/net/unix, if the name in it ends so: "... @wherry/USER/JOB/NODE:PORT". Empty: another
/// name.
std::string_view user_in(std::string_view line, std::string_view ending) {
  constexpr std::string_view kBeginning = " @wherry/";
  const auto begin = line.find(kBeginning);
  if (begin == std::string_view::npos || !line.ends_with(ending)) return {};
  const std::string_view rest = line.substr(begin + kBeginning.size());
  const std::string_view user = rest.substr(0, rest.size() - ending.size());
  return user.find_first_not_of("0123456789") == std::string_view::npos ? user : std::string_view();
}

/// The user of a listener in the namespace that this list of sockets is of: `wanted`, or any if that is empty.
std::string listener_in(const fs::path& sockets, std::string_view ending, std::string_view wanted) {
  constexpr std::string_view kListens = " 00010000 ";  // the flag of a socket that listens
  std::ifstream lines(sockets);
  for (std::string line; std::getline(lines, line);) {
    const std::string_view user = user_in(line, ending);
    if (user.empty() || line.find(kListens) == std::string::npos) continue;
    if (wanted.empty() || user == wanted) return std::string(user);
  }
  return {};
}

}  // namespace

std::string listener_elsewhere(std::uint16_t node, std::uint16_t port) {
  if (!rested()) return {};
  const std::string own = std::to_string(::geteuid());
  const std::string ending =
      "/" + config::text(config::Key::job) + "/" + std::to_string(node) + ":" + std::to_string(port);
  if (const std::string user = listener_in("/proc/net/unix", ending, ""); !user.empty()) {
    return "user " + user + " does, but only processes of one user meet";
  }
  std::error_code unread, over;
  std::set<fs::path> seen{fs::read_symlink("/proc/self/ns/net", unread)};
  for (fs::directory_iterator process("/proc", over), end; !over && process != end; process.increment(over)) {
    // Those of others, or gone by now, cannot be read.
    const fs::path space = fs::read_symlink(process->path() / "ns/net", unread);
    if (unread || !seen.insert(space).second) continue;
    if (listener_in(process->path() / "net/unix", ending, own).empty()) continue;
    return "one does in the network namespace of process " + process->path().filename().string() +
           ", but only processes of one network namespace meet";
  }
  return {};
}

}  // namespace wherry::fabric::shm
