// SPDX-License-Identifier: Apache-2.0
// Failures as Python exceptions: the classes of wherry/errors.py, which derive from OSError.
#pragma once

#include <cstddef>
#include <string>

#include <nanobind/nanobind.h>

#include <wherry/wherry.hpp>

namespace wherry::python {

struct Failure {
  int error = 0;
  std::string operation{};
  std::string address{};
  std::string advice{};
  std::size_t bytes = 0;  ///< moved before the failure
};

/// Throws the exception of the errno value's class. Needs the GIL.
[[noreturn]] void raise_error(const Failure& failure);
/// The same for a call that moves data.
[[noreturn]] void raise_result(const Result& result, const char* operation, const std::string& address);
/// Translates wherry::Error into a Python exception in all bound functions.
void translate_errors();

}  // namespace wherry::python
