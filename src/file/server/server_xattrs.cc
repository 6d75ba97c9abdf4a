// SPDX-License-Identifier: Apache-2.0
// Extended attributes.
#include <sys/xattr.h>

#include <cerrno>
#include <string>
#include <utility>

#include "file/server/server_calls.hpp"

namespace wherry::file {
namespace {

using namespace layout;

bool is_served(std::string_view attribute) { return attribute.starts_with(kFileXattrNamespace); }

/// The names of a list that are served.
std::string served_of(std::string_view names) {
  std::string served;
  for (std::size_t end = names.find('\0'); end != std::string_view::npos; end = names.find('\0')) {
    const std::string_view name = names.substr(0, end + 1);
    if (is_served(name)) served += name;
    names.remove_prefix(name.size());
  }
  return served;
}

/// Calls `get(buffer)`, with a buffer of the largest size that Linux allows.
template <class Get>
int fill(std::string& result, Get get) {
  result.resize(kFileMaxXattr);
  const ssize_t bytes = get(result);
  if (bytes < 0) return errno;
  result.resize(static_cast<std::size_t>(bytes));
  return 0;
}

Outcome with_text(int error, std::string_view text) {
  Outcome outcome{.error = error};
  const auto bytes = std::as_bytes(std::span(text));
  if (error == 0) outcome.payload.assign(bytes.begin(), bytes.end());
  return outcome;
}

}  // namespace

/// Uses a path in /proc: the descriptor of a name is opened with O_PATH, which the f...xattr calls refuse.
Calls::XattrTarget Calls::xattr_target_of(const Request& request, bool one) {
  XattrTarget target;
  if (one && request.second.find('\0') != std::string::npos) target.error = EINVAL;
  if (target.error == 0 && one && !is_served(request.second)) target.error = EOPNOTSUPP;
  if (target.error != 0) return target;
  target.target = target_of(request, (request.header.flags & kFileLookNoFollow) == 0);
  target.error = target.target.error;
  target.path = "/proc/self/fd/" + std::to_string(target.target.descriptor);
  return target;
}

Outcome Calls::get_xattr(const Request& request) {
  const XattrTarget target = xattr_target_of(request, true);
  if (target.error != 0) return {.error = target.error};
  std::string value;
  const int error = fill(value, [&](std::string& into) {
    return ::getxattr(target.path.c_str(), request.second.c_str(), into.data(), into.size());
  });
  return with_text(error, value);
}

Outcome Calls::list_xattrs(const Request& request) {
  const XattrTarget target = xattr_target_of(request, false);
  if (target.error != 0) return {.error = target.error};
  std::string names;
  const int error =
      fill(names, [&](std::string& into) { return ::listxattr(target.path.c_str(), into.data(), into.size()); });
  return with_text(error, served_of(names));
}

Outcome Calls::set_xattr(const Request& request, std::span<const std::byte> value) {
  const FileRequest& header = request.header;
  if (request.name.find('\0') != std::string::npos) return {.error = EINVAL};
  if ((header.flags & ~(kFileLookNoFollow | kFileXattrCreate | kFileXattrReplace)) != 0) return {.error = EINVAL};
  const XattrTarget target = xattr_target_of(request, true);
  if (target.error != 0) return {.error = target.error};
  int flags = (header.flags & kFileXattrCreate) != 0 ? XATTR_CREATE : 0;
  if ((header.flags & kFileXattrReplace) != 0) flags |= XATTR_REPLACE;
  const int result = ::setxattr(target.path.c_str(), request.second.c_str(), value.data(), value.size(), flags);
  const int error = result == 0 ? 0 : errno;
  // It is unknown whether the first attempt made it.
  return {.error = error == EEXIST && header.repeated != 0 ? EIO : error};
}

Outcome Calls::remove_xattr(const Request& request) {
  const XattrTarget target = xattr_target_of(request, true);
  if (target.error != 0) return {.error = target.error};
  const int error = ::removexattr(target.path.c_str(), request.second.c_str()) == 0 ? 0 : errno;
  return {.error = error == ENODATA && request.header.repeated != 0 ? 0 : error};
}

}  // namespace wherry::file
