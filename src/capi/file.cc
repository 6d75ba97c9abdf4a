// SPDX-License-Identifier: Apache-2.0
// wherry.h: files.
#include <cerrno>
#include <optional>
#include <span>

#include <wherry/wherry.h>
#include <wherry/files.hpp>

#include "capi/boundary.hpp"

namespace {

using wherry::NotCancelled;
using wherry::Result;
using wherry::capi::bad_options;
using wherry::capi::error_of;
using wherry::capi::missing_argument;
using wherry::capi::set_up;
using wherry::capi::value_of;
using wherry::files::File;
using wherry::files::Path;

static_assert(WHERRY_PATH_AUTO == 1 + static_cast<int>(Path::automatic));
static_assert(WHERRY_PATH_KERNEL == 1 + static_cast<int>(Path::kernel));
static_assert(WHERRY_PATH_CACHE == 1 + static_cast<int>(Path::cache));
static_assert(WHERRY_PATH_CARD == 1 + static_cast<int>(Path::card));
static_assert(WHERRY_PATH_HOST == 1 + static_cast<int>(Path::host));

File* of(wherry_file handle) { return static_cast<File*>(handle.impl); }

bool good_path(int path) { return path >= WHERRY_PATH_AS_SET && path <= WHERRY_PATH_HOST; }
Path path_of(const File& file, int path) {
  return path == WHERRY_PATH_AS_SET ? file.path() : static_cast<Path>(path - 1);
}

/// Calls `call` with the file and a path.
template <class Call>
std::int64_t moved(wherry_file file, int path, Call&& call) {
  if (file.impl == nullptr) return -EBADF;
  if (!good_path(path)) return -EINVAL;
  const NotCancelled here;
  return value_of(call(*of(file), path_of(*of(file), path)));
}

std::optional<std::span<const iovec>> list(const iovec* buffers, int count) {
  if (count < 0 || (buffers == nullptr && count != 0)) return std::nullopt;
  return std::span(buffers, static_cast<std::size_t>(count));
}

bool good(const wherry_file_options* options) {
  return options == nullptr || (good_path(options->path) && options->reserved[0] == 0 && options->reserved[1] == 0);
}
wherry::files::Options of(const wherry_file_options* options) {
  wherry::files::Options wanted;
  if (options == nullptr) return wanted;
  if (options->path != WHERRY_PATH_AS_SET) wanted.path = static_cast<Path>(options->path - 1);
  if (options->timeout_ms != 0) wanted.timeout = std::chrono::milliseconds(options->timeout_ms);
  return wanted;
}

wherry_file_status of(const wherry::files::Status& found) {
  return {.device = found.device,
          .inode = found.inode,
          .size = found.size,
          .blocks = found.blocks,
          .mode = found.mode,
          .links = found.links,
          .user = found.user,
          .group = found.group,
          .accessed_ns = found.accessed,
          .modified_ns = found.modified,
          .changed_ns = found.changed,
          .born_ns = found.born};
}

}  // namespace

int wherry_file_open(const char* name, int flags, mode_t mode, const struct wherry_file_options* options,
                     wherry_file* file) {
  if (name == nullptr || file == nullptr) return missing_argument();
  if (!good(options)) return bad_options();
  return set_up([&] {
    file->impl = new File(wherry::files::open(name, flags, mode, of(options)));
    return 0;
  });
}

int wherry_file_stat_name(const char* name, const struct wherry_file_options* options,
                          struct wherry_file_status* status) {
  if (name == nullptr || status == nullptr) return missing_argument();
  if (!good(options)) return bad_options();
  return set_up([&] {
    *status = of(wherry::files::stat(name, of(options)));
    return 0;
  });
}

int wherry_file_remove(const char* name, const struct wherry_file_options* options) {
  if (name == nullptr) return missing_argument();
  if (!good(options)) return bad_options();
  return set_up([&] {
    wherry::files::remove(name, of(options));
    return 0;
  });
}

int wherry_file_close(wherry_file file) {
  if (file.impl == nullptr) return -EBADF;
  const NotCancelled here;
  const int error = error_of(of(file)->close());
  delete of(file);
  return error;
}

int64_t wherry_file_pread(wherry_file file, void* buffer, size_t size, uint64_t offset, int path) {
  if (buffer == nullptr && size != 0) return -EINVAL;
  const std::span to(static_cast<std::byte*>(buffer), size);
  return moved(file, path, [&](File& open, Path way) { return open.pread(to, offset, way); });
}

int64_t wherry_file_preadv(wherry_file file, const struct iovec* buffers, int count, uint64_t offset, int path) {
  const auto parts = list(buffers, count);
  if (!parts) return -EINVAL;
  return moved(file, path, [&](File& open, Path way) { return open.preadv(*parts, offset, way); });
}

int64_t wherry_file_pwrite(wherry_file file, const void* bytes, size_t size, uint64_t offset, int path) {
  if (bytes == nullptr && size != 0) return -EINVAL;
  const std::span from(static_cast<const std::byte*>(bytes), size);
  return moved(file, path, [&](File& open, Path way) { return open.pwrite(from, offset, way); });
}

int64_t wherry_file_pwritev(wherry_file file, const struct iovec* buffers, int count, uint64_t offset, int path) {
  const auto parts = list(buffers, count);
  if (!parts) return -EINVAL;
  return moved(file, path, [&](File& open, Path way) { return open.pwritev(*parts, offset, way); });
}

int64_t wherry_file_append(wherry_file file, const void* bytes, size_t size) {
  if (bytes == nullptr && size != 0) return -EINVAL;
  const std::span from(static_cast<const std::byte*>(bytes), size);
  return moved(file, WHERRY_PATH_AS_SET, [&](File& open, Path) { return open.append(from); });
}

int wherry_file_sync(wherry_file file, int data_only) {
  if (file.impl == nullptr) return -EBADF;
  const NotCancelled here;
  return error_of(of(file)->sync(data_only != 0));
}

int wherry_file_set_size(wherry_file file, uint64_t size) {
  if (file.impl == nullptr) return -EBADF;
  const NotCancelled here;
  return error_of(of(file)->set_size(size));
}

int wherry_file_stat(wherry_file file, struct wherry_file_status* status) {
  if (status == nullptr) return -EINVAL;
  if (file.impl == nullptr) return -EBADF;
  const NotCancelled here;
  wherry::files::Status found;
  const Result result = of(file)->stat(found);
  if (result.failed()) return -result.error;
  *status = of(found);
  return 0;
}

int64_t wherry_file_view(wherry_file file, uint64_t offset, size_t size, const void** bytes) {
  if (bytes == nullptr) return -EINVAL;
  *bytes = nullptr;
  if (file.impl == nullptr) return -EBADF;
  const NotCancelled here;
  const auto there = of(file)->view(offset, size);
  *bytes = there.data();
  return static_cast<std::int64_t>(there.size());
}

int wherry_file_set_path(wherry_file file, int path) {
  if (file.impl == nullptr) return -EBADF;
  if (!good_path(path) || path == WHERRY_PATH_AS_SET) return -EINVAL;
  of(file)->set_path(static_cast<Path>(path - 1));
  return 0;
}

int wherry_file_get_path(wherry_file file) {
  if (file.impl == nullptr) return -EBADF;
  return 1 + static_cast<int>(of(file)->path());
}
