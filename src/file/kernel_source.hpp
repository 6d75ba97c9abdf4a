// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/unique_fd.hpp"
#include "file/source.hpp"

namespace wherry::file {

/// A file that this process has open itself. Its calls are no cancellation points.
class KernelSource : public Source {
 public:
  explicit KernelSource(UniqueFd file) : file_(std::move(file)) {}

  Result read(std::uint64_t offset, std::span<const iovec> into) override;
  Result write(std::uint64_t offset, std::span<const iovec> from) override;
  Result append(std::span<const iovec> from) override;
  int flush(bool data_only) override;
  int look(Look& look, bool writers) override;
  int set_size(std::uint64_t size) override;
  int close() override;
  /// The kernel finds out.
  bool can_read_into(std::span<std::byte> /*memory*/) const override { return true; }
  [[nodiscard]] int descriptor() const override { return file_.get(); }
  [[nodiscard]] bool is_remote() const override { return false; }
  [[nodiscard]] bool inherited() const override { return false; }
  [[nodiscard]] bool can_be_cached(const layout::FileStatus& status) override;
  [[nodiscard]] PathChoice& choice() override;

 private:
  Result move(long call, std::uint64_t offset, std::span<const iovec> parts);

  UniqueFd file_;
};

}  // namespace wherry::file
