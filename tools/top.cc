// SPDX-License-Identifier: Apache-2.0
//
// wherry top: shows what the endpoints of all of this user's processes do, from the pages those processes show.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "commands.hpp"
#include "top/files.hpp"
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
  // The last line stays free: a newline there would scroll the first one away.
  return {size.ws_row > 1 ? size.ws_row - 1U : 0U, size.ws_col};
}

/// How one of the two kinds of pictures is made.
template <class Kind>
struct Picture {
  Kind (*read)();
  std::string (*text)(const Kind& before, const Kind& now, std::size_t lines, std::size_t columns);
  std::string (*json)(const Kind& before, const Kind& now);
};

template <class Kind>
void show(const TopOptions& options, const Picture<Kind>& picture, const Kind& before, const Kind& now) {
  const bool redraw = !options.once && isatty(STDOUT_FILENO) == 1;
  if (options.json) {
    fmt::print("{}\n", picture.json(before, now));
  } else if (redraw) {
    const Screen terminal = screen();
    fmt::print("{}{}", kClearScreen, picture.text(before, now, terminal.lines, terminal.columns));
  } else {
    fmt::print("{}{}", picture.text(before, now, 0, 0), options.once ? "" : "\n");
  }
  std::fflush(stdout);
}

template <class Kind>
int run(const TopOptions& options, const Picture<Kind>& picture) {
  Kind before = picture.read();
  do {
    std::this_thread::sleep_for(std::chrono::duration<double>(options.interval));
    Kind now = picture.read();
    show(options, picture, before, now);
    before = std::move(now);
  } while (!options.once && std::ferror(stdout) == 0);
  return 0;
}

int show(const TopOptions& options) {
  if (options.files) {
    return run(options, Picture<FilesReading>{read_file_clients, top_files_text, top_files_json});
  }
  return run(options, Picture<Reading>{read_processes, top_text, top_json});
}

}  // namespace

Action add_top(CLI::App& command) {
  auto options = std::make_shared<TopOptions>();
  command.add_flag("--once", options->once, "Show one interval and exit");
  command.add_flag("--json", options->json, "Print one JSON object a line instead of a table");
  command.add_flag("--files", options->files,
                   "Show the programs that use the cache of wherry::files instead: what they read, and from where");
  command.add_option("--interval", options->interval, "Seconds to measure rates over, between two pictures")
      ->check(CLI::Range(kShortestInterval, kLongestInterval))
      ->capture_default_str();
  command.footer(
      "OUT and IN are payload per second; FILL is how full the ring of that direction was when its side last looked;\n"
      "SLEEPS/s and WAKES/s count the system calls spent on waiting and on waking the peer.\n"
      "Processes started with WHERRY_STATISTICS=off, and those of other users, are not shown.\n"
      "With --files, counts since a program became a client of its card: READS of files looked at, HIT the share of\n"
      "them and BYTES what came from the cache, FILLS blocks put there (AGAIN: wanted before; LOST: changed "
      "meanwhile),\n"
      "CHANGES; and why reads were the kernel's: FIRST, nobody wanted that before; CHANGED, the file was changed a\n"
      "moment ago; WRITER, it has one that cannot be seen; END, it ends there; OTHER, no place, or too large.");
  return [options] { return show(*options); };
}

}  // namespace wherry::tools
