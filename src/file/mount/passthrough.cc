// SPDX-License-Identifier: Apache-2.0
#include "file/mount/passthrough.hpp"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include <cstdint>

#include "base/unique_fd.hpp"
#include "file/mount/layout/passthrough.hpp"

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
  ::ioctl(device_, layout::kFuseBackingClose, &number);
}

void Passthrough::start(int device) {
  if (!forbidden_) device_.store(device, std::memory_order_relaxed);
}

void Passthrough::check() {
  const int device = device_.load(std::memory_order_relaxed);
  const UniqueFd file(device < 0 ? -1 : ::memfd_create("wherry", MFD_CLOEXEC));
  if (!file.valid()) return;
  const int number = open_backing(device, file.get());
  if (number > 0)
    const Backing registered(device, number, 0);
  else
    device_.store(-1, std::memory_order_relaxed);
}

std::shared_ptr<const Passthrough::Backing> Passthrough::add(const LentFile& file) {
  const int device = device_.load(std::memory_order_relaxed);
  if (device < 0) return nullptr;
  struct statfs system{};
  if (::fstatfs(file.descriptor(), &system) != 0) return nullptr;
  const int number = open_backing(device, file.descriptor());
  return number > 0 ? std::make_shared<Backing>(device, number, static_cast<long>(system.f_type)) : nullptr;
}

}  // namespace wherry::file::mount
