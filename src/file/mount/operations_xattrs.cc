// SPDX-License-Identifier: Apache-2.0
// Operations on extended attributes. The kernel asks for security.capability before writes. Attributes outside the
// served namespace are answered here, without a request to the server.
#include <sys/xattr.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "file/mount/operations_serve.hpp"
#include "layout/passthrough_attribute.hpp"

namespace wherry::file::mount {
namespace {

bool is_of_the_host(std::string_view attribute) { return attribute.starts_with(layout::kFileXattrNamespace); }

/// Size 0 asks for the length.
int reply_sized(fuse_req_t request, std::span<const std::byte> bytes, std::size_t size) {
  if (size == 0) {
    fuse_reply_xattr(request, bytes.size());
    return 0;
  }
  if (bytes.size() > size) return ERANGE;
  fuse_reply_buf(request, reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return 0;
}

int reply_passthrough(fuse_req_t request, FileSystem& system, fuse_ino_t node, std::size_t size) {
  const long type = system.files().passed_through(node);
  if (type == 0) return ENODATA;
  const std::string digits = std::to_string(type);
  return reply_sized(request, std::as_bytes(std::span(digits)), size);
}

void get_xattr(fuse_req_t request, fuse_ino_t node, const char* name, std::size_t size) {
  serve(request, [&](FileSystem& system) {
    if (name == std::string_view(layout::kPassthroughAttribute)) return reply_passthrough(request, system, node, size);
    if (!is_of_the_host(name)) return EOPNOTSUPP;
    std::vector<std::byte> value;
    const int error = system.attributes().get_xattr(node, name, value);
    return error != 0 ? error : reply_sized(request, value, size);
  });
}

void list_xattrs(fuse_req_t request, fuse_ino_t node, std::size_t size) {
  serve(request, [&](FileSystem& system) {
    std::vector<std::byte> names;
    const int error = system.attributes().list_xattrs(node, names);
    return error != 0 ? error : reply_sized(request, names, size);
  });
}

void set_xattr(fuse_req_t request, fuse_ino_t node, const char* name, const char* value, std::size_t size, int flags) {
  serve_status(request, [&](FileSystem& system) {
    if (!is_of_the_host(name)) return EOPNOTSUPP;
    std::uint32_t wanted = (flags & XATTR_CREATE) != 0 ? layout::kFileXattrCreate : 0;
    if ((flags & XATTR_REPLACE) != 0) wanted |= layout::kFileXattrReplace;
    return system.attributes().set_xattr(node, name, std::as_bytes(std::span(value, size)), wanted);
  });
}

void remove_xattr(fuse_req_t request, fuse_ino_t node, const char* name) {
  serve_status(request, [&](FileSystem& system) {
    return is_of_the_host(name) ? system.attributes().remove_xattr(node, name) : EOPNOTSUPP;
  });
}

}  // namespace

void set_xattr_operations(fuse_lowlevel_ops& table) {
  table.getxattr = get_xattr;
  table.listxattr = list_xattrs;
  table.setxattr = set_xattr;
  table.removexattr = remove_xattr;
}

}  // namespace wherry::file::mount
