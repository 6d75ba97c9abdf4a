// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "file/mount/kept_state.hpp"

namespace wherry::file::mount {

/// The kernel's request that a thread serves.
struct ServedRequest {
  std::uint64_t number = 0;  ///< 0: none
  bool repeated = false;     ///< an earlier daemon has read it, and may have done what it asks for
  bool begun = false;        ///< Attempts keeps something of it
  std::vector<std::function<void()>> when_answered{};  ///< of `when_answered`
};
ServedRequest& served_request();

/// Calls `call` once the kernel has the answer to the request that this thread serves, or at once if it serves none.
/// For what is kept of an answer: if the daemon is killed before that, the answer has reached no program.
void when_answered(std::function<void()> call);

/// Calls that must not be done twice. Before such a call something is kept that tells later whether it was done: a
/// daemon that is sent the request of one that was killed compares it with the server's files.
///
/// Threads: any, each for the request that it serves. Nothing blocks.
class Attempts {
 public:
  /// @param kept  null: nothing is kept, and no request is repeated
  explicit Attempts(KeptState* kept) : kept_(kept) {}
  /// Before any other call.
  void restore(const KeptSnapshot& left) { left_ = left.begun; }

  /// Before the server is asked. Returns what the first attempt gave, if an earlier daemon made one.
  std::optional<std::uint64_t> begin(std::uint64_t value);
  /// The same of a rename.
  /// @param moved  tells what is to be renamed
  std::optional<std::uint64_t> begin_rename(std::uint64_t moved, const KeptSnapshot::Renaming& renaming);
  /// The request is answered: calls what waits for that.
  void end();

  /// By the coarse clock of this kernel, that stamps its files.
  [[nodiscard]] static std::uint64_t now();

 private:
  KeptState* kept_;
  std::unordered_map<std::uint64_t, std::uint64_t> left_;
};

/// Whether the file was made at that time or later. Nothing: it cannot be told.
std::optional<bool> was_made_since(const layout::FileStatus& status, std::uint64_t since);

}  // namespace wherry::file::mount
