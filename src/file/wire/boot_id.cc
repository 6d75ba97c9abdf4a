// SPDX-License-Identifier: Apache-2.0
#include "file/wire/boot_id.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "base/not_cancelled.hpp"
#include "base/unique_fd.hpp"

namespace wherry::file {

BootId own_boot_id() {
  BootId boot{};
  const NotCancelled here;
  const UniqueFd file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  std::array<char, 64> text{};
  const ssize_t bytes = file.valid() ? ::read(file.get(), text.data(), text.size()) : 0;
  // 32 digits with hyphens between them.
  std::size_t digits = 0;
  for (ssize_t i = 0; i < bytes && digits < 2 * boot.size(); ++i) {
    const char c = text[static_cast<std::size_t>(i)];
    const int value = c >= '0' && c <= '9' ? c - '0' : (c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1);
    if (value < 0) continue;
    std::uint8_t& byte = boot[digits++ / 2];
    byte = static_cast<std::uint8_t>(byte << 4 | value);
  }
  return boot;
}

BootId boot_id_of(const layout::FileHello& hello) {
  BootId boot{};
  std::ranges::copy(hello.boot, boot.begin());
  return boot;
}

}  // namespace wherry::file
