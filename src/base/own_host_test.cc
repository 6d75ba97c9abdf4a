// SPDX-License-Identifier: Apache-2.0
#include "base/own_host.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <string>

#include <wherry/address.hpp>
#include <wherry/error.hpp>

#include "base/log.hpp"
#include "base/scoped_environment.hpp"

namespace wherry {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kIpv4("\x0a\x62\x00\x01", 4);
const std::string kIpv6("\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01", 16);

OwnHost alpha() { return {"alpha.example.org", {kIpv4, kIpv6}}; }

std::vector<std::uint16_t> nodes_in(std::string_view text, const OwnHost& own) {
  return nodes_of(Hosts::parse(text, "h"), own);
}

class HostsFile {
 public:
  explicit HostsFile(const std::string& text) {
    ::close(::mkstemp(name_.data()));
    write(text);
  }
  ~HostsFile() { ::unlink(name_.c_str()); }
  HostsFile(const HostsFile&) = delete;
  HostsFile& operator=(const HostsFile&) = delete;

  void write(const std::string& text) const { std::ofstream(name_) << text; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  std::string name_ = "/tmp/wherry-hosts-XXXXXX";
};

Error place_error() {
  try {
    (void)own_place();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "found a place";
  return {0, "", "", ""};
}

TEST(OwnHost, IsCalledByItsNameWithOrWithoutTheDomain) {
  for (const char* name : {"alpha.example.org", "ALPHA.Example.org", "alpha", "Alpha", "localhost"}) {
    EXPECT_TRUE(alpha().is_called(name)) << name;
  }
  for (const char* name : {"alpha.example.com", "alpha2", "alph", "beta.example.org", ""}) {
    EXPECT_FALSE(alpha().is_called(name)) << name;
  }
  EXPECT_TRUE(OwnHost("alpha", {}).is_called("alpha.example.org"));
  EXPECT_FALSE(OwnHost("", {}).is_called(".example.org"));
}

TEST(OwnHost, IsCalledByItsAddressesAndByLoopback) {
  for (const char* address : {"10.98.0.1", "2001:db8::1", "2001:db8:0::1", "127.0.0.1", "127.0.1.1", "::1"}) {
    EXPECT_TRUE(alpha().is_called(address)) << address;
  }
  for (const char* address : {"10.98.0.2", "2001:db8::2", "10.98.0"}) {
    EXPECT_FALSE(alpha().is_called(address)) << address;
  }
}

TEST(OwnHost, SaysWhatItIsCalled) {
  EXPECT_EQ(alpha().to_string(), "alpha.example.org (10.98.0.1, 2001:db8::1)");
  EXPECT_EQ(OwnHost("alpha", {std::string("\x7f\0\0\x01", 4)}).to_string(), "alpha");
}

TEST(OwnHost, TheKernelKnowsIt) {
  std::array<char, 256> name{};
  ASSERT_EQ(::gethostname(name.data(), name.size() - 1), 0);
  EXPECT_TRUE(OwnHost::look().is_called(name.data()));
}

TEST(OwnHost, WithoutADescriptorTheErrorSaysWhatToRaise) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  int error = 0;
  std::string advice;
  try {
    (void)OwnHost::look();
  } catch (const Error& failure) {
    error = failure.code().value();
    advice = failure.advice();
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(error, EMFILE);
  EXPECT_EQ(advice, "raise ulimit -n if it is short");
}

TEST(OwnHost, ItsNodesAreTheLinesThatNameIt) {
  EXPECT_THAT(nodes_in("beta\nalpha\ngamma", alpha()), ElementsAre(1));
  EXPECT_THAT(nodes_in("10.98.0.2\n10.98.0.1", alpha()), ElementsAre(1));
  EXPECT_THAT(nodes_in("4-6 alpha\n7 10.98.0.1\n8 beta", alpha()), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(nodes_in("10.98.0.2\n10.98.0.3", alpha()), IsEmpty());
}

TEST(OwnPlace, IsInEachLineOfTheLog) {
  const HostsFile file("198.51.100.1\nlocalhost\n");
  const ScopedEnvironment hosts("WHERRY_HOSTS", file.name().c_str());
  const ScopedEnvironment none("WHERRY_NODE", "");
  testing::internal::CaptureStderr();
  log::write(log::Level::error, "lost");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(" node 1 error: lost\n"));
}

TEST(OwnPlace, IsTheLineOfThisHostOrWhatWherryNodeSays) {
  const HostsFile file("198.51.100.1\nlocalhost\n2-3 198.51.100.3\n");
  const ScopedEnvironment hosts("WHERRY_HOSTS", file.name().c_str());
  const ScopedEnvironment none("WHERRY_NODE", "");
  const auto place = own_place();
  EXPECT_EQ(place->node, 1);
  EXPECT_EQ(place->file, file.name());
  EXPECT_EQ(own_node(), 1);
  EXPECT_TRUE(place->is_here(1));
  EXPECT_FALSE(place->is_here(0));
  EXPECT_FALSE(place->is_here(9));
  EXPECT_FALSE(place->is_alone());
  EXPECT_EQ(own_place(), place);
  const ScopedEnvironment node("WHERRY_NODE", "2");
  EXPECT_EQ(own_place()->node, 2);
  EXPECT_EQ(own_node(), 2);
  EXPECT_TRUE(own_place()->is_here(3));
}

TEST(OwnPlace, IsFoundAgainWhenTheFileHasChanged) {
  const HostsFile file("localhost\n");
  const ScopedEnvironment hosts("WHERRY_HOSTS", file.name().c_str());
  const ScopedEnvironment none("WHERRY_NODE", "");
  EXPECT_EQ(own_place()->node, 0);
  EXPECT_TRUE(own_place()->is_alone());
  file.write("198.51.100.1\nlocalhost\n");
  EXPECT_EQ(own_place()->node, 1);
}

TEST(OwnPlace, WithoutALineOfThisHostOrWithSeveralTheErrorSaysWhatToSet) {
  const ScopedEnvironment none("WHERRY_NODE", "");
  const HostsFile nobody("198.51.100.1\n198.51.100.2\n");
  {
    const ScopedEnvironment hosts("WHERRY_HOSTS", nobody.name().c_str());
    const Error error = place_error();
    EXPECT_EQ(error.code().value(), EINVAL);
    EXPECT_THAT(error.advice(), HasSubstr("no line names this host, "));
    EXPECT_THAT(error.advice(), HasSubstr("; add its line, or set WHERRY_NODE"));
    EXPECT_EQ(own_node(), 0) << "addresses that name their fabric need no place";
  }
  const HostsFile many("localhost\n198.51.100.2\n4-5 localhost\n");
  const ScopedEnvironment hosts("WHERRY_HOSTS", many.name().c_str());
  EXPECT_EQ(place_error().advice(),
            "nodes 0, 4, 5 are all on this host; set WHERRY_NODE to the one that this process is");
  const ScopedEnvironment node("WHERRY_NODE", "9");
  EXPECT_EQ(place_error().advice(),
            "it has no line for node 9, which WHERRY_NODE says this process is; add the line, "
            "or correct WHERRY_NODE");
}

TEST(OwnPlace, NeedsAFile) {
  {
    const ScopedEnvironment hosts("WHERRY_HOSTS", "");
    EXPECT_EQ(place_error().advice(),
              "it is not set: make a file with the host of each node, one a line from node 0 on");
  }
  const ScopedEnvironment hosts("WHERRY_HOSTS", "/nonexistent/hosts");
  const ScopedEnvironment none("WHERRY_NODE", "");
  EXPECT_EQ(place_error().code().value(), ENOENT);
  EXPECT_EQ(own_node(), 0);
}

}  // namespace
}  // namespace wherry
