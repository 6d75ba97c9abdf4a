// SPDX-License-Identifier: Apache-2.0
// Text in roff, the language of man pages.
#pragma once

#include <string>
#include <string_view>

namespace wherry::manual {

/// Escapes the characters that are special in roff, and a dot or quote at the start, which would make the line a
/// request.
std::string escape(std::string_view text);

std::string bold(std::string_view text);

std::string upper(std::string text);

/// Removes the full stop, for the text behind the dash in the section NAME.
std::string brief(std::string text);

}  // namespace wherry::manual
