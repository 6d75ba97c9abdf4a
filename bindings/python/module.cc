// SPDX-License-Identifier: Apache-2.0
// The module wherry._native, the native part of the package wherry.
#include <nanobind/nanobind.h>

#include <wherry/wherry.h>

#include "bindings/python/connection.hpp"
#include "bindings/python/errors.hpp"

NB_MODULE(_native, module) {
  namespace python = wherry::python;
  // A thread that waits forever keeps its objects when the interpreter ends. That is not a leak to report.
  nanobind::set_leak_warnings(false);
  module.doc() = "Wherry: data between processes, cards and machines.";
  module.attr("__version__") = WHERRY_VERSION;
  python::watch_interpreter(module);
  python::translate_errors();
  python::bind_memory(module);
  python::bind_connection(module);
  python::bind_stream(module);
  python::bind_setup(module);
  python::bind_framed(module);
  python::bind_poller(module);
  python::bind_publish(module);
  python::bind_subscribe(module);
  python::bind_mailbox(module);
  python::bind_windows(module);
  python::bind_files(module);
}
