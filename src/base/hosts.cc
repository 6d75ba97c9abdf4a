// SPDX-License-Identifier: Apache-2.0
#include "base/hosts.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include <wherry/error.hpp>

#include "base/printable.hpp"

namespace wherry {
namespace {

constexpr std::string_view kAdvice = "use lines such as \"node17\", \"node17 slots=4\" or \"4-7 node17\"";
constexpr std::uint32_t kNodes = 65536;
constexpr std::size_t kLongestHost = 255;

struct NodeRange {
  std::uint32_t first;
  std::uint32_t last;
};

class HostLine {
 public:
  HostLine(std::string_view line, std::string where) : where_(std::move(where)) {
    std::istringstream in(std::string(line.substr(0, line.find('#'))));
    for (std::string word; in >> word;) words_.push_back(word);
  }

  [[nodiscard]] bool empty() const { return words_.empty(); }

  /// Returns the nodes that the line gives. Empty: it gives none.
  [[nodiscard]] std::optional<NodeRange> nodes() const {
    const std::string& word = words_.front();
    if (word.find_first_not_of("0123456789-") != std::string::npos) return std::nullopt;
    const std::size_t hyphen = word.find('-');
    NodeRange range{number(word.substr(0, hyphen)), 0};
    range.last = hyphen == std::string::npos ? range.first : number(word.substr(hyphen + 1));
    if (range.last < range.first) refuse("\"" + word + "\" ends before it begins");
    return range;
  }

  [[nodiscard]] std::string host(bool behind_nodes) const {
    if (behind_nodes && words_.size() < 2) refuse("no host follows \"" + words_.front() + "\"");
    std::string_view word = words_[behind_nodes ? 1 : 0];
    if (const auto at = word.find('@'); at != std::string_view::npos) word.remove_prefix(at + 1);
    if (word.starts_with('[')) {
      const std::size_t end = word.find(']');
      if (end == std::string_view::npos) refuse("\"" + printable(word) + "\" lacks a ]");
      word = word.substr(1, end - 1);
    } else if (std::ranges::count(word, ':') == 1) {  // with more colons it is an IPv6 address
      word = word.substr(0, word.find(':'));
    }
    constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%";
    if (word.empty() || word.size() > kLongestHost || word.front() == '-' ||
        word.find_first_not_of(kAllowed) != std::string_view::npos) {
      refuse("\"" + printable(word) + "\" is not the name or address of a host");
    }
    return std::string(word);
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(EINVAL, "read hosts", where_, what + "; " + std::string(kAdvice));
  }

 private:
  [[nodiscard]] std::uint32_t number(std::string_view text) const {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value >= kNodes) {
      refuse("\"" + std::string(text) + "\" is not a node from 0 to 65535");
    }
    return value;
  }

  std::string where_;
  std::vector<std::string> words_;
};

}  // namespace

Hosts Hosts::parse(std::string_view text, const std::string& file) {
  Hosts hosts;
  std::uint32_t next = 0;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const HostLine line(text.substr(0, end), file + ":" + std::to_string(++number));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    const auto said = line.nodes();
    const NodeRange nodes = said.value_or(NodeRange{next, next});
    if (nodes.last >= kNodes) line.refuse("there is no node above 65535");
    const std::string host = line.host(said.has_value());
    for (std::uint32_t node = nodes.first; node <= nodes.last; ++node) {
      if (!hosts.hosts_.emplace(static_cast<std::uint16_t>(node), host).second) {
        line.refuse("node " + std::to_string(node) + " has a host already");
      }
    }
    next = nodes.last + 1;
  }
  return hosts;
}

Hosts Hosts::read(const std::string& file) {
  constexpr const char* kWhat = "WHERRY_HOSTS names it: a file with the host of each node";
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) throw Error(EISDIR, "read hosts", file, kWhat);
  errno = 0;
  std::ifstream in(file);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  if (!in) throw Error(errno != 0 ? errno : EIO, "read hosts", file, kWhat);
  return parse(text.view(), file);
}

const std::string* Hosts::host_of(std::uint16_t node) const {
  const auto found = hosts_.find(node);
  return found == hosts_.end() ? nullptr : &found->second;
}

}  // namespace wherry
