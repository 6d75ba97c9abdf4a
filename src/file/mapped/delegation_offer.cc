// SPDX-License-Identifier: Apache-2.0
#include "file/mapped/delegation_offer.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "layout/delegation_page.hpp"

namespace wherry::file::mapped {
namespace {

using layout::DelegationPage;
using layout::DelegationPageOffer;

/// A descriptor that is none of the standard streams, whose numbers may be free. -1: failed.
int make_memory() {
  const int made = ::memfd_create("wherry.delegation", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made < 0 || made > STDERR_FILENO) return made;
  const int moved = ::fcntl(made, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  ::close(made);
  return moved;
}

/// Writes the header, which also allocates its page.
bool fill(int memory, const DelegationPageOffer& offer) {
  DelegationPage page{};
  page.version = layout::kDelegationPageVersion;
  page.magic = layout::kDelegationPageMagic;
  std::memcpy(page.random, offer.random, sizeof offer.random);
  return ::ftruncate(memory, layout::kDelegationPageBytes) == 0 &&
         ::pwrite(memory, static_cast<const void*>(&page), sizeof page, 0) == sizeof page &&
         ::fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

}  // namespace

int offer_delegation_page(int fd) noexcept {
  const int memory = make_memory();
  if (memory < 0) return -1;
  DelegationPageOffer offer{.version = layout::kDelegationPageVersion, .descriptor = memory, .random = {}, .now = 0};
  timespec now{};
  bool taken = ::getrandom(offer.random, sizeof offer.random, 0) == sizeof offer.random && fill(memory, offer) &&
               ::clock_gettime(CLOCK_MONOTONIC, &now) == 0;
  offer.now = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
  taken = taken && ::ioctl(fd, layout::kDelegationPageAttach, &offer) == 0;
  if (taken) return memory;
  const int error = errno;
  ::close(memory);
  errno = error;
  return -1;
}

bool is_refused_for_good(int error) noexcept {
  return error == ENOTTY || error == ENOSYS || error == EOPNOTSUPP || error == EPERM || error == EINVAL;
}

}  // namespace wherry::file::mapped
