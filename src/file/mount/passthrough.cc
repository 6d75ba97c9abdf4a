// SPDX-License-Identifier: Apache-2.0
#include "file/mount/passthrough.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/unique_fd.hpp"
#include "file/mount/layout/passthrough.hpp"
#include "file/wire/open_again.hpp"

namespace wherry::file::mount {
namespace {

/// Returns the kernel's number for a file, or -1 and errno.
int open_backing(int device, int file) {
  layout::FuseBacking backing{.descriptor = file, .flags = 0, .reserved = 0};
  return ::ioctl(device, layout::kFuseBackingOpen, &backing);
}

}  // namespace

Passthrough::Backing::~Backing() {
  auto number = static_cast<std::uint32_t>(number_);
  const int device = device_->load(std::memory_order_relaxed);
  if (device >= 0) ::ioctl(device, layout::kFuseBackingClose, &number);
}

bool Passthrough::start(int device) {
  if (forbidden_ || ::geteuid() != 0) return false;
  device_->store(device, std::memory_order_relaxed);
  return true;
}

void Passthrough::check() {
  const int device = device_->load(std::memory_order_relaxed);
  const UniqueFd file(device < 0 ? -1 : ::memfd_create("wherry", MFD_CLOEXEC));
  if (!file.valid()) return;
  const int number = open_backing(device, file.get());
  if (number > 0)
    const Backing registered(device_, number, 0);
  else
    end();
}

/// Registers a read-only descriptor. The kernel keeps the registered file open while any program has the file open, and
/// opens it again for each of them. The lent descriptor may be writable, and would prevent the host from executing the
/// file.
std::shared_ptr<const Passthrough::Backing> Passthrough::add(const LentFile& file) {
  const int device = device_->load(std::memory_order_relaxed);
  struct statfs system{};
  if (device < 0 || ::fstatfs(file.descriptor(), &system) != 0) return nullptr;
  const UniqueFd reading = open_again(file.descriptor(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (!reading.valid() && errno != EAGAIN) return nullptr;  // EAGAIN: a program of the host has a lease
  const int number = open_backing(device, reading.valid() ? reading.get() : file.descriptor());
  return number > 0 ? std::make_shared<Backing>(device_, number, static_cast<long>(system.f_type)) : nullptr;
}

}  // namespace wherry::file::mount
