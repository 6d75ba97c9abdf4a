// SPDX-License-Identifier: Apache-2.0
// Recognizes peers of a process's own user, in a user namespace.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>

#include <wherry/wherry.hpp>

#include "base/user.hpp"
#include "fabric/shm/socket_names.hpp"
#include "tests/common/other_user.hpp"

namespace wherry::fabric::shm {
namespace {

/// Moves this process into a new user namespace, in which its user is `inside`; null: the user has no number there.
void enter_user_namespace(const char* inside) {
  const uid_t outside = ::geteuid();
  if (::unshare(CLONE_NEWUSER) != 0) throw std::system_error(errno, std::system_category(), "unshare");
  if (inside == nullptr) return;
  const std::string line = std::string(inside) + " " + std::to_string(outside) + " 1";
  const UniqueFd map(::open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC));
  if (::write(map.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    throw std::system_error(errno, std::system_category(), "uid_map");
  }
}

bool has_user_namespaces() {
  return Child([] { return ::unshare(CLONE_NEWUSER) == 0; }).wait() == 0;
}

/// A root directory that only root may search, as some images have, hides /proc from other users.
bool reaches_proc(uid_t user) {
  const auto reads_map = [] { return ::access("/proc/self/uid_map", R_OK) == 0; };
  return as_other_user(reads_map, user).wait() == 0;
}

bool is_refused(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code().value() == EACCES &&
           error.advice() ==
               "in this user namespace everybody without a number reads as user 65534, this process too; "
               "give its user a number there (unshare --map-current-user)";
  }
  return false;
}

/// Every user without a number there is shown as 65534.
TEST(OverflowUid, IsNobodysInAUserNamespace) {
  if (!has_user_namespaces()) GTEST_SKIP() << "no user namespaces here";
  for (const char* inside : {static_cast<const char*>(nullptr), "65534"}) {
    const auto alone = [inside] {
      enter_user_namespace(inside);
      const Peer unknown{.address = {}, .pid = 1, .uid = 65534, .gid = 65534};
      const bool overflows = ::geteuid() == 65534;
      const bool refuses = is_refused([] { (void)listen("wherry+shm://*:*"); }) &&
                           is_refused([] { (void)start_connect("wherry+shm://0:2000"); });
      return overflows && !same_user(unknown) && refuses;
    };
    EXPECT_EQ(Child(alone).wait(), 0) << (inside == nullptr ? "no number" : inside);
  }
}

TEST(OverflowUid, AUserWithANumberMeetsHimselfThere) {
  if (!has_user_namespaces()) GTEST_SKIP() << "no user namespaces here";
  const auto meets = [] {
    enter_user_namespace("1000");
    wherry::Listener listener = listen("wherry+shm://*:*");
    Connecting connecting = start_connect(listener.local().to_string());
    const auto accepted = listener.try_accept();
    return accepted.has_value() && connecting.try_finish().has_value();
  };
  EXPECT_EQ(Child(meets).wait(), 0);
}

/// In its user namespace the stranger has this process's number, and so looks for the same name.
TEST(OverflowUid, OfAListenerOutsideOfTheUserNamespaceIsNotTakenForThisUser) {
  if (!may_be_another_user() || !has_user_namespaces()) GTEST_SKIP() << "needs another user, and user namespaces";
  if (!reaches_proc(kOtherUser)) GTEST_SKIP() << "another user reaches no /proc here";
  const wherry::Listener listener = listen("wherry+shm://*:*");
  const std::string number = std::to_string(::geteuid());
  const auto refused = [&] {
    ::prctl(PR_SET_DUMPABLE, 1);  // a process that has changed its user may not write its own uid_map otherwise
    enter_user_namespace(number.c_str());
    try {
      (void)start_connect(listener.local().to_string());
    } catch (const Error& error) {
      return error.code().value() == EACCES &&
             error.advice() ==
                 "a process of a user without a number in this user namespace listens there; share the user "
                 "namespace, or choose another WHERRY_JOB";
    }
    return false;
  };
  EXPECT_EQ(as_other_user(refused).wait(), 0);
}

TEST(OverflowUid, IsAUserLikeAnyOtherWhereEverybodyHasANumber) {
  if (!may_be_another_user() || !names_one_user(65534)) GTEST_SKIP() << "not everybody has a number here";
  if (!reaches_proc(65534)) GTEST_SKIP() << "another user reaches no /proc here";
  const auto meets = [] {
    wherry::Listener listener = listen("wherry+shm://*:*");
    Connecting connecting = start_connect(listener.local().to_string());
    const auto accepted = listener.try_accept();
    return accepted.has_value() && connecting.try_finish().has_value();
  };
  EXPECT_EQ(as_other_user(meets, 65534).wait(), 0);
}

}  // namespace
}  // namespace wherry::fabric::shm
