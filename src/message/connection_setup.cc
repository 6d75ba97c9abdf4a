// SPDX-License-Identifier: Apache-2.0
#include "message/connection_setup.hpp"

#include <cerrno>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "fabric/retrying_connect.hpp"

namespace wherry::message {
namespace {

const Address kNoAddress{};

}  // namespace

fabric::Fabric& ConnectionSetup::fabric_of(const Address& address) {
  fabric::Fabric& fabric = fabric::find(address);
  if (fabric_ != nullptr && fabric_ != &fabric) {
    throw Error(EINVAL, "use address", address.to_string(),
                "other addresses are on fabric " + std::string(fabric_->name()) + "; use one publisher or subscriber " +
                    "for each fabric");
  }
  return fabric;
}

void ConnectionSetup::listen(const Address& address) {
  if (listener_ != nullptr) {
    throw Error(EINVAL, "listen", address.to_string(),
                "already listening on " + listener_->local().to_string() + "; use another publisher or subscriber");
  }
  fabric::Fabric& fabric = fabric_of(address);
  auto listener = fabric.listen(address);
  wait_set_.watch(listener->descriptor());
  listener_ = std::move(listener);
  fabric_ = &fabric;
}

void ConnectionSetup::start_connect(const Address& address, const fabric::Offer& offer, const fabric::Deadline& until) {
  fabric::Fabric& fabric = fabric_of(address);
  auto attempt = fabric::start_connect(fabric, address, offer, {.nobody_listens = until, .queue_full = until});
  attempts_.reserve(attempts_.size() + 1);
  wait_set_.watch(attempt->descriptor());
  attempts_.push_back(std::move(attempt));
  fabric_ = &fabric;
}

std::unique_ptr<fabric::Connection> ConnectionSetup::connect(const Address& address, const fabric::Offer& offer,
                                                             const fabric::Deadline& deadline) {
  fabric::Fabric& fabric = fabric_of(address);
  const auto attempt =
      fabric::start_connect(fabric, address, offer, {.nobody_listens = deadline, .queue_full = deadline});
  auto connection = fabric::finish(*attempt, address, deadline);
  fabric_ = &fabric;
  return connection;
}

std::unique_ptr<fabric::Connection> ConnectionSetup::accepted(const fabric::Offer& offer) {
  return listener_ == nullptr ? nullptr : listener_->try_accept(offer);
}

std::unique_ptr<fabric::Connection> ConnectionSetup::finished() {
  for (auto it = attempts_.begin(); it != attempts_.end(); ++it) {
    const int descriptor = (*it)->descriptor();
    std::unique_ptr<fabric::Connection> connection;
    try {
      connection = (*it)->try_finish();
    } catch (...) {
      wait_set_.unwatch(descriptor);
      attempts_.erase(it);
      throw;
    }
    if (connection == nullptr) continue;
    wait_set_.unwatch(descriptor);
    attempts_.erase(it);
    return connection;
  }
  return nullptr;
}

void ConnectionSetup::set_port_paused(bool paused) {
  if (port_is_paused_ == paused || listener_ == nullptr) return;
  if (paused) {
    wait_set_.unwatch(listener_->descriptor());
  } else {
    wait_set_.watch(listener_->descriptor());
  }
  port_is_paused_ = paused;
}

void ConnectionSetup::log_dropped(const Error& error) {
  if (log::enabled(log::Level::info)) log::write(log::Level::info, std::string("dropped a connector: ") + error.what());
}

const Address& ConnectionSetup::local() const noexcept {
  return listener_ == nullptr ? kNoAddress : listener_->local();
}

}  // namespace wherry::message
