// SPDX-License-Identifier: Apache-2.0
// Text in the language of man pages.
#pragma once

#include <string>
#include <string_view>

namespace wherry::manual {

/// Letters that roff takes for something else, and a dot or quote at a line's begin, which makes a line a request.
std::string escape(std::string_view text);

std::string bold(std::string_view text);

std::string upper(std::string text);

/// What stands behind the dash of the section NAME is part of a sentence: without its full stop.
std::string brief(std::string text);

}  // namespace wherry::manual
