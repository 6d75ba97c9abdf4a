// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <functional>
#include <set>

#include "bench/file/question.hpp"
#include "bench/harness/table.hpp"

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
    case Figure::used_write:
      break;
  }
  return "made and written, in pieces and at once, without fsync";
}

double gigabytes(const Finding& finding) { return static_cast<double>(finding.useful_bytes) / 1e9; }

std::string processes_text(std::uint32_t count) {
  return count == 1 ? "one process" : fmt::format("{} processes", count);
}

}  // namespace

void append_rows(std::vector<Row>& rows, const std::string& system, const Point& point,
                 std::span<const Finding> findings) {
  if (findings.empty()) return;
  const auto add = [&](const std::string& metric, const std::function<double(const Finding&)>& figure) {
    std::vector<double> samples;
    for (const Finding& finding : findings) samples.push_back(figure(finding));
    Row row{.bench = "file",
            .system = system,
            .mode = word_of(point.figure),
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
    const std::string mode = word_of(figure);
    std::set<std::uint64_t> shared;  // Sizes that several numbers of processes had.
    for (const Row& row : rows) {
      if (row.mode == mode && row.senders != options.senders.at(0)) shared.insert(row.size);
    }
    const auto add = [&](const std::string& title, const std::string& metric, bool high) {
      TableOf what{
          .title = fmt::format("{}: {}, {}, by unit", title, text_of(figure), processes_text(options.senders.at(0))),
          .bench = "file",
          .mode = mode,
          .senders = options.senders.at(0),
          .metric = metric,
          .highest_is_best = high,
          .reference = "native",
          .spread = true};
      text += table(rows, what);
      what.columns = Columns::senders;
      for (const std::uint64_t size : shared) {
        std::vector<Row> some;
        for (const Row& row : rows) {
          if (row.size == size) some.push_back(row);
        }
        what.title =
            fmt::format("{}: {}, units of {}, by number of processes", title, text_of(figure), size_text(size));
        text += table(some, what);
      }
    };
    add("GB/s", "GB/s", true);
    add("CPU seconds per GB", "cpu_s_per_GB", false);
  }
  return text;
}

}  // namespace wherry::bench::file
