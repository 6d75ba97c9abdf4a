// SPDX-License-Identifier: Apache-2.0
#include "manual/api/c_header.hpp"

#include <algorithm>
#include <cctype>
#include <stdexcept>

namespace wherry::manual {
namespace {

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Replaces each run of white space by one space.
std::string squeezed(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (!is_space(c)) {
      result += c;
    } else if (!result.empty() && result.back() != ' ') {
      result += ' ';
    }
  }
  while (result.ends_with(' ')) result.pop_back();
  return result;
}

/// Converts the inside of a comment: removes the stars at the line starts, and makes each paragraph one line.
std::string paragraphs(std::string_view inside) {
  std::string text;
  std::string paragraph;
  const auto end_paragraph = [&] {
    if (paragraph.empty()) return;
    text += (text.empty() ? "" : "\n") + squeezed(paragraph);
    paragraph.clear();
  };
  while (!inside.empty()) {
    const std::size_t end = std::min(inside.find('\n'), inside.size());
    std::string_view line = inside.substr(0, end);
    inside.remove_prefix(std::min(end + 1, inside.size()));
    line.remove_prefix(std::min(line.find_first_not_of(" \t*"), line.size()));
    if (line.empty()) {
      end_paragraph();
    } else {
      paragraph += std::string(line) + ' ';
    }
  }
  end_paragraph();
  return text;
}

/// The name before the first parenthesis, if it begins with "wherry_".
std::string function_name(std::string_view declaration) {
  const std::size_t end = declaration.find('(');
  if (end == std::string_view::npos) return {};
  std::size_t begin = end;
  while (begin > 0 && is_name(declaration[begin - 1])) --begin;
  const std::string_view name = declaration.substr(begin, end - begin);
  return name.starts_with("wherry_") ? std::string(name) : std::string();
}

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  CHeader read() {
    while (!rest_.empty()) step();
    end_group();
    return std::move(header_);
  }

 private:
  void step() {
    if (is_space(rest_.front())) return skip_space();
    if (rest_.starts_with("/*")) return take_comment(until("*/"));
    if (rest_.starts_with('#')) return skip_directive();
    if (rest_.starts_with("extern \"C\" {")) {
      rest_.remove_prefix(rest_.find('{') + 1);
    } else if (rest_.starts_with('}')) {
      rest_.remove_prefix(1);
    } else {
      take_declaration();
    }
  }

  /// An empty line ends a group.
  void skip_space() {
    const std::size_t end = std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size());
    const std::string_view space = rest_.substr(0, end);
    if (std::count(space.begin(), space.end(), '\n') > 1) end_group();
    rest_.remove_prefix(end);
  }

  void skip_directive() {
    std::size_t end = rest_.find('\n');
    while (end != std::string_view::npos && rest_[end - 1] == '\\') end = rest_.find('\n', end + 1);
    rest_.remove_prefix(std::min(end, rest_.size()));
    comment_.clear();
    continues_ = false;
  }

  void take_comment(std::string_view comment) {
    const std::string text = paragraphs(comment.substr(2, comment.size() - 4));
    if (text.starts_with("SPDX")) return;
    if (header_.purpose.empty()) {
      header_.purpose = text;
    } else {
      comment_ = text;
      continues_ = false;
    }
  }

  /// Takes a declaration up to its semicolon, braces included.
  void take_declaration() {
    std::size_t end = 0;
    int depth = 0;
    while (end < rest_.size() && (depth > 0 || rest_[end] != ';')) {
      if (rest_[end] == '{') ++depth;
      if (rest_[end] == '}') --depth;
      ++end;
    }
    if (end == rest_.size()) throw std::runtime_error("no semicolon after: " + squeezed(rest_.substr(0, 60)));
    const std::string declaration = squeezed(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    skip_remark();
    const std::string name = declaration.find('{') == std::string::npos && !declaration.starts_with("typedef")
                                 ? function_name(declaration)
                                 : std::string();
    if (name.empty()) {
      // The comment of a struct also belongs to the function behind it.
      if (declaration.find('{') == std::string::npos) comment_.clear();
      continues_ = false;
      return;
    }
    // A close function starts its own entry: no comment describes it together with the functions before it.
    if (!continues_ || group_.empty() || name.ends_with("_close")) group_.push_back({std::move(comment_), {}});
    comment_.clear();
    continues_ = true;
    group_.back().functions.push_back({name, declaration});
  }

  /// Skips a comment on the line of its declaration.
  void skip_remark() {
    const std::size_t begin = rest_.find_first_not_of(" \t");
    if (begin == std::string_view::npos || !rest_.substr(begin).starts_with("/*")) return;
    rest_.remove_prefix(begin);
    until("*/");
  }

  /// Takes the text up to the mark, the mark included.
  std::string_view until(std::string_view mark) {
    const std::size_t found = rest_.find(mark);
    if (found == std::string_view::npos) throw std::runtime_error("a comment does not end");
    const std::string_view taken = rest_.substr(0, found + mark.size());
    rest_.remove_prefix(taken.size());
    return taken;
  }

  void end_group() {
    comment_.clear();
    continues_ = false;
    if (!group_.empty()) header_.groups.push_back(std::move(group_));
    group_.clear();
  }

  std::string_view rest_;
  CHeader header_;
  Group group_;
  std::string comment_;     // Of the declaration that follows.
  bool continues_ = false;  // Whether a function without a comment belongs to the one before.
};

}  // namespace

CHeader read_c_header(std::string_view text) { return Reader(text).read(); }

}  // namespace wherry::manual
