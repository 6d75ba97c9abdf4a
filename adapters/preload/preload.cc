// SPDX-License-Identifier: Apache-2.0
//
// Initializes the library when it is loaded, before the program begins.
#include "descriptors.hpp"
#include "directories.hpp"
#include "environment.hpp"
#include "main_program.hpp"
#include "report.hpp"

using namespace wherry::preload;

namespace {

__attribute__((constructor)) void loaded() {
  read_environment();
  if (!any_directories()) return;
  read_report_environment();
  keep_environment();
  if (goes_past_the_c_library()) stop_tracking();
}

}  // namespace
