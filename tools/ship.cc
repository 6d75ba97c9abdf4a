// SPDX-License-Identifier: Apache-2.0
//
// wherry ship: sends files and directory trees to a collector.
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "base/printable.hpp"
#include "base/readable.hpp"
#include "commands.hpp"
#include "common/json_text.hpp"
#include "ship/shipper.hpp"

namespace wherry::tools {
namespace {

int ship(const ShipOptions& options) {
  if (options.paths.empty() && options.files_from.empty()) {
    throw std::runtime_error("nothing to ship; name files or directories, or use --files-from");
  }
  std::signal(SIGPIPE, SIG_IGN);  // a collector that has gone is reported as an error
  const ShipReport report = Shipper(options).run();
  if (!report.error.empty()) std::fprintf(stderr, "wherry ship: %s\n", printable(report.error).c_str());
  std::string text;
  if (options.json) {
    text = json_text(report.to_json()) + "\n";
  } else if (!options.quiet) {
    text = report.to_text();
  }
  fmt::print("{}", text);
  return report.complete() ? 0 : 1;
}

}  // namespace

Action add_ship(CLI::App& command) {
  const auto options = std::make_shared<ShipOptions>();
  command.footer(
      "A directory is shipped with all files below it, under its own name; DIR/. ships only its content. With -C or\n"
      "--files-from, paths keep the names with which they are given. Modes (without setuid and setgid), times, "
      "symbolic\n"
      "links and holes are kept. Owners are not kept. Hard links become separate files.\n"
      "Exit status: 0 if the collector has verified all named paths; 1 if not; 2 if the command line is wrong.");
  command.add_option("paths", options->paths, "Files and directories to ship")->type_name("PATH");
  command.add_option("-t,--to", options->to, "The collector: wherry://NODE:PORT; tcp://HOST:PORT to compare")
      ->capture_default_str();
  command.add_option("-C,--directory", options->directory, "Take all paths relative to this directory");
  command.add_option("-T,--files-from", options->files_from,
                     "Read further paths from a file, one per line; - for standard input");
  command.add_flag("-0,--null", options->zero, "The paths of --files-from end with NUL, not newline");
  command.add_flag("--no-recursion", options->no_recursion, "Ship a directory without its content");
  command.add_option("-n,--name", options->name, "The name of this shipper in the collector's report");
  command.add_option("-w,--wait", options->wait, "Seconds to wait until a collector listens")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command.add_flag("--json", options->json, "Print the summary as JSON on standard output");
  command.add_flag("-q,--quiet", options->quiet, "Print no progress and no summary");
  return [options] { return ship(*options); };
}

}  // namespace wherry::tools
