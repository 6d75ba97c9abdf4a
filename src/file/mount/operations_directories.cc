// SPDX-License-Identifier: Apache-2.0
// Operations on directories.
#include <sys/stat.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "file/mount/operations_serve.hpp"

namespace wherry::file::mount {
namespace {

/// From the type of a directory's entry to the bits of a mode.
constexpr unsigned kTypeShift = 12;

inline OpenDirectory& directory_of(const fuse_file_info* info) { return *std::bit_cast<OpenDirectory*>(info->fh); }

void open_directory(fuse_req_t request, fuse_ino_t node, fuse_file_info* info) {
  serve(request, [&](FileSystem& system) {
    OpenDirectory* directory = nullptr;
    const int error = system.open_directory(node, directory);
    if (error != 0) return error;
    info->fh = reinterpret_cast<std::uintptr_t>(directory);
    if (fuse_reply_open(request, info) != 0) system.close_directory(directory);
    return 0;
  });
}

void read_directory(fuse_req_t request, fuse_ino_t /*node*/, std::size_t size, off_t offset, fuse_file_info* info) {
  serve(request, [&](FileSystem& system) {
    OpenDirectory& directory = directory_of(info);
    std::vector<char> page(size);
    std::size_t used = 0;
    const int error = directory.list(static_cast<std::uint64_t>(offset), [&](const Host::Entry& entry) {
      struct stat attributes{};
      attributes.st_ino = system.inode_in(directory, entry.inode);
      attributes.st_mode = entry.type << kTypeShift;
      const std::size_t needed = fuse_add_direntry(request, page.data() + used, size - used, entry.name.c_str(),
                                                   &attributes, static_cast<off_t>(entry.cookie));
      if (needed > size - used) return false;
      used += needed;
      return true;
    });
    if (error != 0 && used == 0) return error;
    fuse_reply_buf(request, page.data(), used);
    return 0;
  });
}

void close_directory(fuse_req_t request, fuse_ino_t /*node*/, fuse_file_info* info) {
  serve_status(request, [&](FileSystem& system) {
    system.close_directory(&directory_of(info));
    return 0;
  });
}

void synchronise_directory(fuse_req_t request, fuse_ino_t /*node*/, int data_only, fuse_file_info* info) {
  serve_status(request, [&](FileSystem& system) { return system.sync(directory_of(info).file(), data_only != 0); });
}

}  // namespace

void set_directory_operations(fuse_lowlevel_ops& table) {
  table.opendir = open_directory;
  table.readdir = read_directory;
  table.releasedir = close_directory;
  table.fsyncdir = synchronise_directory;
}

}  // namespace wherry::file::mount
