// SPDX-License-Identifier: Apache-2.0
#include "file/api/served_file.hpp"

#include <cerrno>
#include <utility>

#include "base/not_cancelled.hpp"

namespace wherry::file {
namespace {

using files::Path;

constexpr std::uint64_t kLastOffset = INT64_MAX;

/// False: more bytes than a file offset can count.
bool add_up(std::span<const iovec> parts, std::uint64_t& bytes) {
  bytes = 0;
  for (const iovec& part : parts) {
    if (__builtin_add_overflow(bytes, part.iov_len, &bytes) || bytes > kLastOffset) return false;
  }
  return true;
}

}  // namespace

ServedFile::ServedFile(std::unique_ptr<Source> source, const ServedOptions& options)
    : source_(std::move(source)), options_(options), remote_(source_->is_remote()), path_(options.path) {
  if (options.readable && source_->descriptor() >= 0) in_place_.emplace(source_->descriptor());
}

ServedFile::~ServedFile() {
  const NotCancelled here;
  in_place_.reset();
  source_.reset();
}

/// Unmaps first: a mapping would keep the open file, with its locks.
int ServedFile::close() {
  const NotCancelled here;
  in_place_.reset();
  return source_->close();
}

/// Returns 0 if calls may take this path.
int ServedFile::refused(Path path) const {
  if (remote_ && source_->inherited()) return EBADF;
  return has_path(remote_, path) ? 0 : EOPNOTSUPP;
}

Result ServedFile::read(std::span<const iovec> to, std::uint64_t offset, Path path) {
  if (!options_.readable) return Result::failure(EBADF);
  if (const int error = refused(path); error != 0) return Result::failure(error);
  std::uint64_t bytes = 0;
  if (!add_up(to, bytes) || offset > kLastOffset || bytes > kLastOffset - offset) return Result::failure(EINVAL);
  if (bytes == 0) return Result::moved(0);
  const bool may_copy = in_place_ && (path == Path::automatic || path == Path::cache);
  if (may_copy && in_place_->read(to, bytes, offset, path)) return Result::moved(static_cast<std::size_t>(bytes));
  return source_->read(offset, to);
}

Result ServedFile::write(std::span<const iovec> from, std::uint64_t offset, Path path) {
  std::uint64_t bytes = 0;
  if (!options_.writable) return Result::failure(EBADF);
  if (const int error = refused(path); error != 0) return Result::failure(error);
  if (options_.appends || !add_up(from, bytes) || offset > kLastOffset || bytes > kLastOffset - offset) {
    return Result::failure(EINVAL);
  }
  return bytes == 0 ? Result::moved(0) : source_->write(offset, from);
}

Result ServedFile::append(std::span<const std::byte> from) {
  if (!options_.writable) return Result::failure(EBADF);
  if (const int error = refused(Path::automatic); error != 0) return Result::failure(error);
  if (!options_.appends || from.size() > kLastOffset) return Result::failure(EINVAL);
  std::size_t done = 0;
  while (done < from.size()) {
    const iovec buffer{const_cast<std::byte*>(from.data()) + done, from.size() - done};
    const Result result = source_->append({&buffer, 1});
    done += result.bytes;
    if (result.failed()) return Result::failure(result.error, done);
    if (result.bytes == 0) return Result::failure(EIO, done);
  }
  return Result::moved(done);
}

int ServedFile::set_size(std::uint64_t size) {
  if (!options_.writable || size > kLastOffset) return options_.writable ? EFBIG : EBADF;
  return source_->set_size(size);
}

std::span<const std::byte> ServedFile::view(std::uint64_t offset, std::size_t length) {
  const NotCancelled here;
  return in_place_ ? in_place_->view(offset, length) : std::span<const std::byte>{};
}

}  // namespace wherry::file
