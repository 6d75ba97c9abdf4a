// SPDX-License-Identifier: Apache-2.0
#include "fabric/registry.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "base/scoped_environment.hpp"
#include "fabric/modules.hpp"

namespace wherry::fabric {
namespace {

class NamedFabric final : public Fabric {
 public:
  explicit NamedFabric(std::string name) : name_(std::move(name)) {}
  [[nodiscard]] std::string_view name() const override { return name_; }
  std::unique_ptr<Listener> listen(const Address&) override { return nullptr; }
  std::unique_ptr<Connecting> connect(const Address&, const Offer&) override { return nullptr; }

 private:
  std::string name_;
};

Registry& filled(Registry& registry) {
  registry.add(std::make_unique<NamedFabric>("road"));
  registry.add_decorator(
      "bumpy", [](Fabric& inner) { return std::make_unique<NamedFabric>("bumpy+" + std::string(inner.name())); });
  return registry;
}

TEST(Registry, FindsByName) {
  Registry registry;
  EXPECT_EQ(filled(registry).find("road").name(), "road");
}

TEST(Registry, WrapsAsOftenAsAskedAndMakesEachWrappingOnce) {
  Registry registry;
  Fabric& once = filled(registry).find("bumpy+road");
  EXPECT_EQ(once.name(), "bumpy+road");
  EXPECT_EQ(&once, &registry.find("bumpy+road"));
  EXPECT_EQ(registry.find("bumpy+bumpy+road").name(), "bumpy+bumpy+road");
}

TEST(Registry, NamesListsWhatWasAddedNotWhatWasWrapped) {
  Registry registry;
  filled(registry).find("bumpy+road");
  ASSERT_EQ(registry.names().size(), 1U);
  EXPECT_EQ(registry.names()[0], "road");
}

TEST(Registry, AnUnknownNameIsRefusedWithTheListOfKnownOnes) {
  Registry registry;
  filled(registry);
  for (const char* name : {"", "rail", "bumpy+", "bumpy+rail", "rail+road", "+"}) {
    try {
      registry.find(name);
      ADD_FAILURE() << "found " << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code().value(), EINVAL);
      EXPECT_NE(error.advice().find("road"), std::string::npos) << error.what();
      EXPECT_NE(error.advice().find("bumpy+NAME"), std::string::npos) << error.what();
    }
  }
}

TEST(Registry, AnAddressMayNameItsFabric) {
  EXPECT_EQ(find(Address{.fabric = "inproc", .node = {}, .port = {}}).name(), "inproc");
}

TEST(Registry, AnAddressThatNamesNoneIsOfTheFabricThatTheEnvironmentSays) {
  const ScopedEnvironment no_fabric("WHERRY_FABRIC", "");
  const ScopedEnvironment no_hosts("WHERRY_HOSTS", "");
  EXPECT_EQ(find(Address{}).name(), "shm");
  const ScopedEnvironment hosts("WHERRY_HOSTS", "/nonexistent/hosts");
  EXPECT_EQ(find(Address{}).name(), "hosts");
  EXPECT_EQ(find(Address{.fabric = "shm", .node = {}, .port = {}}).name(), "shm");
  const ScopedEnvironment fabric("WHERRY_FABRIC", "inproc");
  EXPECT_EQ(find(Address{}).name(), "inproc");
}

TEST(Registry, WhatMapsItsPeersRefusesTheHostsOfAFile) {
  const ScopedEnvironment no_fabric("WHERRY_FABRIC", "");
  const ScopedEnvironment hosts("WHERRY_HOSTS", "/nonexistent/hosts");
  try {
    require_mapping("open it");
    ADD_FAILURE() << "took the hosts of a file";
  } catch (const Error& error) {
    EXPECT_EQ(error.code().value(), ENOTSUP);
    EXPECT_EQ(error.advice(), "it reaches processes of this machine only; for those, set WHERRY_FABRIC=shm");
  }
  const ScopedEnvironment shm("WHERRY_FABRIC", "shm");
  EXPECT_NO_THROW(require_mapping("open it"));
}

TEST(Registry, WhatMapsItsPeersRefusesAConfiguredFabricThatCannot) {
  const ScopedEnvironment hidden("WHERRY_FAULTS", "hide_map=1");
  for (const char* name : {"inproc-put", "inproc-net", "faulty+shm"}) {
    const ScopedEnvironment configured("WHERRY_FABRIC", name);
    try {
      require_mapping("open it");
      ADD_FAILURE() << "took " << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code().value(), ENOTSUP);
      EXPECT_EQ(error.address(), "fabric " + std::string(name));
      EXPECT_EQ(error.advice(),
                "its peers cannot map each other's memory; unset WHERRY_FABRIC to reach processes of this machine");
    }
  }
  for (const char* name : {"", "shm", "inproc"}) {
    const ScopedEnvironment configured("WHERRY_FABRIC", name);
    EXPECT_NO_THROW(require_mapping("open it")) << name;
  }
}

TEST(FabricModules, AModuleThatIsNotThereSaysWhatToInstall) {
  try {
    (void)load_module_from("/nowhere/libwherry-ofi.so");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code().value(), ENOTSUP);
    EXPECT_TRUE(error.advice().ends_with("; install libfabric-dev and libsodium-dev before Wherry is built"))
        << error.advice();
  }
  EXPECT_EQ(load_module("nothing"), nullptr);
}

}  // namespace
}  // namespace wherry::fabric
