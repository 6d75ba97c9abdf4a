// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "file/mount/kept_state.hpp"

namespace wherry::file::mount {

/// The kernel's request that a thread is serving.
struct ServedRequest {
  std::uint64_t number = 0;                            ///< 0: none
  bool repeated = false;                               ///< an earlier daemon has read it, and may have carried it out
  bool begun = false;                                  ///< Attempts has recorded something for it
  std::vector<std::function<void()>> when_answered{};  ///< calls registered by `when_answered`
};
ServedRequest& served_request();

/// Calls `call` once the kernel has the answer to this thread's request, or at once if the thread serves none. For
/// state that an answer changes: if the daemon is killed before that, no program has seen the answer.
void when_answered(std::function<void()> call);

/// Protects calls that must not be carried out twice. Before such a call the daemon records a value. If it is killed,
/// the next daemon gets the same request again and compares the value with the server's files to see whether it was
/// done.
///
/// Thread-safe; each thread acts for the request that it serves. Never blocks.
class Attempts {
 public:
  /// @param kept  null: nothing is recorded, and no request is repeated
  explicit Attempts(KeptState* kept) : kept_(kept) {}
  /// Must be the first call.
  void restore(const KeptSnapshot& left) { left_ = left.begun; }

  /// Call it before the server is asked. Returns the value of the first attempt, if an earlier daemon made one.
  std::optional<std::uint64_t> begin(std::uint64_t value);
  /// As `begin`, for a rename.
  /// @param moved  identifies the file to be renamed
  std::optional<std::uint64_t> begin_rename(std::uint64_t moved, const KeptSnapshot::Renaming& renaming);
  /// The request is answered: runs the calls of `when_answered`.
  void end();

  /// Time of this kernel's coarse clock, which also stamps its files.
  [[nodiscard]] static std::uint64_t now();

 private:
  KeptState* kept_;
  std::unordered_map<std::uint64_t, std::uint64_t> left_;
};

/// Whether the file was created at that time or later. Empty: unknown.
std::optional<bool> was_made_since(const layout::FileStatus& status, std::uint64_t since);

}  // namespace wherry::file::mount
