// SPDX-License-Identifier: Apache-2.0
// The implementation of wherry::Subscriber.
//
// May include: base, layout, fabric, stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <wherry/message.hpp>

#include "message/endpoint_base.hpp"
#include "message/subscriber_connection.hpp"

namespace wherry {

class Subscriber::Impl : public message::EndpointBase {
 public:
  /// Throws Error(EINVAL).
  explicit Impl(SubscriberOptions options);

  void listen(const Address& address);
  void connect(const Address& address, Timeout timeout);
  void start_connect(const Address& address, Timeout wait);
  std::size_t admit(std::size_t wanted, Timeout timeout);

  [[nodiscard]] Result try_take(message::SubscriberConnection*& from, message::SubscriberConnection::Taken& taken);
  [[nodiscard]] Result take(message::SubscriberConnection*& from, message::SubscriberConnection::Taken& taken,
                            fabric::Deadline deadline);
  int descriptor();

  [[nodiscard]] std::size_t publishers() const noexcept { return publishers_.size(); }
  [[nodiscard]] std::uint64_t dropped() const noexcept;

 private:
  void join(std::unique_ptr<fabric::Connection> connection);
  void join_new();
  [[nodiscard]] Result next(message::SubscriberConnection*& from, message::SubscriberConnection::Taken& taken);
  void begin_turn(message::SubscriberConnection& publisher) noexcept;
  [[nodiscard]] Result remove_publisher(std::size_t which, message::SubscriberConnection::Look why) noexcept;
  [[nodiscard]] Result result_without_publishers() const noexcept;
  [[nodiscard]] bool waiting() const noexcept;
  void look_for_deaths(bool always) noexcept;
  void rearm_descriptor();

  const std::uint32_t places_;
  const Overflow overflow_;
  const bool prefault_;
  std::vector<message::SubscriberConnectionPtr> publishers_;
  std::size_t turn_ = 0;  ///< index of the publisher that is asked first
  stream::SteadyClock::time_point turn_ends_{};
  const message::SubscriberConnection* served_ =
      nullptr;                 ///< the publisher served in the last turn; only compared, never dereferenced
  std::uint64_t dropped_ = 0;  ///< messages dropped by publishers that are gone
  bool lost_ = false;          ///< a publisher died or broke the protocol
  bool refused_ = false;       ///< an attempt to connect was refused
  bool polled_ = false;        ///< the program uses the descriptor
  stream::SteadyClock::time_point next_look_{};
};

}  // namespace wherry
