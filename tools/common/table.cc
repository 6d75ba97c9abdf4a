// SPDX-License-Identifier: Apache-2.0
#include "common/table.hpp"

#include <algorithm>
#include <utility>

namespace wherry::tools {

void Table::row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text(std::size_t width) const {
  std::vector<std::string> titles;
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    titles.push_back(columns_[i].title);
    widths.push_back(columns_[i].title.size());
    for (const auto& cells : rows_) widths[i] = std::max(widths[i], cells[i].size());
  }
  std::string result = line(titles, widths, width);
  for (const auto& cells : rows_) result += line(cells, widths, width);
  return result;
}

std::string Table::line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths,
                        std::size_t limit) const {
  std::string result;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string padding(widths[i] - cells[i].size(), ' ');
    if (i > 0) result += "  ";
    result += columns_[i].align == Align::right ? padding + cells[i] : cells[i] + padding;
  }
  result.erase(result.find_last_not_of(' ') + 1);
  if (limit != 0 && result.size() > limit) result.resize(limit);
  return result + "\n";
}

}  // namespace wherry::tools
