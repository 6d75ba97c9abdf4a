// SPDX-License-Identifier: Apache-2.0
#include "base/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>

#include <wherry/error.hpp>

#include "base/scoped_environment.hpp"

namespace wherry::config {
namespace {

using ::testing::HasSubstr;

template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code().value(), EINVAL);
    return error.what();
  }
  return "accepted";
}

TEST(Config, EveryRowIsComplete) {
  std::set<std::string_view> names;
  for (const Option& row : options()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " stands twice";
    EXPECT_TRUE(names.insert(row.environment).second) << row.environment << " stands twice";
    EXPECT_TRUE(row.environment.starts_with("WHERRY_")) << row.environment;
    EXPECT_FALSE(row.help.empty()) << row.name;
    EXPECT_FALSE(row.allowed.empty()) << row.name;
    EXPECT_EQ(row.valid_word != nullptr, row.kind == Kind::word) << row.name;
  }
}

TEST(Config, EveryDefaultIsValid) {
  for (const Option& row : options()) {
    const ScopedEnvironment unset(std::string(row.environment), nullptr);
    EXPECT_NO_THROW(check(row.key)) << row.name;
    EXPECT_EQ(text(row.key), default_text(row));
  }
}

TEST(Config, AnEmptyVariableMeansTheDefault) {
  const ScopedEnvironment empty("WHERRY_JOB", "");
  EXPECT_EQ(text(Key::job), "default");
}

TEST(Config, TheEnvironmentOverridesTheDefault) {
  const ScopedEnvironment ring("WHERRY_RING", "64K");
  EXPECT_EQ(number(Key::ring), 65536U);
}

TEST(Config, BytesAcceptPowersOf1024) {
  EXPECT_EQ(parse_bytes("x", "0"), 0U);
  EXPECT_EQ(parse_bytes("x", "17"), 17U);
  EXPECT_EQ(parse_bytes("x", "17B"), 17U);
  for (const char* text : {"2K", "2k", "2KB", "2KiB"}) EXPECT_EQ(parse_bytes("x", text), 2048U) << text;
  EXPECT_EQ(parse_bytes("x", "3M"), 3U << 20);
  EXPECT_EQ(parse_bytes("x", "3GiB"), std::uint64_t{3} << 30);
  EXPECT_EQ(parse_bytes("x", "1T"), std::uint64_t{1} << 40);
}

TEST(Config, BytesRefuseWhatIsNoNumber) {
  for (const char* text : {"", "K", "1.5M", "-1", "1 M", "1X", "1MM", "1Kb", "0x10"}) {
    EXPECT_THAT(refusal([&] { parse_bytes("--size", text); }), HasSubstr("--size=" + std::string(text))) << text;
  }
}

TEST(Config, BytesRefuseWhatDoesNotFit64Bits) {
  EXPECT_EQ(parse_bytes("x", "18446744073709551615"), UINT64_MAX);
  EXPECT_THROW(parse_bytes("x", "18446744073709551616"), Error);
  EXPECT_THROW(parse_bytes("x", "16777216T"), Error);
  EXPECT_EQ(parse_bytes("x", "16777215T"), std::uint64_t{16777215} << 40);
}

TEST(Config, ANumberOutsideTheTablesLimitsIsRefused) {
  for (const char* value : {"4095", "1025M", "2G", "big"}) {
    const ScopedEnvironment ring("WHERRY_RING", value);
    const std::string text = refusal([] { number(Key::ring); });
    EXPECT_THAT(text, HasSubstr("WHERRY_RING=" + std::string(value)));
    EXPECT_THAT(text, HasSubstr("from 4K to 1G"));
  }
  for (const char* value : {"4K", "1G"}) {
    const ScopedEnvironment ring("WHERRY_RING", value);
    EXPECT_NO_THROW(number(Key::ring)) << value;
  }
}

TEST(Config, ACallerCanNarrowTheLimits) {
  const ScopedEnvironment node("WHERRY_NODE", "9");
  EXPECT_EQ(number(Key::node, 0, 9), 9U);
  EXPECT_THAT(refusal([] { number(Key::node, 0, 8); }), HasSubstr("from 0 to 8"));
  EXPECT_THROW(number(Key::node, 10), Error);
}

TEST(Config, FlagsReadTheUsualWords) {
  for (const char* value : {"on", "1", "true", "yes"}) {
    const ScopedEnvironment statistics("WHERRY_STATISTICS", value);
    EXPECT_TRUE(flag(Key::statistics)) << value;
  }
  for (const char* value : {"off", "0", "false", "no"}) {
    const ScopedEnvironment statistics("WHERRY_STATISTICS", value);
    EXPECT_FALSE(flag(Key::statistics)) << value;
  }
  const ScopedEnvironment statistics("WHERRY_STATISTICS", "maybe");
  EXPECT_THAT(refusal([] { flag(Key::statistics); }), HasSubstr("WHERRY_STATISTICS=maybe"));
}

TEST(Config, WordsAreChecked) {
  const auto accepts = [](const char* variable, Key key, const std::string& value) {
    const ScopedEnvironment set(variable, value.c_str());
    return refusal([&] { check(key); }) == "accepted";
  };
  EXPECT_TRUE(accepts("WHERRY_JOB", Key::job, "Run.7_b-2"));
  EXPECT_TRUE(accepts("WHERRY_JOB", Key::job, std::string(64, 'j')));
  EXPECT_FALSE(accepts("WHERRY_JOB", Key::job, std::string(65, 'j')));
  EXPECT_FALSE(accepts("WHERRY_JOB", Key::job, "a/b"));
  EXPECT_TRUE(accepts("WHERRY_FABRIC", Key::fabric, "faulty+inproc-put"));
  EXPECT_FALSE(accepts("WHERRY_FABRIC", Key::fabric, "Shm"));
  EXPECT_TRUE(accepts("WHERRY_FAULTS", Key::faults, "seed=1,short=10"));
  EXPECT_FALSE(accepts("WHERRY_FAULTS", Key::faults, "seed=1,,short"));
  EXPECT_FALSE(accepts("WHERRY_FAULTS", Key::faults, "=1"));
  EXPECT_TRUE(accepts("WHERRY_COPY", Key::copy, "backward-out"));
  EXPECT_FALSE(accepts("WHERRY_COPY", Key::copy, "sideways"));
  EXPECT_TRUE(accepts("WHERRY_PORTS", Key::ports, "47000-47999"));
  EXPECT_TRUE(accepts("WHERRY_PORTS", Key::ports, "1024-1024"));
  for (const char* bad : {"47000", "47999-47000", "80-90", "1-65536", "47000-", "-1", "47000-47999 ", "a-b"}) {
    EXPECT_FALSE(accepts("WHERRY_PORTS", Key::ports, bad)) << bad;
  }
  EXPECT_TRUE(accepts("WHERRY_LOG", Key::log, "debug"));
  EXPECT_FALSE(accepts("WHERRY_LOG", Key::log, "loud"));
}

}  // namespace
}  // namespace wherry::config
