// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <wherry/error.hpp>

namespace wherry {

Error::Error(int error, std::string operation, std::string address, std::string advice)
    : std::system_error(error, std::system_category()),
      operation_(std::move(operation)),
      address_(std::move(address)),
      advice_(std::move(advice)),
      text_(operation_) {
  if (!address_.empty()) text_ += " " + address_;
  text_ += ": " + code().message();
  if (!advice_.empty()) text_ += "; " + advice_;
}

}  // namespace wherry
