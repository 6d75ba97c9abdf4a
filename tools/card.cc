// SPDX-License-Identifier: Apache-2.0
//
// wherry card: owns the cache of files that the programs of a node share.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include <wherry/error.hpp>

#include "base/config.hpp"
#include "base/log.hpp"
#include "base/readable.hpp"
#include "base/unique_fd.hpp"
#include "commands.hpp"
#include "file/cache.hpp"
#include "file/card.hpp"
#include "file/card_server.hpp"
#include "file/segment_file.hpp"

namespace wherry::tools {
namespace {

struct Options {
  std::string node;
  std::string cache;
  bool until_last_client = false;
};

/// SIGTERM, SIGINT and SIGHUP end the card in order.
UniqueFd stop_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, number);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  return UniqueFd(::signalfd(-1, &signals, SFD_CLOEXEC));
}

/// A descriptor for each client.
void allow_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// A file size limit concerns one write, which its program then makes itself; it must not end the card.
void ignore_file_size_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ::signal(SIGXFSZ, SIG_IGN);
}

/// Without it programs read and write by themselves.
void serve_card_files(std::optional<file::CardServer>& server, const std::string& path) {
  try {
    server.emplace(path);
  } catch (const std::exception& error) {
    log::write(log::Level::warning, std::string("wherry card: the path os is not served: ") + error.what());
  }
}

/// Its starter reads the end of its output, which means that it serves.
void let_go_of_output() {
  const UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing.get(), fd);
}

int run(const Options& options) {
  if (!options.node.empty()) ::setenv("WHERRY_NODE", options.node.c_str(), 1);
  config::check(config::Key::node);
  config::check(config::Key::job);
  std::array<char, file::kPathBytes> path{};
  if (!file::segment_path(path)) throw Error(EINVAL, "name the cache", "", "see wherry config");
  const std::uint64_t bytes =
      options.cache.empty() ? file::default_cache_bytes() : config::parse_bytes("--cache", options.cache);
  if (bytes < file::kLeastCache) throw Error(EINVAL, "read", "--cache=" + options.cache, "use at least 1M");
  const UniqueFd stop = stop_signals();
  allow_descriptors();
  ignore_file_size_limit();
  file::Card card({.path = path.data(), .cache = bytes, .until_last_client = options.until_last_client});
  std::optional<file::CardServer> server;
  serve_card_files(server, path.data());
  if (options.until_last_client) {
    let_go_of_output();
  } else {
    fmt::print("serves a cache of {} in {}\n", human_bytes(card.cache_bytes()), path.data());
    std::fflush(stdout);
  }
  card.run(stop.get());
  return 0;
}

}  // namespace

Action add_card(CLI::App& command) {
  auto options = std::make_shared<Options>();
  command.add_option("--node", options->node, "The node whose card it is; WHERRY_NODE if not given");
  command.add_option(
      "--cache", options->cache,
      "Bytes of files that the cache may hold, such as 1G; if not given a quarter of the memory, at most 1G");
  command.add_flag("--until-last-client", options->until_last_client,
                   "End some seconds after the last program that uses the cache, and write nothing");
  command.footer(
      "wherry run --files starts a card where there is none. It is killed without harm: programs go on, and the next\n"
      "card takes over. It ends by SIGTERM or SIGINT.");
  return [options] { return run(*options); };
}

}  // namespace wherry::tools
