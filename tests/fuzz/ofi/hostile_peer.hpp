// SPDX-License-Identifier: Apache-2.0
// For the fuzz target of connections between hosts: the network and the peer, which the input plays.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "fabric/ofi/endpoint.hpp"
#include "memory/region.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/fuzz/ofi/link_model.hpp"
#include "tests/fuzz/ofi/played_network.hpp"

namespace wherry::fuzz {

/// The fabric and the peer behind it.
class HostilePeer final : public PlayedNetwork {
 public:
  HostilePeer(Input& input, std::span<std::byte> segment)
      : input_(input), segment_(segment), carries_words_(!input.one_in(4)) {}

  Posted write(std::span<const std::byte> source, const RemotePlace& /*to*/,
               std::optional<std::uint64_t> data) override {
    require(carries_words_ || !data);
    read_all(source);
    const Posted result = posted();
    if (result == Posted::yes) sends_.push_back(source);
    return result;
  }
  Posted read(std::span<std::byte> into) override {
    const Posted result = posted();
    if (result == Posted::yes) reads_.push_back(into);
    return result;
  }
  Posted send(const fabric::ofi::layout::LinkMessage& message) override {
    const Posted result = posted();
    if (result != Posted::yes) return result;
    sends_.emplace_back();
    if (!is_welcomed_) {
      require(message.kind == 1 && message.number == fabric::ofi::layout::kLinkVersion && message.c == segment_.size());
      require(registered_.contains(message.a));
      is_welcomed_ = true;
    }
    if (message.kind == 5) model.on_flush_sent(message.a);
    if (message.kind == 7) last_reach_ = message.number;
    if (message.kind == 8) on_reached(message);
    return result;
  }
  int poll(Handler& handler, int most) override {
    int handled = 0;
    if (std::exchange(welcomes_, false)) {
      hand_over(handler, {.kind = 1, .number = fabric::ofi::layout::kLinkVersion, .a = 1, .b = 0, .c = kPage});
      ++handled;
    }
    while (handled < most && !input_.empty()) {
      const auto choice = input_.number<std::uint8_t>() % 12;
      if (choice == 0) return handled;
      if (choice == 1 && input_.one_in(8)) return -1;
      ++handled;
      act(handler, choice);
    }
    return handled;
  }
  [[nodiscard]] bool carries_words() const override { return carries_words_; }
  void on_endpoint_closed() override {
    sends_.clear();
    reads_.clear();
  }

  std::uint64_t expose(std::span<std::byte> memory) override {
    read_all(memory);
    registered_.emplace(++last_key_, memory);
    return last_key_;
  }
  void on_registration_ended(std::uint64_t key) override { require(registered_.erase(key) == 1); }

  void run_others() override { on_idle(); }

  /// To be set before the program sleeps: serves the link, and ends it if the input is used up.
  std::function<void()> on_idle;
  /// What the program exposes.
  memory::RemoteKey exposed_key;
  LinkModel model{kPage};

  /// The endpoint may still read or write memory of the program's.
  [[nodiscard]] bool holds_memory() const {
    return !reads_.empty() || std::ranges::any_of(sends_, [](const auto& source) { return !source.empty(); });
  }
  [[nodiscard]] bool is_cut_off() const { return registered_.empty() && sends_.empty() && reads_.empty(); }

 private:
  Posted posted() {
    require(sends_.size() + reads_.size() < fabric::ofi::Endpoint::kMostInFlight);
    if (input_.one_in(64)) return Posted::dead;
    return input_.one_in(16) ? Posted::full : Posted::yes;
  }

  void act(Handler& handler, int choice) {
    switch (choice) {
      case 1:
      case 2:
        if (sends_.empty()) return;
        read_all(sends_.front());
        sends_.pop_front();
        handler.on_sent();
        return;
      case 3:
        if (reads_.empty()) return;
        std::memset(reads_.front().data(), 'r', reads_.front().size());
        reads_.pop_front();
        handler.on_read();
        return;
      case 4: {
        const std::size_t slot = input_.one_in(8) ? input_.number<std::uint8_t>() : input_.number<std::uint8_t>() % 4;
        const std::uint64_t data =
            fabric::ofi::layout::slot_data(static_cast<std::uint8_t>(slot), input_.number<std::uint64_t>());
        model.on_word(data);
        handler.on_word(data);
        return;
      }
      case 5:
        write_registered();
        return;
      default:
        say(handler);
    }
  }

  /// A provider checks keys and bounds.
  void write_registered() {
    if (registered_.empty()) return;
    auto each =
        std::next(registered_.begin(), static_cast<std::ptrdiff_t>(input_.number<std::uint8_t>() % registered_.size()));
    const std::size_t offset = input_.number<std::uint16_t>() % each->second.size();
    const auto bytes = each->second.subspan(offset).first(
        std::min<std::size_t>(input_.number<std::uint8_t>(), each->second.size() - offset));
    if (bytes.empty()) return;
    std::memset(bytes.data(), input_.number<std::uint8_t>(), bytes.size());
    if (each->second.data() == segment_.data()) model.on_write(offset, bytes);
  }

  void say(Handler& handler) { hand_over(handler, made()); }

  void hand_over(Handler& handler, const fabric::ofi::layout::LinkMessage& message) {
    std::byte* const word = message.kind == 4 ? exposed_word(message) : nullptr;
    const bool was_broken = model.is_broken();
    model.on_message(message, word != nullptr);
    if (!was_broken && message.kind == 7) asked_.push_back(message.c);
    handler.on_message(message);
    if (word != nullptr && !was_broken) require(std::memcmp(word, &message.b, sizeof message.b) == 0);
  }

  fabric::ofi::layout::LinkMessage made() {
    fabric::ofi::layout::LinkMessage message{};
    message.kind = input_.one_in(32) ? input_.number<std::uint32_t>() : input_.number<std::uint8_t>() % 9;
    message.number = input_.one_in(8) ? input_.number<std::uint32_t>() : number_of(message.kind);
    message.a = input_.one_in(16) ? input_.number<std::uint64_t>() : a_of(message.kind);
    message.b = message.kind == 2 ? input_.number<std::uint8_t>() % 4 : input_.number<std::uint64_t>();
    if (message.kind == 7 && !input_.one_in(8)) message.b = exposed_key.kind;
    message.c = c_of(message.kind);
    return message;
  }
  std::uint32_t number_of(std::uint32_t kind) {
    if (kind == 1) return fabric::ofi::layout::kLinkVersion;
    if (kind == 2) return static_cast<std::uint32_t>(model.slots());
    if (kind == 8) return last_reach_;
    return input_.number<std::uint8_t>() % 4;
  }
  std::uint64_t a_of(std::uint32_t kind) {
    if (kind == 6) return model.asked() + (input_.one_in(8) ? 1 : 0);
    if (kind == 7) return exposed_key.place + (input_.one_in(4) ? input_.number<std::uint16_t>() : 0U);
    // Up to a few words behind the end.
    return input_.number<std::uint16_t>() % (kPage / 8 + 4) * std::uint64_t{8};
  }
  std::uint64_t c_of(std::uint32_t kind) {
    if (kind == 8) return input_.one_in(2) ? input_.number<std::uint16_t>() : 0;
    if (kind == 4) return input_.one_in(4) ? input_.number<std::uint8_t>() : last_key_;
    if (input_.one_in(16)) return input_.number<std::uint64_t>();
    return kind == 7 ? input_.number<std::uint8_t>() % 5 * kPage : kPage;
  }

  /// Null: there is no such word, or no such memory was exposed to the peer.
  std::byte* exposed_word(const fabric::ofi::layout::LinkMessage& message) {
    const auto known = registered_.find(message.c);
    if (known == registered_.end() || known->second.data() == segment_.data()) return nullptr;
    const bool holds = message.a % 8 == 0 && message.a < known->second.size() && known->second.size() - message.a >= 8;
    return holds ? known->second.data() + message.a : nullptr;
  }

  void on_reached(const fabric::ofi::layout::LinkMessage& message) {
    require(!asked_.empty());
    const std::uint64_t bytes = asked_.front();
    asked_.pop_front();
    if (message.c != 0) return;
    const auto known = registered_.find(message.a);
    require(known != registered_.end() && known->second.data() != segment_.data());
    require(known->second.size() == bytes && bytes <= kExposed);
  }

  Input& input_;
  const std::span<std::byte> segment_;
  const bool carries_words_;
  bool welcomes_ = !input_.one_in(4);  // as a peer does
  bool is_welcomed_ = false;
  std::deque<std::span<const std::byte>> sends_;  // empty: a message
  std::deque<std::span<std::byte>> reads_;
  std::map<std::uint64_t, std::span<std::byte>> registered_;
  std::uint64_t last_key_ = 0;
  std::uint32_t last_reach_ = 0;
  std::deque<std::uint64_t> asked_;  // bytes of the peer's requests that wait for an answer
};

}  // namespace wherry::fuzz
