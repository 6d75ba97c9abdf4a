// SPDX-License-Identifier: Apache-2.0
// Operations on directories.
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "file/mount/operations_serve.hpp"

namespace wherry::file::mount {
namespace {

/// Shift from a directory entry's type to the bits of a mode.
constexpr unsigned kTypeShift = 12;

OpenDirectory& directory_of(fuse_req_t request, const fuse_file_info* info) {
  OpenDirectory* const directory = system_of(request).directories().find(info->fh);
  if (directory == nullptr) throw NotOpen();
  return *directory;
}

void open_directory(fuse_req_t request, fuse_ino_t node, fuse_file_info* info) {
  serve(request, [&](FileSystem& system) {
    OpenDirectory* directory = nullptr;
    const int error = system.directories().open(node, directory);
    if (error != 0) return error;
    info->fh = directory->number();
    if (fuse_reply_open(request, info) != 0) system.directories().close(*directory);
    return 0;
  });
}

/// If the kernel gets only the name and inode of an entry, the entry has no node.
fuse_entry_param parameters_of(FileSystem& system, const OpenDirectory& directory, const ListedEntry& listed) {
  if (listed.known) return parameters_of(*listed.known);
  fuse_entry_param parameters{};
  parameters.attr.st_ino = system.directories().inode_in(directory, listed.entry.inode);
  parameters.attr.st_mode = listed.entry.type << kTypeShift;
  return parameters;
}

void forget_listed(FileSystem& system, std::span<const ListedEntry> listed) {
  for (const ListedEntry& one : listed) {
    if (one.known) system.tree().nodes().forget(one.known->node, 1);
  }
}

/// Returns names with attributes: Linux asks for both since 3.9.
void read_directory(fuse_req_t request, fuse_ino_t node, std::size_t size, off_t offset, fuse_file_info* info) {
  serve(request, [&](FileSystem& system) {
    const OpenDirectory& directory = directory_of(request, info);
    std::vector<ListedEntry> listed;
    if (const int error = system.directories().list(node, directory, static_cast<std::uint64_t>(offset), size, listed);
        error != 0)
      return error;
    std::vector<char> page(size);
    std::size_t used = 0;
    std::size_t count = 0;
    for (; count < listed.size(); ++count) {
      const fuse_entry_param parameters = parameters_of(system, directory, listed[count]);
      const Host::Entry& entry = listed[count].entry;
      const std::size_t needed = fuse_add_direntry_plus(request, page.data() + used, size - used, entry.name.c_str(),
                                                        &parameters, static_cast<off_t>(entry.cookie));
      if (needed > size - used) break;
      used += needed;
    }
    forget_listed(system, std::span(listed).subspan(count));
    if (fuse_reply_buf(request, page.data(), used) != 0) forget_listed(system, std::span(listed).first(count));
    return 0;
  });
}

void close_directory(fuse_req_t request, fuse_ino_t /*node*/, fuse_file_info* info) {
  serve_status(request, [&](FileSystem& system) {
    // An earlier daemon may have closed it.
    if (const OpenDirectory* const open = system.directories().find(info->fh); open != nullptr)
      system.directories().close(*open);
    return 0;
  });
}

void synchronise_directory(fuse_req_t request, fuse_ino_t /*node*/, int data_only, fuse_file_info* info) {
  serve_status(request, [&](FileSystem& /*system*/) {
    return OpenFiles::sync(directory_of(request, info).file(), data_only != 0);
  });
}

}  // namespace

void set_directory_operations(fuse_lowlevel_ops& table) {
  table.opendir = open_directory;
  table.readdirplus = read_directory;
  table.releasedir = close_directory;
  table.fsyncdir = synchronise_directory;
}

}  // namespace wherry::file::mount
