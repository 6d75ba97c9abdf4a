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
      "A file appears under its name only when its length and its hash are right and it is on the disk. SIGINT and\n"
      "SIGTERM end the collector.\n"
      "Exit status: 0 if every shipper's session was complete; 1 if something was refused, a shipper died or the\n"
      "collector was stopped while it worked; 2 if the command line is wrong.");
  command
      .add_option(
          "-l,--listen", options->listen,
          "Where shippers connect: wherry://NODE:PORT, * for this node or a free port; tcp://HOST:PORT to compare")
      ->capture_default_str();
  command.add_option("-d,--into", options->into, "Directory to store everything below; made if missing")->required();
  command.add_option("--expect", options->expect,
                     "End after this many shippers have come and gone (default: when told)");
  command.add_option("--at-once", options->at_once, "Shippers served at once; more wait until one is done")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  command.add_flag("--no-sync", options->no_sync,
                   "Do not wait for the disk: after a power failure files may be empty or missing");
  command.add_flag("--json", options->json, "Print the summary as JSON on standard output");
  command.add_flag("-q,--quiet", options->quiet, "No progress, and no summary unless something went wrong");
  return [options] { return collect(*options); };
}

}  // namespace wherry::tools
