// SPDX-License-Identifier: Apache-2.0
// For tests: a process of another user's.
#pragma once

#include <grp.h>
#include <unistd.h>

#include <system_error>
#include <utility>

#include "base/child_process.hpp"

namespace wherry {

/// A number that no user of a usual system has.
inline constexpr uid_t kOtherUser = 64123;

/// Only root can become another user.
inline bool may_be_another_user() { return ::geteuid() == 0; }

inline void become(uid_t user) {
  if (::setgroups(0, nullptr) != 0 || ::setgid(user) != 0 || ::setuid(user) != 0) {
    throw std::system_error(errno, std::system_category(), "become another user");
  }
}

/// A child that runs `body` as another user.
template <class Body>
Child as_other_user(Body body, uid_t user = kOtherUser) {
  return Child([body = std::move(body), user]() mutable {
    become(user);
    return body();
  });
}

}  // namespace wherry
