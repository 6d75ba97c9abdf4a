// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "file/client/host.hpp"
#include "file/mount/open_file.hpp"

namespace wherry::file::mount {

/// Writes data that was kept to the server: under a write delegation or, once a restarted server has lost it, without.
/// Knows the size and the modification time of the server's file, which tell whether others have changed it.
///
/// Not thread-safe. Each call that writes or asks blocks as Host does.
class DelegatedWriter {
 public:
  struct Write {
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
    std::vector<iovec> parts{};
    std::uint32_t drops = 0;  ///< kFileWriteBy...
  };

  /// @param file  must outlive this object
  /// @param lost  called before the first write without the delegation
  DelegatedWriter(OpenFile& file, std::function<void()> lost) : file_(file), lost_(std::move(lost)) {}
  DelegatedWriter(const DelegatedWriter&) = delete;
  DelegatedWriter& operator=(const DelegatedWriter&) = delete;
  ~DelegatedWriter() = default;

  /// Asks the server for the delegation, or for room for more bytes under it. A restarted server may delegate the file
  /// anew. Returns for how many bytes the server has room; 0: the file is not delegated.
  std::uint64_t ask(std::uint64_t client, layout::FileStatus& status);
  /// Writes all of it. Returns 0, or an errno value. ESTALE: others have changed the file since the server lost the
  /// delegation.
  int write(const Write& write);
  void give_back();

  [[nodiscard]] bool is_delegated() const { return is_delegated_; }  ///< as far as known
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] std::uint64_t modified() const { return modified_; }  ///< nanoseconds

 private:
  Result write_undelegated(std::uint64_t offset, std::span<const iovec> parts);
  void note(const layout::FileStatus& status);
  void note_status(std::uint32_t drops);
  int check_unchanged(const Write& write, bool begun);

  OpenFile& file_;
  const std::function<void()> lost_;
  bool is_delegated_ = false;
  std::uint64_t size_ = 0;
  std::uint64_t modified_ = 0;
};

}  // namespace wherry::file::mount
