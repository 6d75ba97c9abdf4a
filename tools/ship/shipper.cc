// SPDX-License-Identifier: Apache-2.0
#include "ship/shipper.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.hpp"
#include "base/printable.hpp"
#include "base/readable.hpp"
#include "base/unique_fd.hpp"
#include "ship/measure.hpp"
#include "ship/tree.hpp"

namespace wherry::tools {
namespace {

std::string read_whole(const std::string& name) {
  const bool standard = name == "-";
  const UniqueFd file(standard ? -1 : ::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  const int descriptor = standard ? STDIN_FILENO : file.get();
  std::string text;
  for (std::array<char, 65536> piece;;) {
    const ssize_t n = descriptor < 0 ? -1 : ::read(descriptor, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      throw Error(errno, "read", standard ? "standard input" : name,
                  "give --files-from a readable file, or - for standard input");
    }
    if (n == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(n));
  }
}

std::vector<std::string> read_list(const ShipOptions& options) {
  std::vector<std::string> list;
  if (options.files_from.empty()) return list;
  const std::string text = read_whole(options.files_from);
  const char separator = options.zero ? '\0' : '\n';
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = rest.find(separator);
    if (const std::string_view path = rest.substr(0, end); !path.empty()) list.emplace_back(path);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return list;
}

double seconds_since(std::uint64_t started_ns) { return static_cast<double>(monotonic_ns() - started_ns) / 1e9; }

}  // namespace

Shipper::Shipper(ShipOptions options) : options_(std::move(options)), listed_(read_list(options_)) {
  if (!options_.directory.empty() && ::chdir(options_.directory.c_str()) != 0) {
    throw Error(errno, "enter", options_.directory, "give -C a directory that exists");
  }
  report_.to = options_.to;
  report_.label = options_.name;
}

ShipReport Shipper::run() {
  Measure total{listed_.size(), 0};
  const bool drawn = !options_.quiet && ::isatty(STDERR_FILENO) == 1;
  if (drawn) {
    std::vector<std::string> all = options_.paths;
    all.insert(all.end(), listed_.begin(), listed_.end());
    total = measure(all, !options_.no_recursion);
  }

  const auto wait = std::chrono::duration<double>(options_.wait);
  const std::unique_ptr<Channel> channel = connect_channel("wherry ship", options_.to, wait);
  started_ns_ = monotonic_ns();
  // Made before the results, because the collector may refuse at any moment, and refusals are shown.
  Progress progress(options_.quiet ? Progress::Show::never : Progress::Show::if_terminal,
                    [&] { return progress_text(total.bytes); });
  progress_ = &progress;
  Results results(*channel, [this](std::string path, std::string error) {
    fail(std::move(path), std::move(error), "the collector refused");
  });
  Shipment shipment(*channel, results, counts_);
  try {
    shipment.hello(options_.name, total.files, total.bytes);
    ship_all(shipment);
    shipment.goodbye(unreadable_);
  } catch (const Error& error) {
    report_.error = error.what();
  }
  // The collector's reason for the end is more informative than the connection's error.
  if (std::string problem = results.wait(shipment.last_id()); !problem.empty()) report_.error = std::move(problem);
  progress.stop();

  report_.files = counts_.files;
  report_.directories = counts_.directories;
  report_.symlinks = counts_.symlinks;
  report_.bytes = counts_.bytes;
  report_.paths = shipment.last_id();
  report_.answered = results.settled();
  report_.seconds = seconds_since(started_ns_);
  return std::move(report_);
}

void Shipper::ship_all(Shipment& shipment) {
  const auto failed = [this](std::string path, std::string error) {
    ++unreadable_;
    fail(std::move(path), std::move(error), "cannot ship");
  };
  Tree tree(shipment, !options_.no_recursion, failed);
  const bool as_given = !options_.directory.empty();
  for (const std::string& path : options_.paths) {
    tree.ship(AT_FDCWD, path, as_given ? plain_name(path) : base_name(path));
  }
  for (const std::string& path : listed_) tree.ship(AT_FDCWD, path, plain_name(path));
}

void Shipper::fail(std::string path, std::string error, const char* what) {
  const std::lock_guard lock(mutex_);
  progress_->message(fmt::format("wherry ship: {} {}: {}", what, printable(path), printable(error)));
  report_.failures.push_back({std::move(path), std::move(error)});
}

std::string Shipper::progress_text(std::uint64_t total_bytes) const {
  const std::uint64_t bytes = counts_.bytes;
  const double seconds = seconds_since(started_ns_);
  const auto rate = seconds > 0 ? static_cast<std::uint64_t>(std::llround(static_cast<double>(bytes) / seconds)) : 0;
  return fmt::format("ship: {} files, {}, {}/s {}", counts_.files.load(), human_bytes(bytes), human_bytes(rate),
                     Progress::bar(bytes, total_bytes));
}

nlohmann::json ShipReport::to_json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const Failure& failure : failures) list.push_back({{"path", failure.path}, {"error", failure.error}});
  return {{"command", "ship"},
          {"status", complete() ? "complete" : "incomplete"},
          {"to", to},
          {"label", label},
          {"files", files},
          {"directories", directories},
          {"symlinks", symlinks},
          {"bytes", bytes},
          {"paths", paths},
          {"answered", answered},
          {"seconds", seconds},
          {"gigabytes_per_second", seconds > 0 ? static_cast<double>(bytes) / seconds / 1e9 : 0},
          {"error", error.empty() ? nlohmann::json() : nlohmann::json(error)},
          {"failures", list}};
}

std::string ShipReport::to_text() const {
  // Unless all paths were verified, the sums count only what was sent.
  std::string text = fmt::format("{}{}, {}, {}: {} in {}, {}", complete() ? "" : "sent ", counted(files, "file"),
                                 counted(directories, "directory"), counted(symlinks, "symlink"), human_bytes(bytes),
                                 human_time(seconds), human_rate(bytes, seconds));
  if (complete()) text += ", verified";
  if (!failures.empty()) text += fmt::format("; {} failed", counted(failures.size(), "path"));
  if (!error.empty()) {
    text +=
        fmt::format("; incomplete: the collector answered for the first {} of {}", answered, counted(paths, "path"));
  }
  return text + "\n";
}

}  // namespace wherry::tools
