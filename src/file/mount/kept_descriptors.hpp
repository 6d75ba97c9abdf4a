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

/// What a kept descriptor is of.
enum class KeptKind : std::uint32_t {
  none = 0,
  device = 1,  ///< the kernel's device of the mount
  state = 2,   ///< the memory of KeptState
  file = 3,    ///< an open file that has no name any more; the id is its number
  locks = 4,   ///< an owner of locks; the id is its number
  memory = 5,  ///< other memory of the daemon
};

struct KeptKey {
  KeptKind kind;
  std::uint64_t id = 0;
  auto operator<=>(const KeptKey&) const = default;
};

/// Descriptors that outlive the daemon: its supervisor has duplicates of them, and gives them to the next daemon. What
/// was kept before the daemon is killed is there for the next one, at whatever instruction the kill comes.
///
/// Threads: any. A message waits only until the supervisor, which does nothing else, has taken those before it. Without
/// a supervisor, or once it is gone, nothing is kept.
class KeptDescriptors {
 public:
  KeptDescriptors() = default;
  /// Takes over what an earlier daemon had kept.
  /// @param supervisor  the socket that it gave to this process
  explicit KeptDescriptors(UniqueFd supervisor);
  KeptDescriptors(const KeptDescriptors&) = delete;
  KeptDescriptors& operator=(const KeptDescriptors&) = delete;

  /// Whether there is a supervisor that keeps descriptors.
  [[nodiscard]] bool has_supervisor() const;
  /// Readable once the supervisor is gone; -1: there is none.
  [[nodiscard]] int supervisor() const { return supervisor_.get(); }

  /// Keeps a duplicate from now on. False: it is not kept.
  bool keep(KeptKey key, int descriptor) const;
  void drop(KeptKey key) const;
  /// Whether an earlier daemon kept it, and it is not taken yet.
  [[nodiscard]] bool has(KeptKey key);
  /// What an earlier daemon kept, which is kept on; not valid if nothing was.
  [[nodiscard]] UniqueFd take(KeptKey key);
  /// Drops what was kept and has not been taken.
  void drop_rest();

  /// Before the device is kept.
  void say_mounted(const std::string& directory) const;
  /// The mount answers.
  void say_ready() const;
  /// A request of a program was answered.
  void say_served() const;

 private:
  UniqueFd supervisor_;
  std::mutex mutex_;
  std::map<KeptKey, UniqueFd> inherited_;
};

/// One end of the socket. Messages of either side, for both sides.
class KeeperSocket {
 public:
  struct Received {
    std::uint32_t word = 0;  ///< layout::KeeperWord, or 0: nothing is there, or the other side is gone
    KeptKey key{};
    UniqueFd descriptor;
    std::string text;
  };
  /// @param descriptor  -1: none
  static bool send(int socket, std::uint32_t word, KeptKey key, int descriptor = -1, const std::string& text = {});
  /// @param waits  for a message
  static Received receive(int socket, bool waits);
};

}  // namespace wherry::file::mount
