// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "file/client/host_link.hpp"

namespace wherry::file {

/// Extended attributes of a host's files, of the namespace layout::kFileXattrNamespace; others are EOPNOTSUPP.
/// Functions return 0 or an errno value. Threads and blocking as of Host.
class HostXattrs {
 public:
  /// What a call asks about: an open file, or a name, whose last symbolic link is not followed.
  struct Target {
    HostLink::Handle handle = 0;  ///< 0: the name
    std::string_view name{};
  };

  explicit HostXattrs(HostLink& link) : link_(link) {}

  int get(const Target& target, std::string_view attribute, std::vector<std::byte>& value);
  /// `names`: each with a zero behind it.
  int list(const Target& target, std::vector<std::byte>& names);
  /// `flags`: of layout::kFileXattr... E2BIG: the value is longer than layout::kFileMaxXattr.
  int set(const Target& target, std::string_view attribute, std::span<const std::byte> value, std::uint32_t flags = 0);
  int remove(const Target& target, std::string_view attribute);

 private:
  int call(layout::FileCall call, const Target& target, HostLink::Asked asked, std::vector<std::byte>& payload);

  HostLink& link_;
};

}  // namespace wherry::file
