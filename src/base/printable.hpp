// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace wherry {

/// Bytes from a peer or a directory as they may be shown on a terminal: the bytes of control characters (C0, DEL, C1),
/// and those that are not UTF-8, of which a terminal may make controls, become \xNN.
std::string printable(std::string_view text);

}  // namespace wherry
