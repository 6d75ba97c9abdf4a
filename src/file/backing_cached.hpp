// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/unique_fd.hpp"
#include "file/backing.hpp"
#include "file/served_file.hpp"

namespace wherry::file {

/// A file of this kernel by way of the card's cache: what is there is copied from it, what is not is read into it.
/// Changes are the kernel's at once, and noted.
class CachedBacking final : public Backing {
 public:
  /// Whether such a file may be cached.
  static bool takes(int descriptor, const layout::FileStatus& status);
  /// `now`: before `status` was asked for. The cache must outlive it.
  CachedBacking(UniqueFd file, Cache& cache, const layout::FileStatus& status, std::uint64_t now);

  [[nodiscard]] ssize_t read(std::span<const iovec> into, std::uint64_t offset) override;
  [[nodiscard]] ssize_t write(std::span<const iovec> from, std::uint64_t offset) override;
  [[nodiscard]] ssize_t append(std::span<const std::byte> data) override;
  [[nodiscard]] int flush(bool data_only) override { return file_.flush(data_only); }
  [[nodiscard]] int status(layout::FileStatus& status) override;
  [[nodiscard]] int set_size(std::uint64_t size) override { return file_.set_size(size); }
  int close() override { return file_.close(); }
  [[nodiscard]] int descriptor() const override { return descriptor_; }

 private:
  int descriptor_;
  ServedFile file_;
};

}  // namespace wherry::file
