// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/lookup.hpp"

#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <wherry/error.hpp>

#include "fabric/event_bell.hpp"
#include "fabric/ofi/signals_blocked.hpp"

namespace wherry::fabric::ofi {

struct Lookup::Answer {
  void find(const std::string& host) {
    std::optional<std::vector<SocketAddress>> found;
    std::optional<Error> failed;
    try {
      found = resolve(host);
    } catch (const Error& failure) {
      failed = failure;
    }
    const std::lock_guard lock(mutex);
    addresses = std::move(found);
    error = std::move(failed);
    done.notify();
  }

  EventBell done;
  std::mutex mutex;
  std::optional<std::vector<SocketAddress>> addresses;
  std::optional<Error> error;
};

Lookup::Lookup(const std::string& host) : answer_(std::make_shared<Answer>()) {
  if (is_address(host)) {
    answer_->find(host);
    return;
  }
  const SignalsBlocked blocked;
  try {
    std::thread([answer = answer_, host] { answer->find(host); }).detach();
  } catch (const std::system_error& failure) {
    throw Error(failure.code().value(), "look up host", host, "raise the limit of threads: ulimit -u");
  }
}

int Lookup::descriptor() const { return answer_->done.descriptor(); }

std::optional<std::vector<SocketAddress>> Lookup::result() const {
  const std::lock_guard lock(answer_->mutex);
  if (answer_->error) throw Error(*answer_->error);
  return answer_->addresses;
}

}  // namespace wherry::fabric::ofi
