// SPDX-License-Identifier: Apache-2.0
#include "file/wire/open_again.hpp"

#include <fcntl.h>

#include <cerrno>
#include <string>

namespace wherry::file {

UniqueFd open_again(int descriptor, int flags) {
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  int opened = -1;
  do {
    opened = ::open(path.c_str(), flags);
  } while (opened < 0 && errno == EINTR);
  return UniqueFd(opened);
}

}  // namespace wherry::file
