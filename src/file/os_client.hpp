// SPDX-License-Identifier: Apache-2.0
// The path `os`, as a process of a card goes it: reads that the card's own process serves (CardServer). Writes are the
// caller's own: one that a stopped card makes later could not be called back, and would overwrite what came after it.
#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include <wherry/result.hpp>

#include "base/fork_generation.hpp"
#include "file/cache.hpp"
#include "file/fault_point.hpp"
#include "file/host_connection.hpp"

namespace wherry::file {

/// Tells connections apart, also those of a forked child from its parent's.
struct OsGeneration {
  std::uint64_t process = 0;
  std::uint64_t connection = 0;
  bool operator==(const OsGeneration&) const = default;
};

/// The connection to the card's process. One per process is enough: calls go one after the other. Made when it is first
/// needed, and again when a new card is there, or in a forked child. A card that died, is not there or does not answer
/// is told of once; a wait for it lasts no longer than `timeout`, between two pieces of data.
class OsClient {
 public:
  /// The cache must outlive it.
  explicit OsClient(Cache& cache, std::chrono::milliseconds timeout = kBusyTimeout, AtFaultPoint at = {})
      : cache_(cache), timeout_(timeout), at_(std::move(at)) {}
  /// Longer than a disk takes that is in order.
  static constexpr std::chrono::milliseconds kBusyTimeout{1000};
  OsClient(const OsClient&) = delete;
  OsClient& operator=(const OsClient&) = delete;

 private:
  friend class OsFile;
  using Clock = std::chrono::steady_clock;

  /// Connected, if a card's process can be reached now. With the lock held.
  bool connected();
  void lose(Clock::time_point since);
  void put_off(Clock::duration pause);
  void say(const char* what);

  Cache& cache_;
  std::chrono::milliseconds timeout_;
  AtFaultPoint at_;
  std::mutex mutex_;
  std::optional<HostConnection> connection_;
  Origin origin_;  ///< of the connection
  OsGeneration generation_;
  std::uint64_t token_ = 0;       ///< of the card that was tried last
  std::uint64_t failed_ = 0;      ///< the token of the card that could not be reached last
  Clock::time_point next_try_{};  ///< to reach that one
  bool said_ = false;
};

/// This process's, to the card of its cache (process_cache). A forked child has another.
OsClient& process_os_client();

/// An open file by way of the card's process. From any thread.
class OsFile {
 public:
  /// @param descriptor  a regular file, open here: it stays the caller's, and must outlive this object. No O_APPEND or
  ///                    O_DIRECT, on a file system whose files are cached
  explicit OsFile(int descriptor) : OsFile(process_os_client, descriptor) {}
  OsFile(OsClient& client, int descriptor) : OsFile([&client]() -> OsClient& { return client; }, descriptor) {}
  OsFile(const OsFile&) = delete;
  OsFile& operator=(const OsFile&) = delete;
  /// Closes it there.
  ~OsFile();

  /// As preadv. Empty: no card's process serves this call, or it died or was too late with its answer; the caller
  /// serves it from the beginning.
  [[nodiscard]] std::optional<Result> read(std::uint64_t offset, std::span<const iovec> into);

 private:
  OsFile(std::function<OsClient&()> client, int descriptor) : client_(std::move(client)), descriptor_(descriptor) {}
  bool opened(OsClient& client);
  bool open(OsClient& client);
  void close(OsClient& client);
  template <class Receive>
  bool ask(OsClient& client, layout::FileRequest request, Receive receive);

  std::function<OsClient&()> client_;
  int descriptor_;
  OsGeneration generation_;   ///< of the connection over which it was opened last
  std::uint64_t handle_ = 0;  ///< there; 0: that card does not serve it
};

}  // namespace wherry::file
