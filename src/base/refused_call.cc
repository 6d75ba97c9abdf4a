// SPDX-License-Identifier: Apache-2.0
#include "base/refused_call.hpp"

#include <cerrno>

namespace wherry {

std::string advice_on(int error, std::string_view call) {
  const std::string name(call);
  switch (error) {
    case EMFILE:
      return "raise the limit of open files (ulimit -n), or close streams";
    case ENFILE:
      return "the whole system has too many open files; close some, or raise fs.file-max";
    case ENOMEM:
    case ENOBUFS:
      return name + " found no memory; free some, or raise the limit of the memory cgroup";
    case ENOSPC:
      return "this user watches too many descriptors; raise fs.epoll.max_user_watches";
    case ETOOMANYREFS:
      return "too many descriptors are on their way between processes; accept faster, or raise ulimit -n";
    case EPERM:
    case EACCES:
    case ENOSYS:
      return "this system does not permit " + name + "; if this is a container or a sandbox, its seccomp profile must";
    default:
      return name + " failed; `wherry doctor` checks what this machine permits";
  }
}

}  // namespace wherry
