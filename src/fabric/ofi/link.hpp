// SPDX-License-Identifier: Apache-2.0
// One connection to another host, as both the program's threads and the service use it: how it begins, what the peer's
// messages do, and how it ends.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include <wherry/result.hpp>

#include "fabric/bell.hpp"
#include "fabric/event_bell.hpp"
#include "fabric/ofi/endpoint.hpp"
#include "fabric/ofi/exposed_memory.hpp"
#include "fabric/ofi/link_bells.hpp"
#include "fabric/ofi/link_sender.hpp"
#include "fabric/ofi/service.hpp"
#include "fabric/ofi/word_slots.hpp"

namespace wherry::fabric::ofi {

/// Calls from any thread, unless they say otherwise.
class Link final : public Served, public std::enable_shared_from_this<Link>, private Endpoint::Handler {
 public:
  using Item = LinkSender::Item;

  struct Sides {
    std::span<std::byte> segment;  ///< this side's; must outlive `close`
    std::size_t peer_bytes = 0;    ///< of the peer's segment
    bool exposes = false;          ///< the peer may reach what this side exposes
  };

  /// Throws Error(EMFILE).
  Link() = default;
  /// For a connector: `opening` is rung once it is open or gone.
  explicit Link(std::shared_ptr<const EventBell> opening) : opening_(std::move(opening)) {}

  // How a connection begins: with one of the first two, before all else. With the service's mutex held.
  void dial(Service& service, Meeting meeting, const Sides& sides, std::uint16_t data_port);
  void expect(Service& service, Meeting meeting, const Sides& sides);
  void accept(Service& service, Knock knock);
  void on_connected();
  void on_end(int error);
  bool serve(int descriptor) override;
  bool look() override;

  /// Nothing touches this side's memory afterwards, nor sources of its puts. Waits for the service to be done with it.
  void close() noexcept;

  /// Takes a prefix of a put, or nothing if the queue is full: then rings `space` once it has room. 0, too: dead.
  std::size_t put(std::uint64_t offset, std::span<const std::byte> source);
  /// Takes all of it. False: dead.
  bool push(Item item);
  [[nodiscard]] bool has_room();
  Result flush(const Deadline& deadline);
  /// Reads what has arrived and sends what waits. Returns whether it stopped before the end.
  bool drive();

  /// Asks the peer's fabric for memory that the peer exposes. Null, and an errno value.
  std::shared_ptr<const RemotePlace> reach(const memory::RemoteKey& key, std::size_t bytes, int& error);

  [[nodiscard]] LinkBells& bells() { return bells_; }
  [[nodiscard]] bool is_gone() const { return bells_.is_gone(); }
  /// It is gone, or will be soon: its data endpoint was refused, or its peer has ended it.
  [[nodiscard]] bool is_ending();
  /// The peer's data endpoint has answered.
  [[nodiscard]] bool is_open();
  /// Rings it no more.
  void forget_opening();
  /// Once it is gone: it was open before, or the peer ended the rendezvous.
  [[nodiscard]] bool is_ended_by_peer();
  [[nodiscard]] const Meeting& meeting() const { return meeting_; }

 private:
  struct Answer {
    RemotePlace place;
    int error = 0;
  };

  // With mutex_ held.
  void begin(Service& service, Meeting meeting, const Sides& sides);
  void start(Service& service, std::unique_ptr<Endpoint> endpoint);
  void send();
  bool drive_locked();
  void break_off(const char* reason);
  void fail_later();

  // With the service's mutex held, too.
  void on_socket();
  void finish(Service& service);
  void release(Service& service) noexcept;

  // Endpoint::Handler
  void on_sent() override;
  void on_read() override;
  void on_word(std::uint64_t data) override;
  void on_message(const layout::LinkMessage& message) override;
  void on_welcome(const layout::LinkMessage& message);
  void on_reach(const layout::LinkMessage& message);
  void on_reached(const layout::LinkMessage& message);
  void on_region_word(const layout::LinkMessage& message);
  void store(std::byte* at, std::uint64_t value, std::optional<Bell> bell);

  Meeting meeting_;
  Sides sides_;
  LinkBells bells_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const EventBell> opening_;  // null: its end has been told, or is an acceptor's
  Service* service_ = nullptr;                // set by dial and expect
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<Registration> registered_;
  std::optional<ExposedMemory> exposed_;
  bool connected_ = false;
  bool ended_by_peer_ = false;  // its rendezvous socket has ended
  bool broken_ = false;         // the service is to end the connection
  std::optional<RemotePlace> peer_;
  LinkSender sender_{bells_};
  PeerSlots slots_;
  std::uint32_t reach_number_ = 0;
  std::map<std::uint32_t, std::optional<Answer>> reaches_;
  Deadline ends_at_;  // the rendezvous socket has ended, the data endpoint not yet
};

}  // namespace wherry::fabric::ofi
