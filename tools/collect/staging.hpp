// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"

namespace wherry::tools {

/// Names that begin so are the collectors' own, in every directory.
inline constexpr std::string_view kStagingPrefix = ".wherry-partial.";

/// Where files wait for their names that cannot wait without one: a directory with a random name, for this collector
/// alone. A lock on a file in it tells other collectors, in other containers and on other hosts too, that it is in use.
class Staging {
 public:
  /// Makes the directory in the one open as `top`, which must stay open. Throws Refusal.
  explicit Staging(int top);
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  /// Removes it; what is still in it is left to `remove_stale`.
  ~Staging();

  [[nodiscard]] int get() const { return directory_.get(); }
  /// A name in it that is not used yet. From any thread.
  std::string new_name();

  /// Removes what collectors of this user left in `top` whose lock has ended with them.
  static void remove_stale(int top);

 private:
  bool make();
  [[nodiscard]] bool own() const;

  int top_;
  std::string name_;
  UniqueFd directory_;
  UniqueFd lock_;
  std::atomic<std::uint64_t> names_ = 0;
};

}  // namespace wherry::tools
