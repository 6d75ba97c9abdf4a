// SPDX-License-Identifier: Apache-2.0
#include "bench/questions/file/crossing.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

namespace wherry::bench::file {
namespace {

struct Pair {
  double size;
  double lead;  ///< logarithm of what `large` is to `small`
};

std::vector<Pair> pairs(std::span<const Row> rows, const std::string& mode, std::uint32_t processes,
                        const std::string& small, const std::string& large) {
  std::map<std::uint64_t, std::map<std::string, double>> found;
  for (const Row& row : rows) {
    if (row.mode == mode && row.metric == "GB/s" && row.senders == processes && row.median > 0) {
      found[row.size][row.system] = row.median;
    }
  }
  std::vector<Pair> leads;
  for (const auto& [size, medians] : found) {
    if (medians.contains(small) && medians.contains(large)) {
      leads.push_back({static_cast<double>(size), std::log(medians.at(large) / medians.at(small))});
    }
  }
  return leads;
}

}  // namespace

std::string crossing(std::span<const Row> rows, const std::string& mode, std::uint32_t processes,
                     const std::string& small, const std::string& large) {
  const std::vector<Pair> leads = pairs(rows, mode, processes, small, large);
  if (leads.size() < 2) return {};
  // Where both are about the same one sample decides: one size alone is no end of a lead.
  std::size_t from = 0;
  while (from < leads.size() && (leads[from].lead < 0 || (from + 1 < leads.size() && leads[from + 1].lead < 0))) ++from;
  if (from == leads.size()) return fmt::format("{} is the faster up to the longest unit; {} is not\n", small, large);
  if (from == 0) return fmt::format("{} is the faster from the shortest unit on; {} is not\n", large, small);
  const Pair& before = leads[from - 1];
  const Pair& after = leads[from];
  const double share = before.lead < 0 ? before.lead / (before.lead - after.lead) : 0;
  const double size = before.size * std::pow(after.size / before.size, share);
  return fmt::format("{} is faster than {} from units of about {} on\n", large, small,
                     size < 1024 ? fmt::format("{:.0f} B", size) : fmt::format("{:.1f} KiB", size / 1024));
}

std::string crossings(std::span<const Row> rows, const std::string& mode, std::uint32_t processes) {
  constexpr std::array kPairs{std::pair{"wherry-api-cache", "wherry-api-host"},
                              std::pair{"wherry-mount-cache", "wherry-mount-host"},
                              std::pair{"wherry-mount-card", "wherry-mount-host"}};
  std::string text;
  for (const auto& [small, large] : kPairs) text += crossing(rows, mode, processes, small, large);
  return text;
}

}  // namespace wherry::bench::file
