// SPDX-License-Identifier: Apache-2.0
// The data endpoints of libfabric: one Endpoint (FI_EP_MSG) per connection. Each has its own completion queue, because
// the completion of a remote write does not tell the endpoint. Only this file and library.hpp use libfabric's calls.
// Endpoints of another kind would replace this file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/port_range.hpp"
#include "fabric/ofi/data_port.hpp"
#include "fabric/ofi/layout/link_messages.hpp"
#include "fabric/ofi/rendezvous.hpp"
#include "fabric/ofi/socket_address.hpp"

// NOLINTBEGIN(readability-identifier-naming): names of libfabric
struct fi_info;
struct fid;
struct fid_cq;
struct fid_domain;
struct fid_ep;
struct fid_eq;
struct fid_fabric;
struct fid_mr;
struct fid_pep;
// NOLINTEND(readability-identifier-naming)

namespace wherry::fabric::ofi {

struct SharedDomain;

/// Memory of this process that the peers of a domain may access with a random key, until this object is destroyed.
class Registration {
 public:
  Registration(fid_mr* region, std::uint64_t address, std::shared_ptr<const SharedDomain> domain = nullptr)
      : domain_(std::move(domain)), region_(region), address_(address) {}
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  ~Registration();

  [[nodiscard]] std::uint64_t key() const;
  /// Returns the address to which a peer adds its offset.
  [[nodiscard]] std::uint64_t address() const { return address_; }

 private:
  std::shared_ptr<const SharedDomain> domain_;  // of libfabric, which must outlive the region
  fid_mr* region_;
  std::uint64_t address_;
};

/// A place in memory that the peer has registered.
struct RemotePlace {
  std::uint64_t key = 0;
  std::uint64_t address = 0;
};

/// A connection request of a connector's data endpoint. An Endpoint accepts it; its destruction refuses it.
class Knock {
 public:
  Knock(fid_pep* listener, fi_info* info, const Token& token) : listener_(listener), info_(info), token_(token) {}
  Knock(const Knock&) = delete;
  Knock& operator=(const Knock&) = delete;
  Knock(Knock&& other) noexcept;
  Knock& operator=(Knock&&) = delete;
  ~Knock();

  [[nodiscard]] const Token& token() const { return token_; }
  [[nodiscard]] fi_info* info() const { return info_; }
  fi_info* release();

 private:
  fid_pep* listener_;
  fi_info* info_;
  Token token_;
};

/// The libfabric objects that a process needs once: fabric, event queue, ports. And its domains of libfabric, each for
/// a number of endpoints: since 1.19 the completion queues of a domain share one epoll, and the kernel lets at most a
/// hundred do so.
class Domain {
 public:
  /// Throws Error: ENOTSUP (no libfabric, or no provider), EMFILE, ENOMEM.
  Domain();
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;
  ~Domain();

  /// An event of an endpoint. `context` is the one that the endpoint was created with.
  struct News {
    enum class Kind : std::uint8_t { knock, connected, gone } kind;
    void* context = nullptr;
    int error = 0;                 ///< only for gone: an errno value, 0 if the peer ended the connection
    std::optional<Knock> knock{};  ///< only for knock
  };

  /// Returns a descriptor that is readable while there may be news. Sleep on it only after `may_sleep` returned true.
  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] bool may_sleep() const;
  /// Returns the next event; empty if there is none.
  std::optional<News> read();

  /// Listens at the local address as long as this exists, on a free port of the range, searched from a random one.
  /// Returns the port; that of an earlier call for the same address. Throws Error(EADDRINUSE).
  std::uint16_t listen(const SocketAddress& local, const PortRange& ports);

  /// Ends the connections to the ports of listen() that have been there since the last call, and whose request is still
  /// not complete. `peers` are the remote addresses of the endpoints. Call it after read() has returned nothing.
  /// Returns whether connections are left that the next call may end.
  bool end_strangers(const AddressTexts& peers);

 private:
  friend class Endpoint;
  struct Listening;

  std::optional<News> read_error();
  std::optional<News> on_knock(fid* listener, fi_info* info, std::span<const std::byte> data);
  std::shared_ptr<SharedDomain> domain_for_one_more();

  fi_info* info_ = nullptr;
  fid_fabric* fabric_ = nullptr;
  fid_eq* events_ = nullptr;
  int descriptor_ = -1;
  std::vector<Listening> listening_;
  std::shared_ptr<SharedDomain> first_;  // stays: opening one takes time
  std::vector<std::weak_ptr<SharedDomain>> domains_;
  AddressTexts suspects_;  ///< remote addresses
};

/// The data endpoint of one connection. One thread at a time. Its destruction ends the connection; after that nothing
/// accesses memory of this side.
class Endpoint {
 public:
  enum class Posted : std::uint8_t {
    yes,
    full,  ///< try again after a completion
    dead,
  };
  /// Receives completions, and the data of the peer.
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void on_sent() = 0;  ///< a write or message of this side is complete locally
    virtual void on_read() = 0;  ///< a read of this side is complete
    /// A write of the peer has arrived: its bytes, and then these 8 bytes.
    virtual void on_word(std::uint64_t data) = 0;
    virtual void on_message(const layout::LinkMessage& message) = 0;
  };

  /// Starts to connect. `context` is part of its events. Throws Error.
  Endpoint(Domain& domain, const SocketAddress& local, const SocketAddress& remote, const Token& token, void* context);
  /// Accepts a connection request. Throws Error.
  Endpoint(Domain& domain, Knock knock, void* context);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  ~Endpoint();

  /// Returns the address of the peer's data endpoint; empty if the provider does not know it.
  [[nodiscard]] std::optional<SocketAddress> peer() const;
  /// Returns whether a write can carry 8 bytes of data. If not, words travel in messages.
  [[nodiscard]] bool carries_words() const { return carries_words_; }
  [[nodiscard]] std::size_t most_bytes() const { return most_bytes_; }  ///< of a write or read

  /// Registers memory for the peer. Throws Error: ENOMEM, and the provider's errors, such as a limit of locked memory.
  [[nodiscard]] std::unique_ptr<Registration> expose(std::span<std::byte> memory) const;

  /// The caller may have at most this many requests in flight.
  static constexpr std::size_t kMostInFlight = 64;

  /// Start requests. Each completes once; writes and messages complete in order, and so do reads. The memory must stay
  /// valid until then, or until this is destroyed.
  Posted write(std::span<const std::byte> source, const RemotePlace& to, std::optional<std::uint64_t> data);
  Posted read(std::span<std::byte> into, const RemotePlace& from);
  Posted send(const layout::LinkMessage& message);  ///< copies it

  /// Drives the provider and handles about `most` completions. Returns their number, 0 if there were none; -1 if the
  /// endpoint failed.
  int poll(Handler& handler, int most);
  /// Returns a descriptor that is readable while `poll` has something to do. That holds only if `may_sleep` has
  /// returned true since the last poll.
  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] bool may_sleep() const;

 private:
  static constexpr std::size_t kReceives = 32;
  static constexpr std::size_t kSends = 2 * kMostInFlight;

  void open(Domain& domain, fi_info* info, void* context);
  void post_receives();
  bool post_receive(layout::LinkMessage& buffer);
  bool is_fatal_error();
  void close() noexcept;

  fid_fabric* fabric_;
  std::shared_ptr<SharedDomain> domain_;
  fid_ep* endpoint_ = nullptr;
  fid_cq* completions_ = nullptr;
  int descriptor_ = -1;
  bool carries_words_ = false;
  std::size_t most_bytes_ = 0;
  std::array<layout::LinkMessage, kReceives> received_{};
  std::array<layout::LinkMessage, kSends> sent_{};
  std::size_t next_sent_ = 0;
};

}  // namespace wherry::fabric::ofi
