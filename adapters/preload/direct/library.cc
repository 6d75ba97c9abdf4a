// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <exception>
#include <memory>
#include <new>
#include <span>

#include "direct.hpp"
#include "file/direct/direct_files.hpp"
#include "stream/statistics.hpp"

namespace wherry::preload {
namespace {

using File = file::DirectFiles::File;

const DirectCaller* caller = nullptr;
// Never destroyed: other threads may be inside a call when the process exits.
file::DirectFiles* files = nullptr;

File& file_of(void* file) { return *static_cast<File*>(file); }

template <class Call>
std::int64_t guarded(Call call) noexcept {
  try {
    const Result result = call();
    return result.failed() ? -result.error : static_cast<std::int64_t>(result.bytes);
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  } catch (const std::exception&) {
    return -EIO;
  }
}

bool connect(const layout::HostTicket& ticket) noexcept {
  try {
    if (files == nullptr) files = new file::DirectFiles({.may_wait = caller->may_wait, .copy = caller->copy});
    return files->connect(ticket) == 0;
  } catch (const std::exception&) {
    return false;
  }
}

void* open(const layout::HostTicket& ticket) noexcept {
  try {
    std::unique_ptr<File> made;
    return files->open(ticket, made) == 0 ? made.release() : nullptr;
  } catch (const std::exception&) {
    return nullptr;
  }
}

std::int64_t read(void* file, std::uint64_t offset, void* into, std::size_t bytes) noexcept {
  return guarded([&] { return file_of(file).file->read(offset, {static_cast<std::byte*>(into), bytes}); });
}

std::int64_t write(void* file, std::uint64_t offset, const void* from, std::size_t bytes) noexcept {
  return guarded([&] { return file_of(file).file->write(offset, {static_cast<const std::byte*>(from), bytes}); });
}

bool has_set_id(void* file) noexcept { return file_of(file).file->has_set_id(); }

bool is_warm(void* file, bool writes) noexcept { return file_of(file).host->is_warm(writes); }

bool is_shared(void* file) noexcept { return file_of(file).host->is_shared(); }

void boot(void* file, std::uint8_t (&id)[16]) noexcept {
  const BootId of_server = file_of(file).host->boot();
  std::ranges::copy(of_server, id);
}

layout::TransferClass* transfer_classes() noexcept {
  try {
    return statistics::transfer_classes();
  } catch (const std::exception&) {
    return nullptr;
  }
}

void close(void* file) noexcept { delete static_cast<File*>(file); }

void end() noexcept {
  delete files;
  files = nullptr;
}

void forget_after_fork(bool quiet) noexcept {
  // Their memory is leaked: a thread of the parent may have been inside a call.
  if (quiet && files != nullptr) files->forget_after_fork();
  files = nullptr;
}

constexpr Direct kDirect{.connect = connect,
                         .open = open,
                         .read = read,
                         .write = write,
                         .has_set_id = has_set_id,
                         .is_warm = is_warm,
                         .is_shared = is_shared,
                         .boot = boot,
                         .transfer_classes = transfer_classes,
                         .close = close,
                         .end = end,
                         .forget_after_fork = forget_after_fork};

}  // namespace
}  // namespace wherry::preload

extern "C" __attribute__((visibility("default"))) const wherry::preload::Direct* wherry_direct_5(
    const wherry::preload::DirectCaller& caller) {
  wherry::preload::caller = &caller;
  return &wherry::preload::kDirect;
}
