// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "bench/harness/table.hpp"
#include "bench/questions/root/question.hpp"

namespace wherry::bench::root {
namespace {

/// What its metrics begin with. Transfer has the names that all questions use.
std::string prefix_of(Figure figure) { return figure == Figure::transfer ? "" : word_of(figure) + "_"; }

double gigabytes(const Finding& finding) { return static_cast<double>(finding.useful_bytes) / 1e9; }

/// The tables of one mode.
class Tables {
 public:
  Tables(std::span<const Row> rows, std::string mode) : mode_(std::move(mode)) {
    for (const Row& row : rows) {
      if (row.mode == mode_) rows_.push_back(row);
    }
  }

  std::string text() {
    add("GB/s, transfer only", "GB/s", 1, true);
    add("GB/s, live fill", "fill_GB/s", 1, true);
    add("GB/s, with merge", "merge_GB/s", 1, true);
    for (const Figure figure : {Figure::transfer, Figure::fill, Figure::merge}) {
      const std::string prefix = prefix_of(figure);
      add("CPU seconds per GB, " + word_of(figure), prefix + "cpu_s_per_GB", 1, false);
      add("of which the server's, " + word_of(figure), prefix + "server_cpu_s_per_GB", 1, false);
    }
    add("bytes sent per byte of a file, live fill", "fill_sent_per_byte", 1, false);
    add("MB of memory per worker that holds a full file", "memory_bytes_per_worker", 1e6, false);
    return text_;
  }

 private:
  void add(const std::string& title, const std::string& metric, double unit, bool high) {
    std::set<std::uint64_t> sizes;
    std::set<std::uint32_t> workers;
    for (const Row& row : rows_) {
      if (row.metric != metric) continue;
      sizes.insert(row.size);
      workers.insert(row.senders);
    }
    TableOf what{.title = {},
                 .bench = "root",
                 .mode = mode_,
                 .metric = metric,
                 .unit = unit,
                 .highest_is_best = high,
                 .compared = "wherry",
                 .compared_to = {"tsocket-tcp", "tsocket-unix", "tsocket-unix-corrected", "hadd", "tbuffermerger"},
                 .spread = true};
    for (const std::uint64_t size : sizes) {
      what.title = fmt::format("{}, {}, files of {}, by number of workers", title, mode_, size_text(size));
      what.columns = Columns::senders;
      append(what, [size](const Row& row) { return row.size == size; });
    }
    for (const std::uint32_t count : workers) {
      what.title = fmt::format("{}, {}, {} workers, by size of a file", title, mode_, count);
      what.columns = Columns::sizes;
      what.senders = count;
      append(what, [count](const Row& row) { return row.senders == count; });
    }
  }

  /// What stands alone is in the table by number of workers.
  void append(const TableOf& what, const std::function<bool(const Row&)>& belongs) {
    std::vector<Row> some;
    std::set<std::uint64_t> columns;
    for (const Row& row : rows_) {
      if (row.metric != what.metric || !belongs(row)) continue;
      some.push_back(row);
      columns.insert(what.columns == Columns::sizes ? row.size : row.senders);
    }
    if (columns.size() > 1 || (what.columns == Columns::senders && stands_alone(what.metric, some))) {
      text_ += table(some, what);
    }
  }

  /// Whether no table by size has these.
  [[nodiscard]] bool stands_alone(const std::string& metric, const std::vector<Row>& some) const {
    return std::none_of(rows_.begin(), rows_.end(), [&](const Row& row) {
      return row.metric == metric && row.senders == some.at(0).senders && row.size != some.at(0).size;
    });
  }

  std::string mode_;
  std::vector<Row> rows_;
  std::string text_;
};

}  // namespace

void append_rows(std::vector<Row>& rows, const std::string& version, const Job& job,
                 std::span<const Finding> findings) {
  if (findings.empty()) return;
  const std::string prefix = prefix_of(job.figure);
  const auto add = [&](const std::string& metric, const std::function<double(const Finding&)>& figure) {
    std::vector<double> samples;
    for (const Finding& finding : findings) samples.push_back(figure(finding));
    Row row{.bench = "root",
            .system = job.system,
            .version = version,
            .mode = mode_of(job),
            .senders = job.workers,
            .size = job.size,
            .metric = metric};
    summarise(row, std::move(samples));
    rows.push_back(std::move(row));
  };
  add(prefix + "GB/s", [](const Finding& one) { return gigabytes(one) / one.seconds; });
  add(prefix + "cpu_s_per_GB",
      [](const Finding& one) { return (one.server_cpu_seconds + one.worker_cpu_seconds) / gigabytes(one); });
  add(prefix + "server_cpu_s_per_GB", [](const Finding& one) { return one.server_cpu_seconds / gigabytes(one); });
  if (findings[0].wire_bytes > 0) {
    add(prefix + "sent_per_byte",
        [](const Finding& one) { return static_cast<double>(one.wire_bytes) / static_cast<double>(one.useful_bytes); });
  }
  if (findings[0].memory_bytes > 0) {
    add("memory_bytes_per_worker", [](const Finding& one) { return static_cast<double>(one.memory_bytes); });
  }
}

std::string tables(std::span<const Row> rows, const Options& /*options*/) {
  std::string text;
  for (const char* mode : {"processes", "threads", "processes-higgs", "threads-higgs"})
    text += Tables(rows, mode).text();
  return text;
}

}  // namespace wherry::bench::root
