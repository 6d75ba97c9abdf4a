// SPDX-License-Identifier: Apache-2.0
// Extended attributes.
#include <cerrno>

#include "file/client/host_exchange.hpp"

namespace wherry::file {

int Host::call_xattr(layout::FileCall call, const Target& target, Asked asked, std::vector<std::byte>& payload) {
  const std::lock_guard lock(mutex_);
  const auto file = find(target.handle);
  if (target.handle != 0 && file == nullptr) return EBADF;
  if (file == nullptr) asked.name = target.name;
  asked.request.call = static_cast<std::uint32_t>(call);
  asked.request.flags |= layout::kFileLookNoFollow;
  return this->call(asked, file.get(), payload, layout::kFileMaxXattr);
}

int Host::get_xattr(const Target& target, std::string_view attribute, std::vector<std::byte>& value) {
  return call_xattr(layout::FileCall::get_xattr, target, {.second = attribute}, value);
}

int Host::list_xattrs(const Target& target, std::vector<std::byte>& names) {
  return call_xattr(layout::FileCall::list_xattrs, target, {}, names);
}

int Host::set_xattr(const Target& target, std::string_view attribute, std::span<const std::byte> value,
                    std::uint32_t flags) {
  if (value.size() > layout::kFileMaxXattr) return E2BIG;
  const iovec buffer{const_cast<std::byte*>(value.data()), value.size()};
  Asked asked{.second = attribute, .data = std::span(&buffer, 1), .data_bytes = value.size()};
  asked.request.length = value.size();
  asked.request.flags = flags;
  std::vector<std::byte> nothing;
  return call_xattr(layout::FileCall::set_xattr, target, asked, nothing);
}

int Host::remove_xattr(const Target& target, std::string_view attribute) {
  std::vector<std::byte> nothing;
  return call_xattr(layout::FileCall::remove_xattr, target, {.second = attribute}, nothing);
}

}  // namespace wherry::file
