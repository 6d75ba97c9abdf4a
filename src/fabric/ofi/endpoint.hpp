// SPDX-License-Identifier: Apache-2.0
// The data endpoints of libfabric: one Endpoint (FI_EP_MSG) for each connection, with a completion queue of its own, as
// a completion of a remote write does not say which endpoint it came by. All that knows libfabric's calls is in here
// and in library.hpp. Endpoints of another kind would replace this file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/port_range.hpp"
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

/// Memory of this process that the peers of one domain may reach, by a random key. Destroying it ends that.
class Registration {
 public:
  explicit Registration(fid_mr* region, std::uint64_t address) : region_(region), address_(address) {}
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  ~Registration();

  [[nodiscard]] std::uint64_t key() const;
  /// What a peer adds its offset to.
  [[nodiscard]] std::uint64_t address() const { return address_; }

 private:
  fid_mr* region_;
  std::uint64_t address_;
};

/// Somewhere in memory that the peer registered.
struct RemotePlace {
  std::uint64_t key = 0;
  std::uint64_t address = 0;
};

/// A connector's data endpoint that knocks. To be accepted by an Endpoint; destroying it refuses.
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

/// What libfabric needs once for the process: fabric, domain, event queue.
class Domain {
 public:
  /// Throws Error: ENOTSUP (no libfabric, or no provider), EMFILE, ENOMEM.
  Domain();
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;
  ~Domain();

  /// News of endpoints. `endpoint` is the `context` that the endpoint was made with.
  struct News {
    enum class Kind : std::uint8_t { knock, connected, gone } kind;
    void* context = nullptr;
    int error = 0;                 ///< gone: an errno value, 0 if the peer ended
    std::optional<Knock> knock{};  ///< knock
  };

  /// Readable while there may be news; `may_sleep` is to be asked before it is slept on.
  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] bool may_sleep() const;
  std::optional<News> read();

  /// Listens at the local address, on the first free port of the range. Returns the port. For as long as this lives.
  /// Throws Error(EADDRINUSE).
  std::uint16_t listen(const SocketAddress& local, const PortRange& ports);

  /// Throws Error: ENOMEM and what the provider says (a limit of locked memory).
  std::unique_ptr<Registration> expose(std::span<std::byte> memory) const;

 private:
  friend class Endpoint;
  struct Listening;

  std::optional<News> read_error();
  std::optional<News> on_knock(fid* listener, fi_info* info, std::span<const std::byte> data);

  fi_info* info_ = nullptr;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_eq* events_ = nullptr;
  int descriptor_ = -1;
  std::vector<Listening> listening_;
};

/// One connection's data. One thread at a time. Destroying it ends it: then nothing touches memory of this side.
class Endpoint {
 public:
  enum class Posted : std::uint8_t {
    yes,
    full,  ///< again after a completion
    dead,
  };
  /// What became of requests, and what the peer did.
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void on_sent() = 0;  ///< a write or message of this side's is complete here
    virtual void on_read() = 0;  ///< a read of this side's has arrived
    /// The peer's, with 8 bytes that arrived behind its bytes.
    virtual void on_word(std::uint64_t data) = 0;
    virtual void on_message(const layout::LinkMessage& message) = 0;
  };

  /// Dials. `context` comes with the news. Throws Error.
  Endpoint(Domain& domain, const SocketAddress& local, const SocketAddress& remote, const Token& token, void* context);
  /// Accepts. Throws Error.
  Endpoint(Domain& domain, Knock knock, void* context);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  ~Endpoint();

  /// Whether a write carries 8 bytes. If not, words travel in messages.
  [[nodiscard]] bool carries_words() const { return carries_words_; }
  [[nodiscard]] std::size_t most_bytes() const { return most_bytes_; }  ///< of a write or read

  /// Requests that the caller may have under way.
  static constexpr std::size_t kMostInFlight = 64;

  /// Each completes once: writes and messages in their order, and reads in theirs. The memory stays until then, or
  /// until this is destroyed.
  Posted write(std::span<const std::byte> source, const RemotePlace& to, std::optional<std::uint64_t> data);
  Posted read(std::span<std::byte> into, const RemotePlace& from);
  Posted send(const layout::LinkMessage& message);  ///< copies it

  /// Drives the provider and handles up to `most` completions. Returns how many; -1: the endpoint failed.
  int poll(Handler& handler, int most);
  /// Readable while `poll` has something to do, provided that `may_sleep` was asked since the last poll and said yes.
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
