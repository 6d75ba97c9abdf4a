// SPDX-License-Identifier: Apache-2.0
// Translates between libfuse's requests and a FileSystem's calls. Each function answers its request exactly once.
#include "file/mount/operations.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <wherry/result.hpp>

#include "file/mount/device_io.hpp"
#include "file/mount/operations_serve.hpp"

namespace wherry::file::mount {

Writer writer_of(fuse_req_t request) {
  const fuse_ctx& caller = *fuse_req_ctx(request);
  return {.user = caller.uid, .group = caller.gid, .process = caller.pid};
}

int drop_set_id(fuse_req_t request, FileSystem& system, fuse_ino_t node) {
  const Writer by = writer_of(request);
  return by.is_root() ? 0 : system.attributes().drop_set_id(node, [&](gid_t group) { return by.is_in_group(group); });
}

namespace {

/// Limit of one read or write; the kernel splits longer ones.
constexpr unsigned kMostBytes = 1U << 20;
/// Limit of requests that the kernel itself does not wait for, such as read-ahead.
constexpr unsigned kBackground = 64;

/// For calls whose answer is an entry. If the kernel is no longer there to get the answer, it does not refer to the
/// node.
template <class Call>
void serve_entry(fuse_req_t request, Call call) noexcept {
  serve(request, [&](FileSystem& system) {
    Entry entry;
    const int error = call(system, entry);
    if (error != 0) return error;
    const fuse_entry_param parameters = parameters_of(entry);
    if (fuse_reply_entry(request, &parameters) != 0) system.tree().nodes().forget(entry.node, 1);
    return 0;
  });
}

void initialise(void* /*system*/, fuse_conn_info* connection) {
  // With a write-back cache the kernel ignores sizes and times from the server.
  connection->want &= ~static_cast<unsigned>(FUSE_CAP_WRITEBACK_CACHE);
  // The kernel itself removes set-user-ID bits, or reports each change (device_io): a server that runs as root would
  // not remove them.
  connection->want &= ~static_cast<unsigned>(FUSE_CAP_HANDLE_KILLPRIV);
  // The kernel would stop asking for attributes if a program reads all names before it looks at the first file.
  connection->want &= ~static_cast<unsigned>(FUSE_CAP_READDIRPLUS_AUTO);
  connection->max_write = kMostBytes;
  connection->max_background = kBackground;
  connection->congestion_threshold = kBackground * 3 / 4;
  connection->time_gran = 1;
}

void look_up(fuse_req_t request, fuse_ino_t parent, const char* name) {
  serve_entry(request, [&](FileSystem& system, Entry& entry) { return system.names().look_up(parent, name, entry); });
}

void forget(fuse_req_t request, fuse_ino_t node, std::uint64_t count) {
  system_of(request).tree().nodes().forget(node, count);
  fuse_reply_none(request);
}

void forget_several(fuse_req_t request, std::size_t count, fuse_forget_data* nodes) {
  for (const fuse_forget_data& one : std::span(nodes, count))
    system_of(request).tree().nodes().forget(one.ino, one.nlookup);
  fuse_reply_none(request);
}

void get_attributes(fuse_req_t request, fuse_ino_t node, fuse_file_info* /*info*/) {
  serve(request, [&](FileSystem& system) {
    struct stat attributes{};
    Nodes::Clock::duration kept_for{};
    const int error = system.attributes().get(node, attributes, kept_for);
    if (error == 0) fuse_reply_attr(request, &attributes, seconds_of(kept_for));
    return error;
  });
}

layout::FileTime time_to_set(int wanted, int kept_unless, int now_if, const timespec& time) {
  if ((wanted & now_if) != 0) return {.seconds = 0, .nanoseconds = layout::kFileTimeNow, .reserved = 0};
  if ((wanted & kept_unless) == 0) return {.seconds = 0, .nanoseconds = layout::kFileTimeKept, .reserved = 0};
  return {.seconds = time.tv_sec, .nanoseconds = static_cast<std::uint32_t>(time.tv_nsec), .reserved = 0};
}

Changes changes_of(const struct stat& attributes, int wanted) {
  Changes changes;
  if ((wanted & FUSE_SET_ATTR_MODE) != 0) changes.mode = attributes.st_mode & 07777U;
  if ((wanted & FUSE_SET_ATTR_UID) != 0) changes.user = attributes.st_uid;
  if ((wanted & FUSE_SET_ATTR_GID) != 0) changes.group = attributes.st_gid;
  if ((wanted & FUSE_SET_ATTR_SIZE) != 0) changes.size = static_cast<std::uint64_t>(attributes.st_size);
  constexpr int kTimes = FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW;
  if ((wanted & kTimes) != 0) {
    changes.times = {time_to_set(wanted, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW, attributes.st_atim),
                     time_to_set(wanted, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW, attributes.st_mtim)};
  }
  return changes;
}

void set_attributes(fuse_req_t request, fuse_ino_t node, struct stat* wanted, int which, fuse_file_info* info) {
  serve(request, [&](FileSystem& system) {
    struct stat attributes{};
    const OpenFile* const by = info != nullptr ? &file_of(request, info) : nullptr;
    int error = (which & FUSE_SET_ATTR_SIZE) != 0 ? drop_set_id(request, system, node) : 0;
    if (error == 0) error = system.attributes().change(node, changes_of(*wanted, which), by, attributes);
    if (error == 0) fuse_reply_attr(request, &attributes, 0);
    return error;
  });
}

void read_link(fuse_req_t request, fuse_ino_t node) {
  serve(request, [&](FileSystem& system) {
    std::string target;
    const int error = system.names().read_link(node, target);
    if (error == 0) fuse_reply_readlink(request, target.c_str());
    return error;
  });
}

/// Removes these bits: new files belong to the server's user, and the bits would give away that user's rights.
mode_t permitted(fuse_req_t request, mode_t mode) {
  return fuse_req_ctx(request)->uid == 0 ? mode : mode & ~static_cast<mode_t>(S_ISUID | S_ISGID);
}

void make_file(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, dev_t /*device*/) {
  mode = permitted(request, mode);
  serve_entry(request,
              [&](FileSystem& system, Entry& entry) { return system.names().make_file(parent, name, mode, entry); });
}

void make_directory(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
  serve_entry(request, [&](FileSystem& system, Entry& entry) {
    return system.names().make_directory(parent, name, mode, entry);
  });
}

void symlink(fuse_req_t request, const char* target, fuse_ino_t parent, const char* name) {
  serve_entry(request,
              [&](FileSystem& system, Entry& entry) { return system.names().symlink(parent, name, target, entry); });
}

void link(fuse_req_t request, fuse_ino_t node, fuse_ino_t parent, const char* name) {
  serve_entry(request,
              [&](FileSystem& system, Entry& entry) { return system.names().link(node, parent, name, entry); });
}

void unlink(fuse_req_t request, fuse_ino_t parent, const char* name) {
  serve_status(request, [&](FileSystem& system) { return system.names().remove(parent, name, false); });
}

void remove_directory(fuse_req_t request, fuse_ino_t parent, const char* name) {
  serve_status(request, [&](FileSystem& system) { return system.names().remove(parent, name, true); });
}

void rename(fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t new_parent, const char* new_name,
            unsigned flags) {
  serve_status(request,
               [&](FileSystem& system) { return system.names().rename(parent, name, new_parent, new_name, flags); });
}

void describe(const OpenFile& file, fuse_file_info* info) {
  info->fh = file.number();
  info->direct_io = file.is_direct() ? 1 : 0;
  info->keep_cache = file.keeps_pages() ? 1 : 0;
}

void create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, fuse_file_info* info) {
  serve(request, [&](FileSystem& system) {
    Entry entry;
    OpenFile* file = nullptr;
    const int error = system.files().create(parent, name, permitted(request, mode), info->flags, entry, file);
    if (error != 0) return error;
    describe(*file, info);
    const OpenAnswer answer(file->backing().get());
    const fuse_entry_param parameters = parameters_of(entry);
    if (fuse_reply_create(request, &parameters, info) != 0) {
      system.files().close(entry.node, file);
      system.tree().nodes().forget(entry.node, 1);
    }
    return 0;
  });
}

void open(fuse_req_t request, fuse_ino_t node, fuse_file_info* info) {
  serve(request, [&](FileSystem& system) {
    OpenFile* file = nullptr;
    int error = system.files().open(node, info->flags, file);
    if (error != 0) return error;
    if ((info->flags & O_TRUNC) != 0) error = drop_set_id(request, system, node);
    if (error != 0) {
      system.files().close(node, file);
      return error;
    }
    describe(*file, info);
    const OpenAnswer answer(file->backing().get());
    if (fuse_reply_open(request, info) != 0) system.files().close(node, file);
    return 0;
  });
}

void release(fuse_req_t request, fuse_ino_t node, fuse_file_info* info) {
  serve_status(request, [&](FileSystem& system) {
    // An earlier daemon may have closed it.
    if (OpenFile* const file = system.files().find(info->fh); file != nullptr) system.files().close(node, file);
    return 0;
  });
}

void read(fuse_req_t request, fuse_ino_t node, std::size_t size, off_t offset, fuse_file_info* info) {
  serve(request, [&](FileSystem& system) {
    static thread_local std::vector<std::byte> buffer;
    if (buffer.size() < size) buffer.resize(size);
    const auto into = std::span(buffer).first(size);
    const Result got = system.files().read(node, file_of(request, info), static_cast<std::uint64_t>(offset), into);
    // A short answer would mean the end of the file. The kernel asks again, page by page, for the data before the
    // error.
    if (got.failed()) return got.error;
    fuse_reply_buf(request, reinterpret_cast<const char*>(buffer.data()), got.bytes);
    return 0;
  });
}

/// Writes pages of a shared mapping at their offsets, whichever descriptor the kernel names. The kernel looks only at
/// the error, so the rest of a short write is retried to get its error.
Result write_pages(FileSystem& system, fuse_ino_t node, OpenFile& file, std::span<const std::byte> from,
                   std::uint64_t offset) {
  std::size_t done = 0;
  while (done < from.size()) {
    const Result put = system.files().write(node, file, offset + done, from.subspan(done), OpenFiles::Write::page);
    if (put.failed() || put.bytes == 0) return Result::failure(put.failed() ? put.error : EIO);
    done += put.bytes;
  }
  return Result::moved(done);
}

OpenFiles::Write way_of(int flags) {
  const bool waits = (flags & (O_DSYNC | O_DIRECT)) != 0;
  if ((flags & O_APPEND) != 0) return waits ? OpenFiles::Write::at_the_end : OpenFiles::Write::kept_at_the_end;
  return waits ? OpenFiles::Write::at_once : OpenFiles::Write::kept;
}

void write(fuse_req_t request, fuse_ino_t node, const char* data, std::size_t size, off_t offset,
           fuse_file_info* info) {
  serve(request, [&](FileSystem& system) {
    const auto from = std::as_bytes(std::span(data, size));
    const auto at = static_cast<std::uint64_t>(offset);
    // Pages of a shared mapping keep the bits. A file with held-back writes has no such bits.
    const bool drops = info->writepage == 0 && !system.tree().write_behind().keeps(node);
    if (const int error = drops ? drop_set_id(request, system, node) : 0; error != 0) return error;
    OpenFile& file = file_of(request, info);
    const Result put = info->writepage != 0
                           ? write_pages(system, node, file, from, at)
                           : system.files().write(node, file, at, from, way_of(info->flags), writer_of(request));
    if (put.failed() && put.bytes == 0) return put.error;
    fuse_reply_write(request, put.bytes);
    return 0;
  });
}

void flush(fuse_req_t request, fuse_ino_t node, fuse_file_info* info) {
  serve_status(request, [&](FileSystem& system) {
    // Before the locks: the next owner of a lock must read what was written under it.
    const int error = system.files().flush(node, file_of(request, info));
    system.locks().drop(node, info->lock_owner);
    return error;
  });
}

void synchronise(fuse_req_t request, fuse_ino_t node, int data_only, fuse_file_info* info) {
  serve_status(request,
               [&](FileSystem& system) { return system.files().sync(node, file_of(request, info), data_only != 0); });
}

void allocate(fuse_req_t request, fuse_ino_t node, int mode, off_t offset, off_t length, fuse_file_info* info) {
  serve_status(request, [&](FileSystem& system) {
    if (const int error = drop_set_id(request, system, node); error != 0) return error;
    return system.files().allocate(node, file_of(request, info), mode, static_cast<std::uint64_t>(offset),
                                   static_cast<std::uint64_t>(length));
  });
}

void seek(fuse_req_t request, fuse_ino_t node, off_t offset, int whence, fuse_file_info* info) {
  serve(request, [&](FileSystem& system) {
    if (whence != SEEK_DATA && whence != SEEK_HOLE) return EINVAL;
    std::uint64_t found = 0;
    const int error = system.files().seek(node, file_of(request, info), static_cast<std::uint64_t>(offset),
                                          whence == SEEK_DATA, found);
    if (error == 0) fuse_reply_lseek(request, static_cast<off_t>(found));
    return error;
  });
}

/// Limit of one call; the kernel itself moves no more.
constexpr std::size_t kMostCopied = 0x7FFFF000;

void copy_range(fuse_req_t request, fuse_ino_t from_node, off_t from_offset, fuse_file_info* from, fuse_ino_t to_node,
                off_t to_offset, fuse_file_info* to, std::size_t length, int /*flags*/) {
  serve(request, [&](FileSystem& system) {
    const Position source{from_node, file_of(request, from), static_cast<std::uint64_t>(from_offset)};
    const Position target{to_node, file_of(request, to), static_cast<std::uint64_t>(to_offset)};
    if (const int error = drop_set_id(request, system, to_node); error != 0) return error;
    const Result copied = system.files().copy(source, target, std::min(length, kMostCopied),
                                              [request] { return fuse_req_interrupted(request) != 0; });
    if (copied.failed()) return copied.error;
    fuse_reply_write(request, copied.bytes);
    return 0;
  });
}

void file_system_status(fuse_req_t request, fuse_ino_t node) {
  serve(request, [&](FileSystem& system) {
    struct statvfs status{};
    const int error = system.attributes().file_system(node, status);
    if (error == 0) fuse_reply_statfs(request, &status);
    return error;
  });
}

}  // namespace

const fuse_lowlevel_ops& operations() {
  static const fuse_lowlevel_ops all = [] {
    fuse_lowlevel_ops table{};
    table.init = initialise;
    table.lookup = look_up;
    table.forget = forget;
    table.forget_multi = forget_several;
    table.getattr = get_attributes;
    table.setattr = set_attributes;
    table.readlink = read_link;
    table.mknod = make_file;
    table.mkdir = make_directory;
    table.unlink = unlink;
    table.rmdir = remove_directory;
    table.symlink = symlink;
    table.rename = rename;
    table.link = link;
    table.open = open;
    table.read = read;
    table.write = write;
    table.flush = flush;
    table.release = release;
    table.fsync = synchronise;
    table.statfs = file_system_status;
    table.create = create;
    table.fallocate = allocate;
    table.lseek = seek;
    table.copy_file_range = copy_range;
    set_directory_operations(table);
    set_xattr_operations(table);
    set_lock_operations(table);
    set_ticket_operations(table);
    return table;
  }();
  return all;
}

}  // namespace wherry::file::mount
