// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/unique_fd.hpp"

namespace wherry::file::mount {

/// What a kept descriptor refers to.
enum class KeptKind : std::uint32_t {
  none = 0,
  device = 1,  ///< the kernel's device of the mount
  state = 2,   ///< the memory of KeptState
  file = 3,    ///< an open file without a name; the id is its number
  locks = 4,   ///< a lock owner; the id is its number
  memory = 5,  ///< other memory of the daemon
  ring = 6,    ///< a WriteRing; the id is its file's number in the WriteBuffer
};

struct KeptKey {
  KeptKind kind;
  std::uint64_t id = 0;
  auto operator<=>(const KeptKey&) const = default;
};

/// Descriptors that outlive the daemon. Its supervisor holds duplicates and gives them to the next daemon. The daemon
/// may be killed at any instruction: what was kept before is available to the next one.
///
/// Thread-safe. Sending waits only until the supervisor, which does nothing else, has taken earlier messages. Without a
/// supervisor, or once it has ended, nothing is kept.
class KeptDescriptors {
 public:
  KeptDescriptors() = default;
  /// Takes over the descriptors that an earlier daemon kept: all of them. Throws Error: EPIPE if the supervisor has
  /// ended or failed before it gave the last one, EMFILE if this process may have no more descriptors.
  /// @param supervisor  the socket that the supervisor gave to this process
  explicit KeptDescriptors(UniqueFd supervisor);
  KeptDescriptors(const KeptDescriptors&) = delete;
  KeptDescriptors& operator=(const KeptDescriptors&) = delete;

  /// Whether there is a supervisor that keeps descriptors.
  [[nodiscard]] bool has_supervisor() const;
  /// Readable once the supervisor has ended; -1: no supervisor.
  [[nodiscard]] int supervisor() const { return supervisor_.get(); }

  /// Keeps a duplicate from now on. False: it is not kept.
  bool keep(KeptKey key, int descriptor) const;
  void drop(KeptKey key) const;
  /// Whether an earlier daemon kept this key, and it is not taken yet.
  [[nodiscard]] bool has(KeptKey key);
  /// Returns what an earlier daemon kept; the supervisor still keeps it. Invalid if nothing was kept.
  [[nodiscard]] UniqueFd take(KeptKey key);
  /// Drops what was kept and not taken.
  void drop_rest();

  /// Call it before the device is kept.
  void report_mounted(const std::string& directory) const;
  /// Reports that the mount answers.
  void report_ready() const;
  /// Reports that a request of a program was answered.
  void report_served() const;

 private:
  UniqueFd supervisor_;
  std::mutex mutex_;
  std::map<KeptKey, UniqueFd> inherited_;
};

/// Sends and receives messages on the socket between daemon and supervisor; for both sides.
class KeeperSocket {
 public:
  struct Received {
    std::uint32_t word = 0;  ///< layout::KeeperWord; 0: no message, or the other side has ended
    KeptKey key{};
    UniqueFd descriptor;
    std::string text;
  };
  /// @param descriptor  -1: none
  static bool send(int socket, std::uint32_t word, KeptKey key, int descriptor = -1, const std::string& text = {});
  /// @param waits  whether to wait for a message
  static Received receive(int socket, bool waits);
};

}  // namespace wherry::file::mount
