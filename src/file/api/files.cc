// SPDX-License-Identifier: Apache-2.0
#include <wherry/files.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <new>
#include <utility>

#include "file/api/open_file.hpp"
#include "file/api/served_file.hpp"

namespace wherry::files {
namespace {

/// Turns exceptions into errors: ENOMEM or EIO.
template <class Call>
Result attempt(Call&& call) noexcept {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return Result::failure(ENOMEM);
  } catch (const std::exception&) {
    return Result::failure(EIO);
  }
}

Result result_of(int error) { return error == 0 ? Result::moved(0) : Result::failure(error); }

/// Saturates: a host or a damaged file system may return any time.
std::int64_t nanoseconds(const layout::FileTime& time) {
  std::int64_t all = 0;
  if (!__builtin_mul_overflow(time.seconds, std::int64_t{1'000'000'000}, &all) &&
      !__builtin_add_overflow(all, static_cast<std::int64_t>(time.nanoseconds), &all)) {
    return all;
  }
  return time.seconds < 0 ? INT64_MIN : INT64_MAX;
}

Status status_of(const layout::FileStatus& status) {
  return {.device = status.device,
          .inode = status.inode,
          .size = status.size,
          .blocks = status.blocks,
          .mode = status.mode,
          .links = status.links,
          .user = status.user,
          .group = status.group,
          .accessed = nanoseconds(status.accessed),
          .modified = nanoseconds(status.modified),
          .changed = nanoseconds(status.changed),
          .born = status.has_birth != 0 ? nanoseconds(status.born) : 0};
}

/// A successful read of 0 bytes, if at least one was requested, is at the end of the file.
Result read_of(const Result& result, bool nothing_asked) {
  return result.ok() && result.bytes == 0 && !nothing_asked ? Result::at_end() : result;
}

bool is_nothing(std::span<const iovec> parts) {
  return std::ranges::all_of(parts, [](const iovec& part) { return part.iov_len == 0; });
}

iovec buffer_of(std::span<const std::byte> from) { return {const_cast<std::byte*>(from.data()), from.size()}; }

}  // namespace

class File::Impl : public file::ServedFile {
 public:
  using file::ServedFile::ServedFile;
};

File::File() noexcept = default;
File::File(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
File::File(File&&) noexcept = default;
File& File::operator=(File&&) noexcept = default;
File::~File() = default;

Result File::close() noexcept {
  if (impl_ == nullptr) return Result::failure(EBADF);
  const std::unique_ptr<Impl> closed = std::move(impl_);
  return attempt([&] { return result_of(closed->close()); });
}

Result File::pread(std::span<std::byte> to, std::uint64_t offset) noexcept {
  return impl_ == nullptr ? Result::failure(EBADF) : pread(to, offset, impl_->path());
}

Result File::pread(std::span<std::byte> to, std::uint64_t offset, Path path) noexcept {
  if (impl_ == nullptr) return Result::failure(EBADF);
  const iovec buffer{to.data(), to.size()};
  return attempt([&] { return read_of(impl_->read({&buffer, 1}, offset, path), to.empty()); });
}

Result File::preadv(std::span<const iovec> to, std::uint64_t offset) noexcept {
  return impl_ == nullptr ? Result::failure(EBADF) : preadv(to, offset, impl_->path());
}

Result File::preadv(std::span<const iovec> to, std::uint64_t offset, Path path) noexcept {
  if (impl_ == nullptr) return Result::failure(EBADF);
  return attempt([&] { return read_of(impl_->read(to, offset, path), is_nothing(to)); });
}

Result File::pwrite(std::span<const std::byte> from, std::uint64_t offset) noexcept {
  return impl_ == nullptr ? Result::failure(EBADF) : pwrite(from, offset, impl_->path());
}

Result File::pwrite(std::span<const std::byte> from, std::uint64_t offset, Path path) noexcept {
  const iovec buffer = buffer_of(from);
  return pwritev(std::span(&buffer, 1), offset, path);
}

Result File::pwritev(std::span<const iovec> from, std::uint64_t offset) noexcept {
  return impl_ == nullptr ? Result::failure(EBADF) : pwritev(from, offset, impl_->path());
}

Result File::pwritev(std::span<const iovec> from, std::uint64_t offset, Path path) noexcept {
  if (impl_ == nullptr) return Result::failure(EBADF);
  return attempt([&] { return impl_->write(from, offset, path); });
}

Result File::append(std::span<const std::byte> from) noexcept {
  if (impl_ == nullptr) return Result::failure(EBADF);
  return attempt([&] { return impl_->append(from); });
}

Result File::sync(bool data_only) noexcept {
  if (impl_ == nullptr) return Result::failure(EBADF);
  return attempt([&] { return result_of(impl_->flush(data_only)); });
}

Result File::stat(Status& status) noexcept {
  if (impl_ == nullptr) return Result::failure(EBADF);
  return attempt([&] {
    layout::FileStatus found{};
    const int error = impl_->status(found);
    if (error == 0) status = status_of(found);
    return result_of(error);
  });
}

Result File::set_size(std::uint64_t size) noexcept {
  if (impl_ == nullptr) return Result::failure(EBADF);
  return attempt([&] { return result_of(impl_->set_size(size)); });
}

std::span<const std::byte> File::view(std::uint64_t offset, std::size_t length) noexcept {
  std::span<const std::byte> bytes;
  if (impl_ == nullptr) return bytes;
  (void)attempt([&] {
    bytes = impl_->view(offset, length);
    return Result::moved(0);
  });
  return bytes;
}

void File::set_path(Path path) noexcept {
  if (impl_ != nullptr) impl_->set_path(path);
}

Path File::path() const noexcept { return impl_ == nullptr ? Path::automatic : impl_->path(); }

File open(std::string_view name, int flags, unsigned mode, const Options& options) {
  file::Opening opening = file::open_file(name, flags, mode, options);
  return File(std::make_unique<File::Impl>(std::move(opening.source), opening.options));
}

Status stat(std::string_view name, const Options& options) { return status_of(file::look_at_name(name, options)); }

void remove(std::string_view name, const Options& options) { file::remove_name(name, options); }

}  // namespace wherry::files
