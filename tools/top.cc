// SPDX-License-Identifier: Apache-2.0
//
// wherry top: shows the activity of the endpoints of all of this user's processes, from the statistics pages of these
// processes.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "commands.hpp"
#include "top/processes.hpp"
#include "top/view.hpp"

namespace wherry::tools {
namespace {

constexpr double kShortestInterval = 0.05;
constexpr double kLongestInterval = 3600;

constexpr const char* kClearScreen = "\033[H\033[2J";

struct TopOptions {
  bool once = false;
  bool json = false;
  bool files = false;
  double interval = 1;  // seconds
};

struct Screen {
  std::size_t lines = 0;    // 0: any number
  std::size_t columns = 0;  // 0: any width
};

Screen screen() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
  // The last line stays empty: a newline there would scroll the first line away.
  return {size.ws_row > 1 ? size.ws_row - 1U : 0U, size.ws_col};
}

std::string text(const TopOptions& options, const Reading& before, const Reading& now, const Screen& terminal) {
  return options.files ? top_files_text(now, terminal.lines, terminal.columns)
                       : top_text(before, now, terminal.lines, terminal.columns);
}

void show(const TopOptions& options, const Reading& before, const Reading& now) {
  const bool redraw = !options.once && isatty(STDOUT_FILENO) == 1;
  if (options.json) {
    fmt::print("{}\n", top_json(before, now));
  } else if (redraw) {
    const Screen terminal = screen();
    fmt::print("{}{}", kClearScreen, text(options, before, now, terminal));
  } else {
    fmt::print("{}{}", text(options, before, now, {}), options.once ? "" : "\n");
  }
  std::fflush(stdout);
}

int run(const TopOptions& options) {
  Reading before = read_processes();
  do {
    std::this_thread::sleep_for(std::chrono::duration<double>(options.interval));
    Reading now = read_processes();
    show(options, before, now);
    before = std::move(now);
  } while (!options.once && std::ferror(stdout) == 0);
  return 0;
}

}  // namespace

Action add_top(CLI::App& command) {
  auto options = std::make_shared<TopOptions>();
  command.add_flag("--once", options->once, "Show one interval and exit");
  command.add_flag("--json", options->json, "Print one JSON object per line instead of a table");
  command.add_flag("--files", options->files,
                   "Show the ways in which the data of a mount's files moves, and the time that each takes");
  command
      .add_option("--interval", options->interval, "Seconds between two displays; rates are measured over this time")
      ->check(CLI::Range(kShortestInterval, kLongestInterval))
      ->capture_default_str();
  command.footer(
      "OUT and IN are payload per second. FILL is the fill level of that direction's ring when its side last looked.\n"
      "SLEEPS/s and WAKES/s count the system calls for waiting and for waking the peer.\n"
      "PEER is NODE:PORT, or HOST:NODE:PORT on another host.\n"
      "--files shows transfers on the path auto, in classes of FROM bytes up to twice that: the calls and bytes of "
      "each way,\n"
      "and the time of a call of FROM bytes. TRIED counts the calls that tried the slower way.\n"
      "Processes started with WHERRY_STATISTICS=off, and those of other users, are not shown.");
  return [options] { return run(*options); };
}

}  // namespace wherry::tools
