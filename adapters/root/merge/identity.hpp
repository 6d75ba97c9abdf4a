// SPDX-License-Identifier: Apache-2.0
// Recognizes equal objects that cannot be merged.
#pragma once

#include <string>

class TClass;

namespace wherry::merge {

/// Returns a string that is equal for equal objects: path, class and content. Of equal objects the output keeps one.
std::string identity_of(const std::string& path, TClass& type, void* object);

}  // namespace wherry::merge
