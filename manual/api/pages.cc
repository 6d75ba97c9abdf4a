// SPDX-License-Identifier: Apache-2.0
#include "manual/api/pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "manual/roff.hpp"
#include "wherry/wherry.h"

namespace wherry::manual {
namespace {

/// The first sentence of a text, or its part before the first semicolon.
std::string first_sentence(const std::string& text) {
  const std::size_t line = text.find('\n');
  const std::string paragraph = text.substr(0, line);
  const std::size_t end = std::min(paragraph.find(". "), paragraph.find("; "));
  return brief(paragraph.substr(0, end));
}

std::string heading(const std::string& name) {
  return fmt::format(".TH \"{}\" 3 \"\" \"Wherry {}\" \"Library Functions\"\n", escape(upper(name)), WHERRY_VERSION);
}

std::string paragraphs(const std::string& text) {
  std::string roff;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    roff += (begin == 0 ? "" : ".PP\n") + escape(text.substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  return roff;
}

std::string included(const std::string& include) {
  return fmt::format(".nf\n.B #include <{}>\n.fi\n", escape(include));
}

std::string names_of(const Group& group) {
  std::string names;
  for (const Described& one : group) {
    for (const Function& function : one.functions) names += (names.empty() ? "" : ", ") + escape(function.name);
  }
  return names;
}

std::string text_of(const Described& one) {
  if (!one.text.empty()) return paragraphs(one.text);
  const std::string& name = one.functions.front().name;
  if (!name.ends_with("_close")) throw std::runtime_error(name + " has no comment: say in the header what it does");
  return "Gives the handle back. It must not be used afterwards.\n";
}

std::string page_of(const Group& group, const std::string& overview, const std::string& include) {
  std::string synopsis;
  std::string description;
  for (const Described& one : group) {
    std::string terms;
    for (const Function& function : one.functions) {
      synopsis += fmt::format(".PP\n.B \"{};\"\n", escape(function.declaration));
      terms += (terms.empty() ? ".TP\n" : ".TQ\n") + bold(function.name + "()") + "\n";
    }
    description += terms + text_of(one);
  }
  const std::string& name = group.front().functions.front().name;
  const std::string& text = group.front().text;
  return heading(name) +
         fmt::format(".SH NAME\n{} \\- {}\n", names_of(group), escape(text.empty() ? name : first_sentence(text))) +
         ".SH SYNOPSIS\n" + included(include) + synopsis + ".SH DESCRIPTION\n" + description +
         fmt::format(".SH SEE ALSO\n{}(3)\n", bold(overview));
}

std::string overview_of(const CHeader& header, const std::string& name, const std::string& include) {
  std::string functions;
  for (const Group& group : header.groups) {
    functions += fmt::format(".TP\n{}(3)\n{}\n", bold(group.front().functions.front().name), names_of(group));
  }
  return heading(name) + fmt::format(".SH NAME\n{} \\- {}\n", escape(name), escape(first_sentence(header.purpose))) +
         ".SH SYNOPSIS\n" + included(include) + ".SH DESCRIPTION\n" + paragraphs(header.purpose) + ".SH FUNCTIONS\n" +
         functions;
}

}  // namespace

std::vector<Page> pages_of(const CHeader& header, const std::string& name, const std::string& include) {
  std::vector<Page> pages{{name, overview_of(header, name, include)}};
  for (const Group& group : header.groups) {
    const std::string& first = group.front().functions.front().name;
    for (const Described& one : group) {
      for (const Function& function : one.functions) {
        const bool leads = function.name != first;
        pages.push_back({function.name, leads ? fmt::format(".so man3/{}.3\n", first) : page_of(group, name, include)});
      }
    }
  }
  return pages;
}

}  // namespace wherry::manual
