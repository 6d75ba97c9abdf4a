// SPDX-License-Identifier: Apache-2.0
// The implementation of wherry::Publisher.
//
// May include: base, layout, fabric, stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <wherry/message.hpp>

#include "message/endpoint_base.hpp"
#include "message/publisher_connection.hpp"
#include "message/slabs.hpp"

namespace wherry {

class Publisher::Impl : public message::EndpointBase {
 public:
  /// Throws Error(EINVAL).
  explicit Impl(PublisherOptions options);
  ~Impl();

  void listen(const Address& address);
  void connect(const Address& address, Timeout timeout);
  void start_connect(const Address& address, Timeout wait);
  std::size_t admit(std::size_t wanted, Timeout timeout);

  [[nodiscard]] Result try_loan(message::Slabs::Block& block, std::size_t bytes);
  [[nodiscard]] Result loan(message::Slabs::Block& block, std::size_t bytes, fabric::Deadline deadline);
  [[nodiscard]] Result try_publish(message::Slabs::Block block, std::size_t bytes);
  [[nodiscard]] Result publish(message::Slabs::Block block, std::size_t bytes, fabric::Deadline deadline);
  int descriptor();

  [[nodiscard]] std::size_t subscribers() const noexcept;
  [[nodiscard]] std::size_t pool_bytes() const noexcept { return pool_bytes_; }
  /// Null before the first listen or connect.
  [[nodiscard]] message::Slabs* slabs() const noexcept { return slabs_; }

 private:
  using Block = message::Slabs::Block;

  const fabric::Offer& offer_on(const Address& address);
  void join(std::unique_ptr<fabric::Connection> connection);
  void join_new();
  [[nodiscard]] Result find(Block& block, std::size_t bytes);
  [[nodiscard]] Result hand_out(Block block, std::size_t bytes);
  [[nodiscard]] bool all_subscribers_ready() noexcept;
  std::size_t reclaim() noexcept;
  [[nodiscard]] bool in_flight() const noexcept;
  void watch_for_deaths() noexcept;
  void look_for_deaths() noexcept;
  void remove_ended() noexcept;
  template <class Ready>
  void wait(fabric::Deadline deadline, Ready&& ready);
  template <class Ready>
  void rearm_descriptor(Ready&& ready);

  std::size_t pool_bytes_;
  bool prefault_;
  fabric::Offer offer_;
  message::Slabs* slabs_ = nullptr;
  std::vector<std::unique_ptr<message::PublisherConnection>> subscribers_;
  bool polled_ = false;  ///< the program uses the descriptor
  std::int64_t next_look_ns_ = 0;
};

}  // namespace wherry
