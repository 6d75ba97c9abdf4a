// SPDX-License-Identifier: Apache-2.0
// The key by which a worker tells the merger which objects of a file replace those of its previous files.
#pragma once

namespace wherry::layout {

/// A key in the top directory, a std::vector<std::string>: the paths of the objects that are not reset after each file.
/// If a later file of this worker contains such an object, it contains all of it again. The merger consumes the key: it
/// is not part of the output.
constexpr const char* kRootWholeObjects = "wherry:whole";

}  // namespace wherry::layout
