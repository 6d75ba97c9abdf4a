// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "bench/harness/table.hpp"
#include "bench/questions/mailbox/question.hpp"

namespace wherry::bench::mailbox {
namespace {

constexpr const char* kShare = "share_of_fewest";
constexpr const char* kCost = "ns_receive";

/// The same system, mode, size and metric with the fewest processes started.
const Row* fewest(std::span<const Row> rows, const Row& row) {
  const Row* found = nullptr;
  for (const Row& one : rows) {
    const bool alike =
        one.system == row.system && one.mode == row.mode && one.size == row.size && one.metric == row.metric;
    if (alike && (found == nullptr || one.senders < found->senders)) found = &one;
  }
  return found;
}

double spread_of(const Row& row) { return row.median > 0 ? row.mad / row.median : 0; }

std::vector<Row> of_size(std::span<const Row> rows, std::uint64_t size) {
  std::vector<Row> some;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(some), [size](const Row& row) { return row.size == size; });
  return some;
}

/// Figures of one mode.
class Tables {
 public:
  Tables(std::span<const Row> rows, const Options& options, std::string mode)
      : rows_(rows), options_(options), mode_(std::move(mode)) {}

  std::string text() {
    for (const std::uint32_t started : options_.senders) {
      const std::string whom = fmt::format("2 of {} processes started, {}", started, mode_);
      by_size("GB/s", "GB/s", 1, true, started, whom);
      by_size(fmt::format("GB/s as a share of that with {}", options_.senders.at(0)), kShare, 1, true, started, whom);
      by_size("one way, median, us", "ns_p50", 1e3, false, started, whom);
    }
    for (const std::uint64_t size : options_.sizes) {
      add(of_size(rows_, size),
          {.title = fmt::format("GB/s, messages of {}, by number started, {}", size_text(size), mode_),
           .bench = "mailbox",
           .mode = mode_,
           .metric = "GB/s",
           .columns = Columns::senders,
           .spread = true});
    }
    add(rows_, {.title = "ns for each message of 8 bytes, by number of senders connected, of which one sends",
                .bench = "mailbox",
                .mode = mode_,
                .metric = kCost,
                .highest_is_best = false,
                .columns = Columns::senders,
                .spread = true});
    return text_;
  }

 private:
  void by_size(const std::string& what, const std::string& metric, double unit, bool high, std::uint32_t started,
               const std::string& whom) {
    if (metric == kShare && started == options_.senders.at(0)) return;
    add(rows_, {.title = fmt::format("{}, {}", what, whom),
                .bench = "mailbox",
                .mode = mode_,
                .senders = started,
                .metric = metric,
                .unit = unit,
                .highest_is_best = high,
                .spread = true});
  }

  void add(std::span<const Row> rows, const TableOf& what) { text_ += table(rows, what); }

  std::span<const Row> rows_;
  const Options& options_;
  std::string mode_;
  std::string text_;
};

}  // namespace

void complete(std::vector<Row>& rows) {
  for (Row& row : rows) {
    const std::size_t slash = row.system.find('/');
    // What has no mailboxes stands beside the two that talk.
    row.senders = slash == std::string::npos ? 2 : static_cast<std::uint32_t>(std::stoul(row.system.substr(slash + 1)));
    row.system.resize(std::min(slash, row.system.size()));
  }
  std::vector<Row> shares;
  for (const Row& row : rows) {
    const Row* first = fewest(rows, row);
    if (row.metric != "GB/s" || first == nullptr || first->median <= 0 || first == &row) continue;
    Row share = row;
    share.metric = kShare;
    share.median = row.median / first->median;
    share.mad = share.median * (spread_of(row) + spread_of(*first));
    shares.push_back(share);
  }
  rows.insert(rows.end(), shares.begin(), shares.end());
}

std::vector<Row> receive_costs(std::span<const Row> rows) {
  std::vector<Row> costs;
  for (const Row& row : rows) {
    if (row.metric != "msgs/s" || row.median <= 0) continue;
    Row cost = row;
    cost.metric = kCost;
    cost.senders = row.senders - 1;
    cost.median = 1e9 / row.median;
    cost.mad = cost.median * spread_of(row);
    costs.push_back(cost);
  }
  return costs;
}

std::string tables(std::span<const Row> rows, const Options& options) {
  std::string text;
  for (const std::string& mode : options.modes) text += Tables(rows, options, mode).text();
  return text;
}

}  // namespace wherry::bench::mailbox
