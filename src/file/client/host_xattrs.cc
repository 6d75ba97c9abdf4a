// SPDX-License-Identifier: Apache-2.0
#include "file/client/host_xattrs.hpp"

#include <cerrno>

namespace wherry::file {

int HostXattrs::call(layout::FileCall call, const Target& target, HostLink::Asked asked,
                     std::vector<std::byte>& payload) {
  const std::lock_guard lock(link_.mutex());
  const auto file = link_.find(target.handle);
  if (target.handle != 0 && file == nullptr) return EBADF;
  if (file == nullptr) asked.name = target.name;
  asked.request.call = static_cast<std::uint32_t>(call);
  asked.request.flags |= layout::kFileLookNoFollow;
  return link_.call(asked, file.get(), payload, layout::kFileMaxXattr);
}

int HostXattrs::get(const Target& target, std::string_view attribute, std::vector<std::byte>& value) {
  return call(layout::FileCall::get_xattr, target, {.second = attribute}, value);
}

int HostXattrs::list(const Target& target, std::vector<std::byte>& names) {
  return call(layout::FileCall::list_xattrs, target, {}, names);
}

int HostXattrs::set(const Target& target, std::string_view attribute, std::span<const std::byte> value,
                    std::uint32_t flags) {
  if (value.size() > layout::kFileMaxXattr) return E2BIG;
  const iovec buffer{const_cast<std::byte*>(value.data()), value.size()};
  HostLink::Asked asked{.second = attribute, .data = std::span(&buffer, 1), .data_bytes = value.size()};
  asked.request.length = value.size();
  asked.request.flags = flags;
  std::vector<std::byte> nothing;
  return call(layout::FileCall::set_xattr, target, asked, nothing);
}

int HostXattrs::remove(const Target& target, std::string_view attribute) {
  std::vector<std::byte> nothing;
  return call(layout::FileCall::remove_xattr, target, {.second = attribute}, nothing);
}

}  // namespace wherry::file
