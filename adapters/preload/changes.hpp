// SPDX-License-Identifier: Apache-2.0
//
// Calls that change files: what they change is out of the cache before they begin and when they return.
#pragma once

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include <cstdint>
#include <optional>

#include "next.hpp"
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

/// Notes the change around `call`. What notes it keeps errno.
template <typename Call>
auto change_uncancelled(file::Cache& store, const Changed& file, Range range, Call call) -> decltype(call()) {
  if (range.length == 0 || file.appends) {
    const file::Change whole(store, file.key);
    return call();
  }
  const file::Change part(store, file.key, range.offset, range.length);
  return call();
}

/// Makes the kernel's `call`, which changes `range` of the file; with its result and errno.
template <Cancelled kCancelled = Cancelled::never, typename Call>
auto change(const std::optional<Changed>& file, Range range, Call call) -> decltype(call()) {
  file::Cache* const store = file ? cache() : nullptr;
  if (store == nullptr) return call();
  // As the kernel's call would do: now, or not before it is done.
  if constexpr (kCancelled == Cancelled::before) pthread_testcancel();
  const NotCancelled here;
  return change_uncancelled(*store, *file, range, call);
}

/// The same with a call in which no thread is cancelled: `plain`, which is made if writes_are_plain(); else `call`. A
/// thread that may be cancelled anywhere would leave a note, which keeps that range out of the cache.
template <typename Plain, typename Call>
ssize_t change_plainly(const std::optional<Changed>& file, Range range, Plain plain, Call call) {
  if (!writes_are_plain()) return change<Cancelled::before>(file, range, call);
  file::Cache* const store = file ? cache() : nullptr;
  if (store == nullptr) return call();
  pthread_testcancel();
  return change_uncancelled(*store, *file, range, plain);
}

/// The file was truncated by the call that opened it.
void truncated_by_open(int fd) noexcept;

}  // namespace wherry::preload
