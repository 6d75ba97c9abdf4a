// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

namespace wherry::bench {
namespace {

constexpr std::size_t kColumn = 11;

class Grid {
 public:
  Grid(std::span<const Row> rows, const TableOf& what) : what_(what) {
    for (const Row& row : rows) {
      if (belongs(row)) add(row);
    }
    std::sort(columns_.begin(), columns_.end());
    // Those that one is compared with stand there once more, indented.
    const std::size_t indent = what.compared.empty() && what.reference.empty() ? 0 : 2;
    for (const auto& names : {systems_, limits_}) {
      for (const std::string& name : names) width_ = std::max(width_, name.size() + indent);
    }
  }

  std::string text() {
    if (cells_.empty()) return {};
    text_ = fmt::format("\n{}\n{:<{}}", what_.title, "", width_);
    for (const std::uint64_t column : columns_) text_ += fmt::format("{:>{}} ", head(column), kColumn);
    text_ += '\n';
    for (const std::string& name : systems_) line(name, [&](std::uint64_t column) { return marked(name, column); });
    for (const std::string& name : limits_) line(name, [&](std::uint64_t column) { return plain(name, column); });
    if (what_.ratios) ratios();
    compare();
    refer();
    return text_;
  }

 private:
  [[nodiscard]] bool belongs(const Row& row) const {
    return row.bench == what_.bench && row.mode == what_.mode && row.metric == what_.metric &&
           (what_.columns == Columns::senders || row.senders == what_.senders);
  }

  void add(const Row& row) {
    const std::uint64_t column = what_.columns == Columns::sizes ? row.size : row.senders;
    if (std::find(columns_.begin(), columns_.end(), column) == columns_.end()) columns_.push_back(column);
    auto& systems = is_limit(row.system) ? limits_ : systems_;
    if (std::find(systems.begin(), systems.end(), row.system) == systems.end()) systems.push_back(row.system);
    cells_[{row.system, column}] = row.median;
    spreads_[{row.system, column}] = row.median > 0 ? 100 * row.mad / row.median : 0;
  }

  [[nodiscard]] std::string head(std::uint64_t column) const {
    return what_.columns == Columns::sizes ? size_text(column) : fmt::format("{}", column);
  }

  [[nodiscard]] std::optional<double> cell(const std::string& system, std::uint64_t column) const {
    const auto found = cells_.find({system, column});
    return found == cells_.end() ? std::nullopt : std::optional(found->second);
  }

  [[nodiscard]] bool better(double one, double other) const {
    return what_.highest_is_best ? one > other : one < other;
  }

  /// The best of the systems that `counts`.
  template <class Counts>
  [[nodiscard]] std::optional<double> best(std::uint64_t column, Counts&& counts) const {
    std::optional<double> found;
    for (const std::string& name : systems_) {
      const std::optional<double> value = counts(name) ? cell(name, column) : std::nullopt;
      if (value && (!found || better(*value, *found))) found = value;
    }
    return found;
  }

  [[nodiscard]] std::string plain(const std::string& name, std::uint64_t column) const {
    const std::optional<double> value = cell(name, column);
    if (!value) return "-";
    const std::string text = figure(*value / what_.unit);
    return what_.spread ? fmt::format("{}±{:.0f}%", text, spreads_.at({name, column})) : text;
  }

  [[nodiscard]] std::string marked(const std::string& name, std::uint64_t column) const {
    const bool is_best = cell(name, column) && cell(name, column) == best(column, [](const auto&) { return true; });
    return (is_best ? "*" : "") + plain(name, column);
  }

  void line(const std::string& head, const std::function<std::string(std::uint64_t)>& value) {
    text_ += fmt::format("{:<{}}", head, width_);
    for (const std::uint64_t column : columns_) text_ += fmt::format("{:>{}} ", value(column), kColumn);
    text_ += '\n';
  }

  void ratios() {
    for (const std::string& name : systems_) {
      if (!is_wherry(name)) continue;
      text_ += fmt::format("{}, as a multiple of\n", name);
      ratio(name, "  the best peer", [&](std::uint64_t column) {
        return best(column, [](const std::string& other) { return !is_wherry(other); });
      });
      for (const std::string& limit : limits_) {
        ratio(name, "  " + limit.substr(limit.find(':') + 1),
              [&](std::uint64_t column) { return cell(limit, column); });
      }
    }
  }

  [[nodiscard]] bool here(const std::string& name) const {
    return std::find(systems_.begin(), systems_.end(), name) != systems_.end();
  }

  void compare() {
    if (!here(what_.compared)) return;
    text_ += fmt::format("{}, as a multiple of\n", what_.compared);
    for (const std::string& other : what_.compared_to) {
      if (!here(other)) continue;
      ratio(what_.compared, "  " + other, [&](std::uint64_t column) { return cell(other, column); });
    }
  }

  void refer() {
    if (!here(what_.reference) || systems_.size() < 2) return;
    text_ += fmt::format("as a multiple of {}\n", what_.reference);
    for (const std::string& name : systems_) {
      if (name == what_.reference) continue;
      ratio(name, "  " + name, [&](std::uint64_t column) { return cell(what_.reference, column); });
    }
  }

  void ratio(const std::string& name, const std::string& head,
             const std::function<std::optional<double>(std::uint64_t)>& of) {
    line(head, [&](std::uint64_t column) {
      const std::optional<double> mine = cell(name, column);
      const std::optional<double> other = of(column);
      return mine && other && *other > 0 ? fmt::format("{:.2f}x", *mine / *other) : std::string("-");
    });
  }

  const TableOf& what_;
  std::vector<std::uint64_t> columns_;
  std::vector<std::string> systems_;
  std::vector<std::string> limits_;
  std::map<std::pair<std::string, std::uint64_t>, double> cells_;
  std::map<std::pair<std::string, std::uint64_t>, double> spreads_;
  std::size_t width_ = 16;
  std::string text_;
};

}  // namespace

bool is_limit(const std::string& system) { return system.starts_with("limit:"); }

bool is_wherry(const std::string& system) {
  return system == "wherry" || system.starts_with("wherry-") || system == "scif" || system.starts_with("scif-");
}

std::string figure(double value) {
  const double size = std::abs(value);
  const int digits = size >= 100 || size == 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.1 ? 3 : 4;
  return fmt::format("{:.{}f}", value, digits);
}

std::string table(std::span<const Row> rows, const TableOf& what) { return Grid(rows, what).text(); }

}  // namespace wherry::bench
