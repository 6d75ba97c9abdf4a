// SPDX-License-Identifier: Apache-2.0
#include "base/standard_descriptors.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <string>

#include "base/child_process.hpp"

namespace wherry {
namespace {

bool refuses(ssize_t result) { return result == -1 && errno == EBADF; }

class StandardDescriptors : public testing::TestWithParam<int> {};

TEST_P(StandardDescriptors, AClosedNumberIsGivenToNothingElse) {
  Child child([number = GetParam()] {
    ::close(number);
    reserve_standard_descriptors();
    char byte = 0;
    return ::eventfd(0, EFD_CLOEXEC) > STDERR_FILENO && refuses(::read(number, &byte, 1)) &&
           refuses(::write(number, &byte, 1)) && ::fcntl(number, F_GETFD) == FD_CLOEXEC;
  });
  EXPECT_EQ(child.wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(Each, StandardDescriptors, testing::Values(STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO));

TEST(StandardDescriptorsTest, AllThreeMayBeClosed) {
  Child child([] {
    for (int number = 0; number <= STDERR_FILENO; ++number) ::close(number);
    reserve_standard_descriptors();
    return ::eventfd(0, EFD_CLOEXEC) > STDERR_FILENO;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(StandardDescriptorsTest, WhatIsOpenStaysAsItIs) {
  Child child([] {
    int ends[2];
    if (::pipe(ends) != 0 || ::dup2(ends[0], STDIN_FILENO) < 0) return false;
    reserve_standard_descriptors();
    char byte = 'x';
    return ::write(ends[1], &byte, 1) == 1 && ::read(STDIN_FILENO, &byte, 1) == 1 &&
           ::fcntl(STDIN_FILENO, F_GETFD) == 0;
  });
  EXPECT_EQ(child.wait(), 0);
}

// Runs in a child: this process's standard output belongs to the test program.
std::string problem_of(const char* output, const char* text) {
  SharedValue<std::array<char, 256>> told;
  std::fflush(stdout);  // otherwise the child would write it, too
  Child child([&] {
    const int file = output == nullptr ? -1 : ::open(output, O_WRONLY);
    if (file >= 0 ? ::dup2(file, STDOUT_FILENO) < 0 : ::close(STDOUT_FILENO) != 0) return false;
    reserve_standard_descriptors();
    std::fputs(text, stdout);
    std::snprintf(told->data(), told->size(), "%s", flush_standard_output().c_str());
    return true;
  });
  EXPECT_EQ(child.wait(), 0);
  return told->data();
}

TEST(StandardOutput, WhatCannotBeWrittenIsTold) {
  EXPECT_EQ(problem_of("/dev/null", "text"), "");
  EXPECT_EQ(problem_of("/dev/full", "text"), "No space left on device");
  EXPECT_EQ(problem_of("/dev/full", std::string(1'000'000, 'x').c_str()), "a part of it was lost");
  EXPECT_EQ(problem_of(nullptr, "text"), "Bad file descriptor");
}

TEST(StandardOutput, ClosedAndUnusedIsNoProblem) { EXPECT_EQ(problem_of(nullptr, ""), ""); }

}  // namespace
}  // namespace wherry
