// SPDX-License-Identifier: Apache-2.0
// One connection to another host, used by the program's threads and by the service: its beginning, the effect of the
// peer's messages, and its end.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include <wherry/result.hpp>

#include "fabric/bell.hpp"
#include "fabric/event_bell.hpp"
#include "fabric/ofi/endpoint.hpp"
#include "fabric/ofi/link_bells.hpp"
#include "fabric/ofi/link_receiver.hpp"
#include "fabric/ofi/link_sender.hpp"
#include "fabric/ofi/service.hpp"
#include "fabric/service_park.hpp"

namespace wherry::fabric::ofi {

/// Thread-safe, except where noted.
class Link final : public Served, public std::enable_shared_from_this<Link> {
 public:
  using Item = LinkSender::Item;

  using Sides = LinkSides;

  /// For a connector. `opening` is rung when the link is open or gone.
  explicit Link(std::shared_ptr<const EventBell> opening = nullptr) : opening_(std::move(opening)) {}

  // Beginning and events. All with the service's mutex held. A connector calls `dial`, a listener `expect`, before
  // anything else.
  void dial(Service& service, Meeting meeting, const Sides& sides, std::uint16_t data_port);
  void expect(Service& service, Meeting meeting, const Sides& sides);
  void accept(Service& service, Knock knock);
  void on_connected();
  void on_end(int error);
  bool serve(int descriptor) override;
  bool look(bool drives) override;

  /// Ends the link. Blocks until the service does not use it. Afterwards nothing accesses this side's segment or the
  /// sources of its puts.
  void close() noexcept;

  /// Takes a prefix of a put. 0 if the link is dead or the queue is full; then rings `space` once the queue has room.
  std::size_t put(std::uint64_t offset, std::span<const std::byte> source);
  /// Takes the whole item. False if the link is dead.
  bool push(Item item);
  [[nodiscard]] bool has_room();
  Result flush(const Deadline& deadline);
  /// By a spinning waiter: handles what has arrived and sends what is queued. The service leaves the link alone until
  /// `end_drive(true)`, or until the lease of the last call expires (ServicePark).
  void drive(Bell bell);
  /// After the last `drive`: from then on the endpoint's descriptor tells of what arrives. `sleeps`: this side goes to
  /// sleep, which ends all leases. Otherwise they stay: ending one after each message would wake the service for each.
  void end_drive(bool sleeps);
  /// As Connection::wait. One waiter at a time sleeps on the endpoint, in place of the service, and drives it: so one
  /// thread wakes up for a message, not two.
  Wake wait(Bell bell, const Deadline& deadline);

  /// Asks the peer's fabric for memory that the peer exposes. Blocks for at most 10 s. On failure returns null and sets
  /// `error`.
  std::shared_ptr<const RemotePlace> reach(const memory::RemoteKey& key, std::size_t bytes, int& error);

  [[nodiscard]] LinkBells& bells() { return bells_; }
  [[nodiscard]] bool is_gone() const { return bells_.is_gone(); }
  /// Returns whether the link is gone, or will be soon: its data endpoint was refused, or the peer has ended it.
  [[nodiscard]] bool is_ending();
  /// Adds the address of the peer's data endpoint, if this side has one. False: it is not known.
  bool add_data_peer(AddressTexts& peers);
  /// Returns whether the peer's data endpoint has answered.
  [[nodiscard]] bool is_open();
  /// Stops ringing `opening`.
  void forget_opening();
  /// For a link that is gone: returns whether it was open before, or the peer ended the rendezvous.
  [[nodiscard]] bool is_ended_by_peer();
  [[nodiscard]] const Meeting& meeting() const { return meeting_; }

 private:
  // With mutex_ held.
  void begin(Service& service, Meeting meeting, const Sides& sides);
  void start(Service& service, std::unique_ptr<Endpoint> endpoint);
  void send();
  bool drive_locked();
  int begin_sleep();
  void end_sleep(int descriptor);
  void fail_later();

  // With the service's mutex held, too.
  bool serve_endpoint();
  void on_socket();
  void finish(Service& service);
  void release(Service& service) noexcept;

  Meeting meeting_;
  Sides sides_;
  LinkBells bells_;
  ServicePark park_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const EventBell> opening_;  // null for an acceptor, and after forget_opening()
  Service* service_ = nullptr;                // set by dial and expect
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<Registration> registered_;
  bool connected_ = false;
  bool has_sleeper_ = false;    // a waiter sleeps on the endpoint's descriptor
  bool driven_ = false;         // since then the endpoint was not asked whether its descriptor may be slept on
  bool ended_by_peer_ = false;  // its rendezvous socket has ended
  LinkSender sender_{bells_};
  LinkReceiver receiver_{bells_, sender_, changed_};
  Deadline ends_at_;  // set when the link is ending: the service ends it then at the latest
};

}  // namespace wherry::fabric::ofi
