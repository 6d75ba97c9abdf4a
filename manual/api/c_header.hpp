// SPDX-License-Identifier: Apache-2.0
// The functions that a C header declares, with their comments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wherry::manual {

struct Function {
  std::string name;
  std::string declaration;  ///< on one line, without its semicolon
};

/// Functions that one comment describes.
struct Described {
  std::string text;  ///< a line for each paragraph; empty if there is no comment
  std::vector<Function> functions;
};

/// Declarations without an empty line between them.
using Group = std::vector<Described>;

struct CHeader {
  std::string purpose;  ///< its first comment after the license, a line for each paragraph
  std::vector<Group> groups;
};

/// Parses one of our own headers: comments of one style, declarations that end in a semicolon, no function bodies, and
/// only functions with names that begin with "wherry_". Throws std::runtime_error for a comment or a declaration that
/// does not end.
CHeader read_c_header(std::string_view text);

}  // namespace wherry::manual
