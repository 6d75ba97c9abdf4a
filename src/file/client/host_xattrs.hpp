// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "file/client/host_link.hpp"

namespace wherry::file {

/// Extended attributes of a host's files. Only those of layout::kFileXattrNamespace; others return EOPNOTSUPP.
/// Functions return 0 or an errno value. Threads and blocking as in Host.
class HostXattrs {
 public:
  /// An open file, or a name. A symbolic link in the last component is not followed.
  struct Target {
    HostLink::Handle handle = 0;  ///< 0: use the name
    std::string_view name{};
  };

  explicit HostXattrs(HostLink& link) : link_(link) {}

  int get(const Target& target, std::string_view attribute, std::vector<std::byte>& value);
  /// `names`: each with a terminating zero.
  int list(const Target& target, std::vector<std::byte>& names);
  /// `flags`: of layout::kFileXattr... E2BIG: the value is longer than layout::kFileMaxXattr.
  int set(const Target& target, std::string_view attribute, std::span<const std::byte> value, std::uint32_t flags = 0);
  int remove(const Target& target, std::string_view attribute);

 private:
  int call(layout::FileCall call, const Target& target, HostLink::Asked asked, std::vector<std::byte>& payload);

  HostLink& link_;
};

}  // namespace wherry::file
