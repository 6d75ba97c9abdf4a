// SPDX-License-Identifier: Apache-2.0
#include "bindings/python/errors.hpp"

#include <cerrno>
#include <exception>
#include <system_error>

namespace nb = nanobind;

namespace wherry::python {
namespace {

const char* advice_of(int error) {
  switch (error) {
    case EBADF:
      return "the object is closed, or belongs to the parent process; open or connect again";
    case ECANCELED:
      return "cancel() or close() ended the call";
    case ECONNRESET:
      return "the peer died, or closed before it finished sending";
    case EMSGSIZE:
      return "send less at a time, or give the receiver a larger ring or pool";
    case ENOBUFS:
      return "release loans that are not needed, or give the publisher a larger pool";
    case ENOTCONN:
      return "call listen or connect first";
    case EPIPE:
      return "the peer has closed or died";
    case EPROTO:
      return "the peer broke the protocol; close the connection";
    default:
      return "";
  }
}

std::string text_of(const Failure& failure) {
  std::string text = failure.operation;
  if (!failure.address.empty()) text += " " + failure.address;
  text += ": " + std::generic_category().message(failure.error);
  if (failure.bytes != 0) text += " after " + std::to_string(failure.bytes) + " bytes";
  return failure.advice.empty() ? text : text + "; " + failure.advice;
}

/// Sets the exception. It runs no Python code, which could release the GIL in a thread that must not return.
void set_exception(const Failure& failure) {
  const nb::module_ errors = nb::module_::import_("wherry.errors");
  const nb::dict classes = errors.attr("BY_ERRNO");
  const nb::int_ number(failure.error);
  const nb::object type = classes.contains(number) ? nb::object(classes[number]) : nb::object(errors.attr("Error"));
  const nb::object exception = type(number, text_of(failure));
  exception.attr("operation") = failure.operation;
  exception.attr("address") = failure.address;
  exception.attr("advice") = failure.advice;
  exception.attr("moved") = failure.bytes;
  PyErr_SetObject(type.ptr(), exception.ptr());
}

}  // namespace

void raise_error(const Failure& failure) {
  set_exception(failure);
  throw nb::python_error();
}

void raise_result(const Result& result, const char* operation, const std::string& address) {
  raise_error({.error = result.error,
               .operation = operation,
               .address = address,
               .advice = advice_of(result.error),
               .bytes = result.bytes});
}

void translate_errors() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      set_exception({.error = error.code().value(),
                     .operation = error.operation(),
                     .address = error.address(),
                     .advice = error.advice()});
    }
  });
}

}  // namespace wherry::python
