// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <wherry/stream.hpp>

#include "base/unique_fd.hpp"
#include "file/wire/fault_point.hpp"
#include "file/wire/layout/wire.hpp"

namespace wherry::file {

/// A list of buffers, consumed from the front.
class Buffers {
 public:
  explicit Buffers(std::span<const iovec> buffers) : rest_(buffers) { skip(0); }

  [[nodiscard]] std::uint64_t bytes() const;
  /// The front, at most `most` bytes of it; empty at the end.
  [[nodiscard]] std::span<std::byte> front(std::size_t most) const;
  /// Consumes `bytes` of the front.
  void skip(std::size_t bytes);

 private:
  std::span<const iovec> rest_;
  std::size_t done_ = 0;  ///< bytes of the first buffer that are consumed
};

/// A connection to a host's file server: sends a request, receives its answer. Unusable after `false` or an empty
/// result. Throws only if memory is short.
class HostConnection {
 public:
  HostConnection() = default;
  HostConnection(const HostConnection&) = delete;
  HostConnection& operator=(const HostConnection&) = delete;
  virtual ~HostConnection() = default;

  [[nodiscard]] virtual const layout::FileHello& server() const = 0;
  /// A pidfd of the process that lends its descriptors; -1: none. All answers come from that process: it was alive when
  /// this connection was opened, so the process number was not reused.
  [[nodiscard]] virtual int lender() const = 0;

  /// Gets a handle for a file that this process has open as `descriptor`. 0, which is never a handle: not supported.
  [[nodiscard]] virtual std::uint64_t adopt(int /*descriptor*/, bool /*appends*/) { return 0; }
  /// After a failure: whether the server may have carried out the request.
  [[nodiscard]] virtual bool may_have_done() const { return true; }
  /// Sends the request, its two names, and the data.
  [[nodiscard]] virtual bool send(layout::FileRequest request, std::string_view name, std::string_view second,
                                  Buffers data, std::uint64_t data_bytes) = 0;
  /// Receives a whole answer. On success its payload must have exactly the size of `payload`, which may be empty.
  [[nodiscard]] virtual std::optional<layout::FileAnswer> receive(std::span<std::byte> payload) = 0;
  [[nodiscard]] virtual std::optional<layout::FileAnswer> receive(std::vector<std::byte>& payload,
                                                                  std::size_t most) = 0;
  /// The result of a read: bytes moved into the buffers, an errno value if it ended early, and `position` of the last
  /// answer.
  struct Read {
    std::uint64_t bytes;
    int error;
    std::uint64_t position = 0;
  };
  [[nodiscard]] virtual std::optional<Read> receive_data(Buffers into, std::uint64_t length) = 0;
};

/// Identifies a process in a sequence, in which each process replaces one that was killed. The server serves a process
/// only after it has completed all requests of earlier ones.
struct ClientProcess {
  std::uint64_t client = 0;  ///< 0: no process follows this one
  std::uint64_t number = 0;  ///< higher for later processes
};

/// A connection over a stream. It trusts the server with the contents of files only: each answer's header is copied and
/// then checked.
class StreamConnection final : public HostConnection {
 public:
  /// Connects. Throws Error: as wherry::connect; EPROTO if the peer is not a file server of this version.
  /// @param ring_bytes  as StreamOptions::ring_bytes
  /// @param listener_wait  how long to wait for a listener, as for wherry::start_connect
  /// @param timeout  limits connecting and greeting separately; empty: the configured one of wherry::connect, and
  /// kGreeting
  StreamConnection(const std::string& address, std::size_t ring_bytes, AtFaultPoint at, Timeout listener_wait,
                   Timeout timeout = {}, const ClientProcess& process = {});
  static constexpr std::chrono::seconds kGreeting{10};
  /// `listener_wait` of a reconnection: HostLink retries by its own policy.
  static constexpr std::chrono::nanoseconds kNoWait{0};

  [[nodiscard]] const layout::FileHello& server() const override { return hello_; }
  /// The server's process, if it runs under this kernel and lends files.
  [[nodiscard]] int lender() const override { return lender_.get(); }
  /// The server's process number; 0: unknown.
  [[nodiscard]] std::int64_t process() const { return stream_.peer().pid; }

  /// As those of the stream, in bytes.
  [[nodiscard]] std::size_t receive_capacity() const { return stream_.receive_capacity(); }
  [[nodiscard]] std::size_t send_capacity() const { return stream_.send_capacity(); }

  /// Ends every waiting call, and later ones. Thread-safe.
  void cancel() noexcept { stream_.cancel(); }
  /// Called every `kStall` while a call waits for the server; if it returns false, the call fails.
  void set_wait_check(std::function<bool()> may_wait) { may_wait_ = std::move(may_wait); }
  static constexpr std::chrono::milliseconds kStall{20};
  /// Returns false if a byte of a range cannot be accessed.
  using Copy = bool (*)(void* to, const void* from, std::size_t bytes);
  /// From now on copies data with this function between the rings and the callers' buffers, which need not be
  /// accessible. A read into one that is not ends with EFAULT; a write from one ends the connection.
  void set_copy(Copy copy) { copy_ = copy; }

  [[nodiscard]] bool send(layout::FileRequest request, std::string_view name, std::string_view second, Buffers data,
                          std::uint64_t data_bytes) override;
  [[nodiscard]] std::optional<layout::FileAnswer> receive(std::span<std::byte> payload) override;
  [[nodiscard]] std::optional<layout::FileAnswer> receive(std::vector<std::byte>& payload, std::size_t most) override;
  [[nodiscard]] std::optional<Read> receive_data(Buffers into, std::uint64_t length) override;

 private:
  [[nodiscard]] std::optional<layout::FileAnswer> receive_head();
  [[nodiscard]] bool send_all(std::span<const iovec> parts);
  [[nodiscard]] bool receive_all(std::span<std::byte> bytes);
  [[nodiscard]] bool send_copied(std::span<const std::byte> data);
  [[nodiscard]] bool receive_copied(std::span<std::byte> room, bool& is_accessible);
  [[nodiscard]] Timeout longest_wait() const { return may_wait_ ? Timeout(kStall) : Timeout(); }
  [[nodiscard]] bool is_over(const Result& result) const;

  Stream stream_;
  layout::FileHello hello_{};
  UniqueFd lender_;
  std::uint32_t id_ = 0;
  AtFaultPoint at_;
  std::function<bool()> may_wait_{};
  Copy copy_ = nullptr;  ///< null: the callers' buffers are accessible
};

}  // namespace wherry::file
