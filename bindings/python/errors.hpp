// SPDX-License-Identifier: Apache-2.0
// Failures as exceptions of Python: the classes of wherry/errors.py, which derive from OSError.
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
  std::size_t bytes = 0;  ///< moved before it
};

/// Throws the exception whose class the errno value chooses. Needs the GIL.
[[noreturn]] void raise_error(const Failure& failure);
/// The same of a call that moved data.
[[noreturn]] void raise_result(const Result& result, const char* operation, const std::string& address);
/// Makes wherry::Error an exception of Python wherever a bound function throws it.
void translate_errors();

}  // namespace wherry::python
