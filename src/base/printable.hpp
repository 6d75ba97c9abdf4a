// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace wherry {

/// Returns untrusted bytes, from a peer or a directory, in a form that is safe to show on a terminal. Control
/// characters (C0, DEL, C1) become \xNN, and so do bytes that are not UTF-8, because a terminal may take them for
/// controls.
std::string printable(std::string_view text);

}  // namespace wherry
