// SPDX-License-Identifier: Apache-2.0
//
// wherry collect: receives files from any number of shippers.
#include <fmt/format.h>

#include <memory>

#include "collect/collector.hpp"
#include "commands.hpp"
#include "common/json_text.hpp"

namespace wherry::tools {
namespace {

int collect(const CollectOptions& options) {
  const CollectReport report = Collector(options).run();
  std::string text;
  if (options.json) {
    text = json_text(report.to_json()) + "\n";
  } else if (!options.quiet || !report.complete()) {
    text = report.to_text();
  }
  fmt::print("{}", text);
  return report.complete() ? 0 : 1;
}

}  // namespace

Action add_collect(CLI::App& command) {
  const auto options = std::make_shared<CollectOptions>();
  command.footer(
      "A file appears under its name only after its length and its hash were verified and it is on the disk. SIGINT "
      "and\n"
      "SIGTERM end the collector.\n"
      "Exit status: 0 if every shipper's session was complete; 1 if a path was refused, a shipper died or the "
      "collector was\n"
      "stopped during a session; 2 if the command line is wrong.");
  command
      .add_option(
          "-l,--listen", options->listen,
          "Where shippers connect: wherry://NODE:PORT, * for this node or a free port; tcp://HOST:PORT to compare")
      ->capture_default_str();
  command.add_option("-d,--into", options->into, "The directory to store all files below; created if it is missing")
      ->required();
  command.add_option("--expect", options->expect, "End after this many shippers (default: on SIGINT or SIGTERM)");
  command.add_option("--at-once", options->at_once, "Shippers served at the same time; further ones wait")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  command.add_flag("--no-sync", options->no_sync,
                   "Do not wait for the disk: after a power failure files may be empty or missing");
  command.add_flag("--json", options->json, "Print the summary as JSON on standard output");
  command.add_flag("-q,--quiet", options->quiet, "Print no progress, and a summary only after a failure");
  return [options] { return collect(*options); };
}

}  // namespace wherry::tools
