// SPDX-License-Identifier: Apache-2.0
// Man pages of section 3.
#pragma once

#include <string>
#include <vector>

#include "manual/api/c_header.hpp"

namespace wherry::manual {

struct Page {
  std::string name;  ///< without its section
  std::string text;
};

/// Returns a page for the header, named `name`, which lists its functions; a page for each group, named as its first
/// function; and for each other function a page that refers to its group. `include` is the header for programs to
/// include.
std::vector<Page> pages_of(const CHeader& header, const std::string& name, const std::string& include);

}  // namespace wherry::manual
