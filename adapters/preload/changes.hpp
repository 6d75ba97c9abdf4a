// SPDX-License-Identifier: Apache-2.0
//
// Calls that change files: what they change is out of the cache before they begin and when they return.
#pragma once

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <optional>

#include "store.hpp"

namespace wherry::preload {

/// A file that may be in the cache.
struct Changed {
  file::Key key;
  bool appends = false;  ///< it was opened with O_APPEND: writes go to its end, whatever offset a call names
};

/// The file that writing through the descriptor changes. Keeps errno.
std::optional<Changed> changed_file(int fd) noexcept;
/// The same by its name, through symbolic links.
std::optional<Changed> changed_file(const char* path) noexcept;
/// The descriptor's flags were changed: they are asked for again.
void flags_changed(int fd) noexcept;

/// Whether a thread may be cancelled in the call.
enum class Cancelled : unsigned char { never, before };

/// A range of a file; of length 0: any part of it.
struct Range {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  /// From the signed numbers of a call. What the kernel will refuse is no range.
  static Range of(off_t begin, std::uint64_t bytes) {
    if (begin < 0 || bytes > INT64_MAX) return {};
    return {static_cast<std::uint64_t>(begin), bytes};
  }
};

/// A thread that is cancelled within a change would never end it.
class NotCancelled {
 public:
  NotCancelled() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NotCancelled() { pthread_setcancelstate(before_, nullptr); }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

/// Makes the kernel's `call`, which changes `range` of the file; with its result and errno.
template <Cancelled kCancelled = Cancelled::never, typename Call>
auto change(const std::optional<Changed>& file, Range range, Call call) -> decltype(call()) {
  file::Cache* const store = file ? cache() : nullptr;
  if (store == nullptr) return call();
  // As the kernel's call would do: now, or not before it is done.
  if constexpr (kCancelled == Cancelled::before) pthread_testcancel();
  const NotCancelled here;
  int error = errno;
  const auto change_and_keep_error = [&] {
    errno = error;
    const auto result = call();
    error = errno;
    return result;
  };
  const auto within = [&] {
    if (range.length == 0 || file->appends) {
      const file::Change whole(*store, file->key);
      return change_and_keep_error();
    }
    const file::Change part(*store, file->key, range.offset, range.length);
    return change_and_keep_error();
  };
  const auto result = within();
  errno = error;
  return result;
}

/// The file was truncated by the call that opened it.
void truncated_by_open(int fd) noexcept;

}  // namespace wherry::preload
