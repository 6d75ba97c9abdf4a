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
  /// `bytes` of the front are done with.
  void skip(std::size_t bytes);

 private:
  std::span<const iovec> rest_;
  std::size_t done_ = 0;  ///< bytes of the first
};

/// A way to a host's file server: takes a request, gives its answer. Nothing throws but where memory lacks; after
/// `false` or an empty result it is of no more use.
class HostConnection {
 public:
  HostConnection() = default;
  HostConnection(const HostConnection&) = delete;
  HostConnection& operator=(const HostConnection&) = delete;
  virtual ~HostConnection() = default;

  [[nodiscard]] virtual const layout::FileHello& server() const = 0;
  /// The process whose descriptors are lent (a pidfd); -1: none are. Every answer comes from that very process: it
  /// lived when this was opened, so the number was its own.
  [[nodiscard]] virtual int lender() const = 0;

  /// Makes a handle of a file that this process has a descriptor of. 0, which is no file's: there is no way to do so.
  [[nodiscard]] virtual std::uint64_t adopt(int /*descriptor*/, bool /*appends*/) { return 0; }
  /// After a failure: whether the server may have done what was asked for.
  [[nodiscard]] virtual bool may_have_done() const { return true; }
  /// Sends the request, its names, and the data.
  [[nodiscard]] virtual bool send(layout::FileRequest request, std::string_view name, std::string_view second,
                                  Buffers data, std::uint64_t data_bytes) = 0;
  /// The whole answer of a call whose payload is `T` where it succeeds; `payload` may be null for one without any.
  [[nodiscard]] virtual std::optional<layout::FileAnswer> receive(std::span<std::byte> payload) = 0;
  [[nodiscard]] virtual std::optional<layout::FileAnswer> receive(std::vector<std::byte>& payload,
                                                                  std::size_t most) = 0;
  /// What a read came to: bytes moved into the buffers, and an errno value where it ended early.
  struct Read {
    std::uint64_t bytes;
    int error;
  };
  [[nodiscard]] virtual std::optional<Read> receive_data(Buffers into, std::uint64_t length) = 0;
};

/// A client whose processes follow one another, each in place of one that was killed. The server serves none before all
/// that an earlier one has sent is done.
struct ClientProcess {
  std::uint64_t client = 0;  ///< 0: no process follows
  std::uint64_t number = 0;  ///< the later the higher
};

/// By a stream. A server is trusted with what a file holds, and with nothing else: each head of an answer is copied and
/// checked.
class StreamConnection final : public HostConnection {
 public:
  /// Connects. Throws Error: as wherry::connect, and EPROTO if what answers is no server of this version.
  /// @param listener_wait  how long to wait for a listener, as for wherry::start_connect
  /// @param timeout  for each of connecting and greeting; empty: the configured one of wherry::connect, kGreeting
  StreamConnection(const std::string& address, std::size_t ring_bytes, AtFaultPoint at, Timeout listener_wait,
                   Timeout timeout = {}, const ClientProcess& process = {});
  static constexpr std::chrono::seconds kGreeting{10};
  /// For a server that has been met: its clients have a policy of their own for one that is gone.
  static constexpr std::chrono::nanoseconds kNoWait{0};

  [[nodiscard]] const layout::FileHello& server() const override { return hello_; }
  /// The server's process, if it runs under this kernel and lends files.
  [[nodiscard]] int lender() const override { return lender_.get(); }
  /// Its number; 0: not known.
  [[nodiscard]] std::int64_t process() const { return stream_.peer().pid; }

  /// Ends every call that waits, and later ones. From any thread.
  void cancel() noexcept { stream_.cancel(); }
  /// Asked every `kStall` while a call waits for the server; false ends that call, as a failure.
  void set_patience(std::function<bool()> goes_on) { goes_on_ = std::move(goes_on); }
  static constexpr std::chrono::milliseconds kStall{20};

  [[nodiscard]] bool send(layout::FileRequest request, std::string_view name, std::string_view second, Buffers data,
                          std::uint64_t data_bytes) override;
  [[nodiscard]] std::optional<layout::FileAnswer> receive(std::span<std::byte> payload) override;
  [[nodiscard]] std::optional<layout::FileAnswer> receive(std::vector<std::byte>& payload, std::size_t most) override;
  [[nodiscard]] std::optional<Read> receive_data(Buffers into, std::uint64_t length) override;

 private:
  [[nodiscard]] std::optional<layout::FileAnswer> receive_head();
  [[nodiscard]] bool send_all(std::span<const iovec> parts);
  [[nodiscard]] bool receive_all(std::span<std::byte> bytes);
  [[nodiscard]] bool is_over(const Result& result) const;

  Stream stream_;
  layout::FileHello hello_{};
  UniqueFd lender_;
  std::uint32_t id_ = 0;
  AtFaultPoint at_;
  std::function<bool()> goes_on_{};
};

}  // namespace wherry::file
