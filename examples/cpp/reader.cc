// SPDX-License-Identifier: Apache-2.0
// reader FILE...: prints files, each a path or wherry://NODE:PORT/PATH of a `wherry serve`.
#include <wherry/wherry.hpp>

#include <fcntl.h>

#include <array>
#include <cstdint>
#include <iostream>

int main(int count, char** names) {
  try {
    for (int i = 1; i < count; ++i) {
      wherry::files::File file = wherry::files::open(names[i], O_RDONLY);
      std::array<std::byte, 4096> buffer;
      wherry::Result got;
      for (std::uint64_t offset = 0; (got = file.pread(buffer, offset)); offset += got.bytes)
        std::cout.write(reinterpret_cast<const char*>(buffer.data()), static_cast<std::streamsize>(got.bytes));
      if (got.failed()) std::cerr << names[i] << ": " << got << '\n';
      if (got.failed()) return 1;
    }
  } catch (const wherry::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return std::cout.flush() ? 0 : 1;
}
