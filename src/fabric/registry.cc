// SPDX-License-Identifier: Apache-2.0
#include "fabric/registry.hpp"

#include <cerrno>
#include <utility>

#include "base/config.hpp"
#include "base/found_once.hpp"
#include "fabric/modules.hpp"

namespace wherry::fabric {

namespace {

// Never destroyed: connections in static objects, and threads of a fabric, may outlive main().
Registry& registry() {
  static constinit FoundOnce<std::unique_ptr<Registry>> instance;
  return *instance.get([] {
    auto made = std::make_unique<Registry>();
    register_all(*made);
    return made;
  });
}

}  // namespace

void Registry::add(std::unique_ptr<Fabric> fabric) {
  std::string name(fabric->name());
  names_.push_back(name);
  fabrics_.emplace(std::move(name), std::move(fabric));
}

void Registry::add_decorator(std::string prefix, Decorate decorate) {
  decorators_.emplace(std::move(prefix), std::move(decorate));
}

Fabric& Registry::find(std::string_view name) {
  const std::lock_guard lock(mutex_);
  return find_locked(name, name);
}

Fabric& Registry::find_locked(std::string_view name, std::string_view asked) {
  if (const auto found = fabrics_.find(name); found != fabrics_.end()) return *found->second;
  if (const auto plus = name.find('+'); plus != std::string_view::npos) {
    if (const auto decorator = decorators_.find(name.substr(0, plus)); decorator != decorators_.end()) {
      Fabric& inner = find_locked(name.substr(plus + 1), asked);
      return *fabrics_.emplace(name, decorator->second(inner)).first->second;
    }
  }
  if (auto module = load_module(name)) return *fabrics_.emplace(name, std::move(module)).first->second;
  throw Error(EINVAL, "find fabric", std::string(asked), list());
}

std::string Registry::list() const {
  std::string text = "the fabrics built in are:";
  for (const auto& name : names_) text += " " + name;
  for (const auto& [prefix, decorate] : decorators_) text += "; each may be wrapped as " + prefix + "+NAME";
  return text;
}

void Exposure::refuse(const Peer& peer) {
  throw Error(ENOTSUP, "expose memory", peer.address.to_string(), "this connection was not made for it");
}

std::shared_ptr<memory::SharedMemory> Fabric::share(std::size_t /*bytes*/) {
  throw Error(ENOTSUP, "share memory on fabric", std::string(name()),
              "its peers cannot map each other's memory; use one that can, such as shm, or a stream");
}

Fabric& find(std::string_view name) { return registry().find(name); }

std::string configured_name() {
  const bool chooses_by_host = config::is_set(config::Key::hosts) && !config::is_set(config::Key::fabric);
  return chooses_by_host ? "hosts" : config::text(config::Key::fabric);
}

Fabric& find(const Address& address) { return find(address.fabric.empty() ? configured_name() : address.fabric); }

void require_mapping(std::string_view operation) {
  const std::string name = configured_name();
  if (name == "shm") return;
  if (name == "hosts") {
    throw Error(ENOTSUP, std::string(operation), "the hosts of WHERRY_HOSTS",
                "it reaches processes of this machine only; for those, set WHERRY_FABRIC=shm");
  }
  constexpr std::size_t kPages = std::size_t{64} << 10;  // whatever the size of a page is
  try {
    (void)find(name).share(kPages);
  } catch (const Error& error) {
    if (error.code().value() != ENOTSUP) throw;
    throw Error(ENOTSUP, std::string(operation), "fabric " + name,
                "its peers cannot map each other's memory; unset WHERRY_FABRIC to reach processes of this machine");
  }
}

std::span<const std::string> names() { return registry().names(); }

}  // namespace wherry::fabric
