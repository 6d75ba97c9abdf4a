// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>

#include "bench/harness/table.hpp"
#include "bench/questions/file/crossing.hpp"
#include "bench/questions/file/question.hpp"

namespace wherry::bench::file {
namespace {

std::string text_of(Figure figure) {
  switch (figure) {
    case Figure::hit:
      return "read, hits";
    case Figure::first:
      return "read, first touch";
    case Figure::cold:
      return "read, cold";
    case Figure::random_read:
      return "random reads, hits";
    case Figure::used_read:
      return "read and summed up, in pieces and at once, hits";
    case Figure::write:
      return "written, without fsync";
    case Figure::synced:
      return "written, with fsync";
    case Figure::random_write:
      return "random writes, without fsync";
    case Figure::used_synced:
      break;
  }
  return "made and written, in pieces and at once, with fsync";
}

double gigabytes(const Finding& finding) { return static_cast<double>(finding.useful_bytes) / 1e9; }

std::string processes_text(std::uint32_t count) {
  return count == 1 ? "one process" : fmt::format("{} processes", count);
}

/// The tables of a figure and metric: by unit, and for sizes that several numbers of processes had by these, and by
/// those of threads.
class Tables {
 public:
  Tables(std::span<const Row> rows, Figure figure, std::uint32_t processes)
      : rows_(rows), figure_(figure), processes_(processes) {}

  [[nodiscard]] std::string text(const std::string& title, const std::string& metric, bool high) const {
    TableOf what{.title = fmt::format("{}: {}, {}, by unit", title, text_of(figure_), processes_text(processes_)),
                 .bench = "file",
                 .mode = word_of(figure_),
                 .senders = processes_,
                 .metric = metric,
                 .highest_is_best = high,
                 .reference = "native",
                 .spread = true};
    std::string text = table(rows_, what);
    // The pieces and the whole of a file that is used are no units to choose among.
    const bool has_units = !word_of(figure_).starts_with("used");
    if (high && has_units) text += crossings(rows_, word_of(figure_), processes_);
    what.columns = Columns::senders;
    for (const bool threads : {false, true}) {
      what.mode = mode_of(figure_, threads);
      for (const std::uint64_t size : sizes(what.mode)) {
        what.title = fmt::format("{}: {}, units of {}, by number of {}", title, text_of(figure_), size_text(size),
                                 threads ? "threads" : "processes");
        text += table(of_size(size), what);
      }
    }
    return text;
  }

 private:
  /// Those that others than the first number of processes had.
  [[nodiscard]] std::set<std::uint64_t> sizes(const std::string& mode) const {
    std::set<std::uint64_t> found;
    for (const Row& row : rows_) {
      if (row.mode == mode && (row.senders != processes_ || mode != word_of(figure_))) found.insert(row.size);
    }
    return found;
  }

  [[nodiscard]] std::vector<Row> of_size(std::uint64_t size) const {
    std::vector<Row> some;
    std::copy_if(rows_.begin(), rows_.end(), std::back_inserter(some),
                 [size](const Row& row) { return row.size == size; });
    return some;
  }

  std::span<const Row> rows_;
  Figure figure_;
  std::uint32_t processes_;
};

}  // namespace

void append_rows(std::vector<Row>& rows, const std::string& system, const Point& point,
                 std::span<const Finding> findings) {
  if (findings.empty()) return;
  const auto add = [&](const std::string& metric, const std::function<double(const Finding&)>& figure) {
    std::vector<double> samples;
    for (const Finding& finding : findings) samples.push_back(figure(finding));
    Row row{.bench = "file",
            .system = system,
            .mode = mode_of(point.figure, point.threads),
            .senders = point.processes,
            .size = point.unit,
            .metric = metric};
    summarise(row, std::move(samples));
    rows.push_back(std::move(row));
  };
  add("GB/s", [](const Finding& one) { return gigabytes(one) / one.seconds; });
  add("cpu_s_per_GB", [](const Finding& one) { return one.cpu_seconds / gigabytes(one); });
}

std::string tables(std::span<const Row> rows, const Options& options) {
  std::string text;
  for (const Figure figure : kFigures) {
    const Tables all(rows, figure, options.senders.at(0));
    text += all.text("GB/s", "GB/s", true);
    text += all.text("CPU seconds per GB", "cpu_s_per_GB", false);
  }
  return text;
}

}  // namespace wherry::bench::file
