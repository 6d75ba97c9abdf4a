// SPDX-License-Identifier: Apache-2.0
//
// What happens when the library is loaded, before the program begins.
#include "directories.hpp"
#include "environment.hpp"
#include "marks.hpp"

namespace {

__attribute__((constructor)) void loaded() {
  using namespace wherry::preload;
  read_environment();
  if (!any_directories()) return;
  keep_environment();
  mark_standard_streams();
}

}  // namespace
