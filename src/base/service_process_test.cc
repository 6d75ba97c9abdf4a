// SPDX-License-Identifier: Apache-2.0
#include "base/service_process.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>

namespace wherry {
namespace {

bool is_readable(const UniqueFd& descriptor) {
  pollfd wanted{.fd = descriptor.get(), .events = POLLIN, .revents = 0};
  return ::poll(&wanted, 1, 0) == 1;
}

// Each test runs in a process of its own, because it changes the signals of the whole process.
template <class Check>
void expect_in_child(Check&& check) {
  EXPECT_EXIT(std::_Exit(check() ? 0 : 1), testing::ExitedWithCode(0), "");
}

TEST(ServiceProcess, AnEndingSignalMakesTheDescriptorReadable) {
  expect_in_child([] {
    const UniqueFd signals = prepare_service_process({SIGTERM});
    const bool before = is_readable(signals);
    std::raise(SIGTERM);
    return !before && is_readable(signals);
  });
}

TEST(ServiceProcess, ASignalThatIsIgnoredStaysIgnored) {
  expect_in_child([] {
    std::signal(SIGINT, SIG_IGN);
    const UniqueFd signals = prepare_service_process({SIGINT, SIGTERM});
    std::raise(SIGINT);
    return signals.valid() && !is_readable(signals);
  });
}

TEST(ServiceProcess, ALimitOfFileSizesAndAReaderThatIsGoneEndNothing) {
  expect_in_child([] {
    const UniqueFd signals = prepare_service_process({});
    std::raise(SIGXFSZ);
    std::raise(SIGPIPE);
    return signals.valid();
  });
}

TEST(ServiceProcess, MayHaveAsManyFilesOpenAsTheUserMay) {
  expect_in_child([] {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 64;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    const UniqueFd signals = prepare_service_process({});
    ::getrlimit(RLIMIT_NOFILE, &limit);
    return signals.valid() && limit.rlim_cur == limit.rlim_max;
  });
}

}  // namespace
}  // namespace wherry
