// SPDX-License-Identifier: Apache-2.0
#include "file/api/host_source.hpp"

#include <sched.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include <wherry/error.hpp>

#include "base/log.hpp"
#include "base/machine.hpp"
#include "base/not_cancelled.hpp"
#include "file/api/per_process.hpp"

namespace wherry::file {
namespace {

/// Limit of connections to one host. Calls on one connection are serialized.
constexpr std::size_t kMostHostConnections = 4;

struct Connections {
  struct Place {
    std::string address;
    std::chrono::milliseconds timeout;
    std::weak_ptr<HostFiles> files;
  };
  std::mutex mutex;
  std::vector<Place> places;
};

constinit PerProcess<Connections> connections;

std::size_t most_connections() {
  cpu_set_t set;
  const std::size_t cores =
      ::sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<std::size_t>(CPU_COUNT(&set)) : 1;
  return std::min(cores, kMostHostConnections);
}

/// Spreads numbers that differ little over 64 bits (the finalizer of MurmurHash3).
constexpr std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 33)) * 0xff51afd7ed558ccd;
  value = (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53;
  return value ^ (value >> 33);
}
constexpr std::uint64_t mixed(std::uint64_t first, std::uint64_t second) {
  return mixed(first + 0x9e3779b97f4a7c15 * mixed(second));
}

}  // namespace

HostFiles::HostFiles(std::string address, std::chrono::milliseconds timeout, bool waits)
    : host_({.address = std::move(address), .timeout = timeout, .waits = waits}) {}

/// Counts a call on the connection, until two calls have overlapped. No thread is cancelled during the call.
class HostFiles::Call {
 public:
  explicit Call(HostFiles& files) : files_(files), counted_(!files.overlapped_.load(std::memory_order_relaxed)) {
    if (counted_ && files_.calls_.fetch_add(1, std::memory_order_relaxed) != 0) files_.overlapped_ = true;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    if (counted_) files_.calls_.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  NotCancelled not_cancelled_;
  HostFiles& files_;
  bool counted_;
};

/// Returns the connection with the fewest files, or null. `enough`: a further connection would not help.
std::shared_ptr<HostFiles> HostFiles::least_used(const std::string& address, std::chrono::milliseconds timeout,
                                                 bool& enough) {
  Connections& all = connections.get();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.places, [](const Connections::Place& place) { return place.files.expired(); });
  std::shared_ptr<HostFiles> least;
  std::size_t count = 0;
  bool refused = false;
  for (const Connections::Place& place : all.places) {
    if (place.address != address || place.timeout != timeout) continue;
    auto files = place.files.lock();
    if (!files) continue;
    ++count;
    refused = refused || files->refused_;
    if (!least || files->files_ < least->files_) least = std::move(files);
  }
  enough = least && (least->files_ == 0 || !least->overlapped_ || refused || count >= most_connections());
  return least;
}

/// Connects without the lock, so that files of other hosts do not wait for this one.
std::shared_ptr<HostFiles> HostFiles::get(const std::string& address, std::chrono::milliseconds timeout) {
  bool enough = false;
  std::shared_ptr<HostFiles> least = least_used(address, timeout, enough);
  if (enough) return least;
  std::shared_ptr<HostFiles> made;
  try {
    made = std::make_shared<HostFiles>(address, timeout, /*waits=*/least == nullptr);
  } catch (const Error&) {
    if (!least) throw;
    // The server or this process has reached a limit (connections, descriptors). No further connection is tried.
    least->refused_ = true;
    return least;
  }
  Connections& all = connections.get();
  const std::lock_guard lock(all.mutex);
  all.places.push_back({address, timeout, made});
  return made;
}

std::uint64_t HostFiles::device_of(const layout::FileStatus& status) const {
  const BootId boot = host_.boot();
  if (is_own_kernel(boot)) return status.device;
  std::array<std::uint64_t, 2> words{};
  static_assert(sizeof words == sizeof boot);
  std::memcpy(words.data(), boot.data(), sizeof words);
  return mixed(mixed(words[0], words[1]), status.device);
}

HostSource::HostSource(std::shared_ptr<HostFiles> files, const std::string& name, std::uint32_t flags,
                       std::uint32_t mode, int& error, layout::FileStatus& status)
    : files_(std::move(files)), name_(name) {
  const Host::Opened opened = files_->host().open(name, flags, mode);
  error = opened.error;
  if (error != 0) return;
  ++files_->files_;
  handle_ = opened.handle;
  open_ = true;
  status = opened.status;
  status.device = files_->device_of(opened.status);
}

HostSource::~HostSource() {
  try {
    (void)close();
  } catch (const std::exception& error) {
    log::write(log::Level::warning, std::string("cannot close a file of a host: ") + error.what());
  }
}

int HostSource::close() {
  if (!open_) return 0;
  open_ = false;
  if (inherited()) return EBADF;  // the file and the connection belong to the parent
  const HostFiles::Call here(*files_);
  --files_->files_;
  return files_->host().close(handle_);
}

/// Repeats the call as often as necessary: one call moves at most layout::kFileMaxLength.
template <class Call>
Result HostSource::whole(std::span<const iovec> parts, Call call) {
  Buffers left(parts);
  std::uint64_t wanted = left.bytes();
  if (wanted <= layout::kFileMaxLength) return call(0, parts);
  std::size_t done = 0;
  while (wanted != 0) {
    const auto piece = left.front(layout::kFileMaxLength);
    const iovec part{piece.data(), piece.size()};
    Result result = call(done, std::span(&part, 1));
    done += result.bytes;
    if (result.failed()) return Result::failure(result.error, done);
    if (result.bytes != piece.size()) break;
    left.skip(piece.size());
    wanted -= piece.size();
  }
  return Result::moved(done);
}

Result HostSource::read(std::uint64_t offset, std::span<const iovec> into) {
  if (inherited()) return Result::failure(EBADF);
  const HostFiles::Call here(*files_);
  return whole(into, [&](std::size_t done, std::span<const iovec> parts) {
    return files_->host().read(handle_, offset + done, parts);
  });
}

/// The host writes less than requested only before an error, which the next request returns.
Result HostSource::write(std::uint64_t offset, std::span<const iovec> from) {
  if (inherited()) return Result::failure(EBADF);
  const HostFiles::Call here(*files_);
  Buffers left(from);
  std::size_t done = 0;
  for (std::uint64_t wanted = left.bytes(); done < wanted || wanted == 0;) {
    const Result result = done == 0 ? files_->host().write(handle_, offset, from) : [&] {
      const auto piece = left.front(layout::kFileMaxLength);
      const iovec part{piece.data(), piece.size()};
      return files_->host().write(handle_, offset + done, std::span<const iovec>(&part, 1));
    }();
    if (result.failed()) return Result::failure(result.error, done + result.bytes);
    if (result.bytes == 0) break;
    done += result.bytes;
    for (std::size_t over = result.bytes; over != 0;) {
      const std::size_t piece = left.front(over).size();
      left.skip(piece);
      over -= piece;
    }
  }
  return Result::moved(done);
}

Result HostSource::append(std::span<const iovec> from) {
  if (inherited()) return Result::failure(EBADF);
  const HostFiles::Call here(*files_);
  return files_->host().append(handle_, from);
}

int HostSource::flush(bool data_only) {
  if (inherited()) return EBADF;
  const HostFiles::Call here(*files_);
  return files_->host().flush(handle_, data_only);
}

int HostSource::status(layout::FileStatus& status) {
  if (inherited()) return EBADF;
  const HostFiles::Call here(*files_);
  const int error = files_->host().status(handle_, status);
  if (error == 0) status.device = files_->device_of(status);
  return error;
}

int HostSource::set_size(std::uint64_t size) {
  if (inherited()) return EBADF;
  const HostFiles::Call here(*files_);
  return files_->host().set_size(handle_, size);
}

}  // namespace wherry::file
