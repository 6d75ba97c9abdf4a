// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "base/unique_fd.hpp"
#include "file/api/source.hpp"

namespace wherry::file {

/// A file that this process has opened itself. Its calls are no cancellation points.
class KernelSource : public Source {
 public:
  explicit KernelSource(UniqueFd file) : file_(std::move(file)) {}

  Result read(std::uint64_t offset, std::span<const iovec> into) override;
  Result write(std::uint64_t offset, std::span<const iovec> from) override;
  Result append(std::span<const iovec> from) override;
  int flush(bool data_only) override;
  int status(layout::FileStatus& status) override;
  int set_size(std::uint64_t size) override;
  int close() override;
  [[nodiscard]] int descriptor() const override { return file_.get(); }
  [[nodiscard]] bool is_remote() const override { return false; }
  [[nodiscard]] bool inherited() const override { return false; }

 private:
  Result move(long plain, long vectored, std::uint64_t offset, std::span<const iovec> parts);

  UniqueFd file_;
};

}  // namespace wherry::file
