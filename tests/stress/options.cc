// SPDX-License-Identifier: Apache-2.0
#include "tests/stress/options.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "arch/barrier.hpp"
#include "tests/common/sanitizer.hpp"

namespace wherry::stress {
namespace {

// What all tests together do in about a minute on two cores. scripts/soak asks for more.
constexpr std::uint64_t kDefaultOperations =
    WHERRY_THREAD_SANITIZER || WHERRY_ADDRESS_SANITIZER ? 1'000'000 : 3'000'000;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* set = std::getenv(name);
  return set != nullptr ? std::strtoull(set, nullptr, 10) : otherwise;
}

Options& mutable_options() {
  static Options options{.operations = from_environment("WHERRY_TEST_OPERATIONS", kDefaultOperations),
                         .seed = from_environment("WHERRY_TEST_SEED", 1)};
  return options;
}

}  // namespace

const Options& options() { return mutable_options(); }

bool sanitized() { return WHERRY_THREAD_SANITIZER != 0 || WHERRY_ADDRESS_SANITIZER != 0; }

void read_options(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::size_t equals = argument.find('=');
    const std::string_view name = std::string_view(argument).substr(0, equals);
    if (equals == std::string::npos || (name != "--operations" && name != "--seed")) {
      std::fprintf(stderr, "unknown argument %s; there are --operations=N and --seed=N, and GoogleTest's own\n",
                   argv[i]);
      std::exit(2);
    }
    (name == "--seed" ? mutable_options().seed : mutable_options().operations) =
        std::strtoull(argument.c_str() + equals + 1, nullptr, 10);
  }
}

}  // namespace wherry::stress

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  wherry::stress::read_options(argc, argv);
  return RUN_ALL_TESTS();
}
