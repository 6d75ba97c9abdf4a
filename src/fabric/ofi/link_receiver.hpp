// SPDX-License-Identifier: Apache-2.0
// The receiver of one connection to another host: what the peer's words and messages do. LinkSender is its counterpart.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "fabric/bell.hpp"
#include "fabric/ofi/endpoint.hpp"
#include "fabric/ofi/exposed_memory.hpp"
#include "fabric/ofi/link_bells.hpp"
#include "fabric/ofi/link_sender.hpp"
#include "fabric/ofi/word_slots.hpp"

namespace wherry::fabric::ofi {

struct LinkSides {
  std::span<std::byte> segment;  ///< of this side; must outlive the link's `close`
  std::size_t peer_bytes = 0;    ///< size of the peer's segment
  bool exposes = false;          ///< the peer may reach memory that this side exposes
};

/// All calls with the link's mutex held.
class LinkReceiver final : public Endpoint::Handler {
 public:
  struct Answer {
    RemotePlace place;
    int error = 0;
  };

  /// Notifies `changed` of all that a caller may wait for.
  LinkReceiver(LinkBells& bells, LinkSender& sender, std::condition_variable& changed)
      : bells_(bells), sender_(sender), changed_(changed) {}

  void begin(const LinkSides& sides) { sides_ = sides; }
  /// The peer may reach exposed memory through that endpoint, until `end`.
  void start(const Endpoint& endpoint);
  void end() { exposed_.reset(); }

  /// The peer's segment; empty until the peer has named it.
  [[nodiscard]] const std::optional<RemotePlace>& peer() const { return peer_; }
  /// Whether the peer broke the protocol: the service must end the connection.
  [[nodiscard]] bool is_broken() const { return broken_; }

  /// The number of a new question to the peer.
  std::uint32_t ask();
  [[nodiscard]] bool is_answered(std::uint32_t question) const { return questions_.at(question).has_value(); }
  /// Forgets the question. Empty if no answer has come.
  std::optional<Answer> take_answer(std::uint32_t question) { return questions_.extract(question).mapped(); }

  void on_sent() override;
  void on_read() override;
  void on_word(std::uint64_t data) override;
  void on_message(const layout::LinkMessage& message) override;

 private:
  void on_welcome(const layout::LinkMessage& message);
  void on_region_word(const layout::LinkMessage& message);
  void on_reach(const layout::LinkMessage& message);
  void on_reached(const layout::LinkMessage& message);
  void store(std::byte* at, std::uint64_t value, std::optional<Bell> bell);
  void break_off(const char* reason);

  LinkBells& bells_;
  LinkSender& sender_;
  std::condition_variable& changed_;
  LinkSides sides_;
  std::optional<ExposedMemory> exposed_;
  std::optional<RemotePlace> peer_;
  PeerSlots slots_;
  std::uint32_t last_question_ = 0;
  std::map<std::uint32_t, std::optional<Answer>> questions_;
  bool broken_ = false;
};

}  // namespace wherry::fabric::ofi
