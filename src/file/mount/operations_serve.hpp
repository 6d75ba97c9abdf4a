// SPDX-License-Identifier: Apache-2.0
// How each operation answers its request: exactly once, whatever the FileSystem's call throws.
#pragma once

#include <cerrno>
#include <chrono>
#include <exception>
#include <new>

#include "base/log.hpp"
#include "file/mount/file_system.hpp"
#include "file/mount/operations.hpp"

namespace wherry::file::mount {

inline FileSystem& system_of(fuse_req_t request) { return *static_cast<FileSystem*>(fuse_req_userdata(request)); }

/// Thrown for the number of a file that is no longer open: EBADF.
struct NotOpen : std::exception {};
inline OpenFile& file_of(fuse_req_t request, const fuse_file_info* info) {
  OpenFile* const file = system_of(request).files().find(info->fh);
  if (file == nullptr) throw NotOpen();
  return *file;
}

/// Runs a call. If it returns 0, it has answered the request; otherwise answers with the error.
template <class Call>
void serve(fuse_req_t request, Call call) noexcept {
  int error = EIO;
  try {
    error = call(system_of(request));
  } catch (const std::bad_alloc&) {
    error = ENOMEM;
  } catch (const NotOpen&) {
    error = EBADF;
  } catch (const std::exception& unexpected) {
    log::write(log::Level::error, unexpected.what());
  }
  if (error != 0) fuse_reply_err(request, error);
}

/// As `serve`, for calls that are answered only with an error number.
template <class Call>
void serve_status(fuse_req_t request, Call call) noexcept {
  serve(request, [&](FileSystem& system) {
    const int error = call(system);
    if (error == 0) fuse_reply_err(request, 0);
    return error;
  });
}

/// The process that sent the request.
Writer writer_of(fuse_req_t request);

/// Removes set-user-ID and set-group-ID bits because of a change of the file's data. Returns 0 or an errno value.
int drop_set_id(fuse_req_t request, FileSystem& system, fuse_ino_t node);

inline double seconds_of(Nodes::Clock::duration time) { return std::chrono::duration<double>(time).count(); }

/// A timeout of 0 makes the kernel ask at each use, so that changes by other clients are visible at once.
inline fuse_entry_param parameters_of(const Entry& entry) {
  fuse_entry_param parameters{};
  parameters.ino = entry.node;
  parameters.attr = entry.attributes;
  parameters.entry_timeout = seconds_of(entry.name_kept_for);
  parameters.attr_timeout = seconds_of(entry.attributes_kept_for);
  return parameters;
}

/// Each of these sets the operations of one subject.
void set_directory_operations(fuse_lowlevel_ops& table);
void set_xattr_operations(fuse_lowlevel_ops& table);
/// Because these operations are set, libfuse makes the kernel keep no locks itself.
void set_lock_operations(fuse_lowlevel_ops& table);
void set_ticket_operations(fuse_lowlevel_ops& table);

}  // namespace wherry::file::mount
