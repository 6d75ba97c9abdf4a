// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

class TClass;

namespace wherry::merge {

/// All that an object is, in one string: equal objects that cannot be merged are kept once.
std::string identity_of(const std::string& path, TClass& type, void* object);

}  // namespace wherry::merge
