// SPDX-License-Identifier: Apache-2.0
// What a worker says to the merger of the objects in a file that it hands over.
#pragma once

namespace wherry::layout {

/// A key at the top, of a std::vector<std::string>: the paths of those objects which are not begun anew with each file.
/// The next file of this worker in which one of them is has all of it again. The merger takes it for itself.
constexpr const char* kRootWholeObjects = "wherry:whole";

}  // namespace wherry::layout
