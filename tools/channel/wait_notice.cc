// SPDX-License-Identifier: Apache-2.0
#include "channel/wait_notice.hpp"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace wherry::tools {
namespace {

constexpr std::chrono::seconds kQuiet{2};

}  // namespace

WaitNotice::WaitNotice(std::string program, std::string address)
    : program_(std::move(program)),
      address_(std::move(address)),
      due_(::isatty(STDERR_FILENO) == 1 ? Clock::now() + kQuiet : Clock::time_point::max()) {}

void WaitNotice::print_if_due() {
  if (Clock::now() < due_) return;
  due_ = Clock::time_point::max();
  std::fprintf(stderr, "%s: waiting for a listener at %s\n", program_.c_str(), address_.c_str());
}

}  // namespace wherry::tools
