// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/elsewhere.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include "base/config.hpp"
#include "base/name.hpp"
#include "base/namespaces.hpp"

namespace wherry::fabric::shm {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// Pauses between searches: a connect that waits for its listener is repeated often, and a search takes CPU time.
constexpr Clock::duration kFirstRest = std::chrono::seconds(1);
constexpr Clock::duration kLongestRest = std::chrono::seconds(8);

constexpr const char* kOwnSockets = "/proc/thread-self/net/unix";

std::string own_user() { return std::to_string(::geteuid()); }

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Parses the user and the job from a line of /proc/net/unix whose name ends with `ending`: "...
/// @wherry/USER/JOB/NODE:PORT". Both are validated before they become part of a text, because another user can bind any
/// name.
std::optional<ListenerElsewhere> listener_in(std::string_view line, std::string_view ending) {
  constexpr std::string_view kListens = " 00010000 ";  // the flag of a socket that listens
  constexpr std::string_view kBeginning = " @wherry/";
  const auto begin = line.find(kBeginning);
  if (begin == std::string_view::npos || !line.ends_with(ending)) return std::nullopt;
  if (line.substr(0, begin).find(kListens) == std::string_view::npos) return std::nullopt;
  std::string_view name = line.substr(begin + kBeginning.size());
  name.remove_suffix(std::min(ending.size(), name.size()));
  const auto slash = name.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view user = name.substr(0, slash);
  const std::string_view job = name.substr(slash + 1);
  if (!is_number(user) || !is_job_name(job)) return std::nullopt;
  ListenerElsewhere found;
  if (user != own_user()) found.user = user;
  if (job != config::text(config::Key::job)) found.job = job;
  return found;
}

/// Returns the inode number of a list of sockets; 0 on failure. Each network namespace has its own list, and any
/// process may stat() it.
ino_t identity_of(const fs::path& sockets) {
  struct stat status{};
  return ::stat(sockets.c_str(), &status) == 0 ? status.st_ino : 0;
}

fs::path sockets_of(const std::string& process) { return "/proc/" + process + "/net/unix"; }

int differences(const ListenerElsewhere& listener) {
  return int{!listener.user.empty()} + int{!listener.job.empty()} + int{!listener.process.empty()};
}

/// Adds the listeners from a list of sockets in the network namespace of `process`; empty: of this thread.
void add_listeners(std::vector<ListenerElsewhere>& all, const fs::path& sockets, std::string_view ending,
                   const std::string& process) {
  std::ifstream lines(sockets);
  for (std::string line; std::getline(lines, line);) {
    auto found = listener_in(line, ending);
    if (!found) continue;
    found->process = process;
    if (!process.empty()) found->network = namespace_number("net", process);
    // Without differences, the listener has started after the connect was refused.
    if (differences(*found) > 0) all.push_back(std::move(*found));
  }
}

struct LatestLook {
  std::mutex mutex;
  std::string wanted;
  std::vector<ListenerElsewhere> found;
  Clock::time_point next{};
  Clock::duration rest = kFirstRest;
};

}  // namespace

std::string ListenerElsewhere::difference() const {
  std::string text;
  if (!user.empty()) text += " of user " + user;
  if (!job.empty()) text += " in job '" + job + "'";
  if (process.empty()) return text;
  if (network == 0) return text + " in the network namespace of process " + process;
  return text + " in network namespace " + std::to_string(network) + " (that of process " + process + ")";
}

std::string ListenerElsewhere::remedy() const {
  std::string text;
  const auto add = [&text](const std::string& step) { text += (text.empty() ? "" : ", ") + step; };
  if (!user.empty()) add("run both sides as one user");
  if (!job.empty()) add("set WHERRY_JOB=" + job);
  if (!process.empty()) add("share that network namespace (docs/containers.md)");
  return text;
}

std::vector<ListenerElsewhere> listeners_elsewhere(std::uint16_t node, std::uint16_t port) {
  const std::string ending = "/" + std::to_string(node) + ":" + std::to_string(port);
  std::vector<ListenerElsewhere> all;
  add_listeners(all, kOwnSockets, ending, "");
  std::set<ino_t> seen{identity_of(kOwnSockets), 0};
  // Prefers to name a process that may be traced: the number of its namespace can be read, and nsenter can enter it.
  std::map<ino_t, std::string> untraceable;
  std::error_code over;
  for (fs::directory_iterator entry("/proc", over), end; !over && entry != end; entry.increment(over)) {
    const std::string process = entry->path().filename().string();
    if (!is_number(process)) continue;
    const ino_t sockets = identity_of(sockets_of(process));
    if (seen.contains(sockets)) continue;
    if (namespace_number("net", process) == 0) {
      untraceable.try_emplace(sockets, process);
    } else {
      seen.insert(sockets);
      add_listeners(all, sockets_of(process), ending, process);
    }
  }
  for (const auto& [sockets, process] : untraceable) {
    if (!seen.contains(sockets)) add_listeners(all, sockets_of(process), ending, process);
  }
  std::ranges::sort(all, {}, differences);
  return all;
}

std::vector<ListenerElsewhere> recent_listener_elsewhere(std::uint16_t node, std::uint16_t port) {
  static LatestLook latest;
  // If another thread is searching, or was when this process was forked, this connect gets no result.
  const std::unique_lock lock(latest.mutex, std::try_to_lock);
  if (!lock.owns_lock()) return {};
  const std::string wanted = config::text(config::Key::job) + "/" + std::to_string(node) + ":" + std::to_string(port);
  const Clock::time_point now = Clock::now();
  if (now < latest.next) return wanted == latest.wanted ? latest.found : std::vector<ListenerElsewhere>{};
  latest.found = listeners_elsewhere(node, port);
  if (latest.found.size() > 1) latest.found.resize(1);
  latest.wanted = wanted;
  latest.next = now + latest.rest;
  latest.rest = std::min(2 * latest.rest, kLongestRest);
  return latest.found;
}

std::string place_of_search() {
  const std::uint64_t network = namespace_number("net");
  return "user " + own_user() + ", job '" + config::text(config::Key::job) + "', " +
         (network == 0 ? "this network namespace" : "network namespace " + std::to_string(network));
}

}  // namespace wherry::fabric::shm
