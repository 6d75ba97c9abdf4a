// SPDX-License-Identifier: Apache-2.0
#include "file/served_file.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/log.hpp"
#include "base/not_cancelled.hpp"
#include "file/process_cache.hpp"

namespace wherry::file {
namespace {

using wherry::files::Path;
using wherry::files::Reason;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kLastOffset = INT64_MAX;

std::array<std::array<std::atomic<std::uint64_t>, wherry::files::kReasons>, wherry::files::kPaths> counts{};

double ns_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

iovec buffer_of(std::span<std::byte> to) { return {to.data(), to.size()}; }

/// False: more than there are addresses.
bool add_up(std::span<const iovec> parts, std::uint64_t& bytes) {
  bytes = 0;
  for (const iovec& part : parts) {
    if (__builtin_add_overflow(bytes, part.iov_len, &bytes) || bytes > kLastOffset) return false;
  }
  return true;
}

}  // namespace

void count_choice(Path path, Reason reason) {
  auto& count = counts[static_cast<std::size_t>(path)][static_cast<std::size_t>(reason)];
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

wherry::files::Choices choices_so_far() {
  wherry::files::Choices choices;
  for (std::size_t path = 0; path < counts.size(); ++path) {
    for (std::size_t reason = 0; reason < counts[path].size(); ++reason) {
      choices.calls[path][reason] = counts[path][reason].load(std::memory_order_relaxed);
    }
  }
  return choices;
}

ServedFile::ServedFile(std::unique_ptr<Source> source, const Look& look, Cache& cache, const ServedOptions& options)
    : source_(std::move(source)),
      comp_(cache, *source_),
      choice_(source_->choice()),
      options_(options),
      remote_(source_->is_remote()),
      straight_(remote_ ? Path::host : Path::local),
      path_(options.path) {
  warn_of_lost_locks(path());
  comp_.opened(look);
  if (source_->descriptor() >= 0 && !options.appends) os_.emplace(source_->descriptor());
}

/// To look for writers the cache opens the file again. Closing that descriptor releases the process's locks on the
/// file. The warning is logged once in a process.
void ServedFile::warn_of_lost_locks(Path path) const {
  static std::atomic<bool> said{false};
  if (remote_ || path == Path::local || said.exchange(true, std::memory_order_relaxed)) return;
  log::write(log::Level::warning,
             "files: any path but local can release the POSIX locks (fcntl) that this process holds on a file; keep to "
             "local where processes lock files, as databases do (docs/files.md)");
}

void ServedFile::set_path(Path path) {
  warn_of_lost_locks(path);
  path_.store(path, std::memory_order_relaxed);
}

ServedFile::~ServedFile() {
  const NotCancelled here;
  os_.reset();
  source_.reset();
}

int ServedFile::close() {
  const NotCancelled here;
  os_.reset();
  return source_->close();
}

/// Returns 0 if calls may go that way.
int ServedFile::refused(Path path) const {
  if (remote_ && source_->inherited()) return EBADF;
  const bool other = path == (remote_ ? Path::local : Path::host);
  return other ? EOPNOTSUPP : 0;
}

bool ServedFile::is_sample(std::size_t bytes) {
  // Threads' own memory lies pages apart.
  const auto thread = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
  std::atomic<std::uint32_t>& count = calls_[(thread >> 12 ^ thread >> 16) % calls_.size()].count;
  const std::uint32_t calls = count.load(std::memory_order_relaxed) + 1;
  count.store(calls, std::memory_order_relaxed);
  return (calls & (PathChoice::hits_between(bytes) - 1)) == 0;
}

Result ServedFile::read(std::span<std::byte> to, std::uint64_t offset, Path path) {
  if (!options_.readable) return Result::failure(EBADF);
  if (const int error = refused(path); error != 0) return Result::failure(error);
  if (offset > kLastOffset || to.size() > kLastOffset - offset) return Result::failure(EINVAL);
  if (to.empty()) return Result::moved(0);
  const iovec buffer = buffer_of(to);
  switch (path) {
    case Path::automatic:
      return read_automatic(to, offset);
    case Path::os:
      if (const auto result = read_by_card({&buffer, 1}, offset)) return *result;
      [[fallthrough]];
    case Path::comp:
      if (int error = 0; !comp_.usable(error)) return read_uncached(to, offset, error);
      if (comp_.hit(offset, to)) return Result::moved(to.size());
      return read_filling(to, offset, Reason::asked);
    case Path::local:
    case Path::host:
      break;
  }
  return read_straight(to, offset, path, Reason::asked);
}

/// As many reads as there are buffers, up to the first that is short; by the source alone one.
Result ServedFile::read(std::span<const iovec> to, std::uint64_t offset, Path path) {
  std::uint64_t bytes = 0;
  if (!add_up(to, bytes)) return Result::failure(EINVAL);
  int unseen = 0;
  if (path == Path::local || path == Path::host || (path != Path::os && !comp_.usable(unseen))) {
    if (!options_.readable) return Result::failure(EBADF);
    if (const int error = refused(path); error != 0) return Result::failure(error);
    if (offset > kLastOffset || bytes > kLastOffset - offset) return Result::failure(EINVAL);
    if (unseen != 0 && remote_) return Result::failure(unseen);
    const bool asked = path == Path::local || path == Path::host;
    count_choice(straight_, asked ? Reason::asked : Reason::uncached);
    return source_->read(offset, to);
  }
  if (path == Path::os && options_.readable && offset <= kLastOffset && bytes <= kLastOffset - offset) {
    if (const auto result = read_by_card(to, offset)) return *result;
    path = Path::comp;
  }
  std::size_t done = 0;
  for (const iovec& part : to) {
    const Result got = read(std::span(static_cast<std::byte*>(part.iov_base), part.iov_len), offset + done, path);
    done += got.bytes;
    if (got.failed()) return Result::failure(got.error, done);
    if (got.bytes != part.iov_len) break;
  }
  return Result::moved(done);
}

/// Empty: no card's process serves this call.
std::optional<Result> ServedFile::read_by_card(std::span<const iovec> to, std::uint64_t offset) {
  if (!os_) return {};
  const NotCancelled here;
  auto result = os_->read(offset, to);
  if (result) count_choice(Path::os, Reason::asked);
  return result;
}

Result ServedFile::read_straight(std::span<std::byte> to, std::uint64_t offset, Path path, Reason reason) {
  count_choice(path, reason);
  const iovec buffer = buffer_of(to);
  return source_->read(offset, {&buffer, 1});
}

/// A host that cannot be asked what the file is like was waited for already.
Result ServedFile::read_uncached(std::span<std::byte> to, std::uint64_t offset, int error) {
  if (error != 0 && remote_) return Result::failure(error);
  return read_straight(to, offset, straight_, Reason::uncached);
}

Result ServedFile::read_filling(std::span<std::byte> to, std::uint64_t offset, Reason reason) {
  count_choice(Path::comp, reason);
  const std::size_t ahead = comp_.ahead(comp_.in_order(offset, to.size()));
  return comp_.read(offset, to, ahead).result;
}

Result ServedFile::read_automatic(std::span<std::byte> to, std::uint64_t offset) {
  if (int error = 0; !comp_.usable(error)) return read_uncached(to, offset, error);
  const bool sample = is_sample(to.size());
  const bool hits_pay = choice_.hits_pay(to.size());
  if (hits_pay && !sample) [[likely]] {
    if (comp_.hit(offset, to)) return Result::moved(to.size());
    return read_missing(to, offset);
  }
  if (hits_pay ? choice_.tries_straight(to.size()) : !choice_.tries_hit(to.size())) {
    const auto start = Clock::now();
    const Result got = read_straight(to, offset, straight_, hits_pay ? Reason::explored : Reason::cheaper);
    if (got.bytes == to.size()) choice_.measured_straight(to.size(), ns_since(start));
    return got;
  }
  const auto start = Clock::now();
  if (!comp_.hit(offset, to)) return read_missing(to, offset);
  choice_.measured_hit(to.size(), ns_since(start));
  return Result::moved(to.size());
}

Result ServedFile::read_missing(std::span<std::byte> to, std::uint64_t offset) {
  const bool in_order = comp_.in_order(offset, to.size());
  const std::size_t window = comp_.ahead(in_order);
  // Nothing follows a small file.
  const std::uint64_t there = comp_.size() > offset ? comp_.size() - offset : 0;
  const std::size_t fetched = std::min<std::uint64_t>(to.size() + window, there);
  const PathChoice::Choice choice = choice_.choose(to.size(), in_order, fetched);
  const auto start = choice.timed ? Clock::now() : Clock::time_point{};
  // The next part of a block was not wanted before.
  const bool goes_on = in_order && offset % layout::kFileBlock != 0;
  const bool again = !choice.fill && choice.admit && !goes_on && comp_.wanted_before(offset, to.size());
  if (!choice.fill && !again) {
    comp_.passed(offset + to.size());
    const Result got = read_straight(to, offset, straight_, choice.reason);
    if (choice.timed && got.bytes == to.size()) choice_.measured_straight(to.size(), ns_since(start));
    return got;
  }
  count_choice(Path::comp, again ? Reason::again : choice.reason);
  const CompFile::Read read = comp_.read(offset, to, choice.fill ? window : 0);
  if (choice.timed && read.filled != 0 && read.fetched >= to.size()) {
    choice_.measured_filled(read.fetched, ns_since(start));
  }
  return read.result;
}

Result ServedFile::write(std::span<const iovec> from, std::uint64_t offset, Path path) {
  std::uint64_t bytes = 0;
  if (!options_.writable) return Result::failure(EBADF);
  if (const int error = refused(path); error != 0) return Result::failure(error);
  if (options_.appends || !add_up(from, bytes) || offset > kLastOffset || bytes > kLastOffset - offset) {
    return Result::failure(EINVAL);
  }
  if (bytes == 0) return Result::moved(0);
  look_for_card();
  const Change change(comp_.cache(), comp_.key(), offset, bytes);
  return source_->write(offset, from);
}

Result ServedFile::append(std::span<const std::byte> from) {
  if (!options_.writable) return Result::failure(EBADF);
  if (const int error = refused(Path::automatic); error != 0) return Result::failure(error);
  if (!options_.appends || from.size() > kLastOffset) return Result::failure(EINVAL);
  look_for_card();
  const Change change(comp_.cache(), comp_.key());
  std::size_t done = 0;
  while (done < from.size()) {
    const iovec buffer{const_cast<std::byte*>(from.data()) + done, from.size() - done};
    const Result result = source_->append({&buffer, 1});
    done += result.bytes;
    if (result.failed()) return Result::failure(result.error, done);
    if (result.bytes == 0) return Result::failure(EIO, done);
  }
  return Result::moved(done);
}

int ServedFile::set_size(std::uint64_t size) {
  if (!options_.writable || size > kLastOffset) return options_.writable ? EFBIG : EBADF;
  look_for_card();
  const Change change(comp_.cache(), comp_.key());
  return source_->set_size(size);
}

Glimpse ServedFile::view(std::uint64_t offset, std::size_t length) {
  int error = 0;
  if (!options_.readable || refused(Path::automatic) != 0 || offset > kLastOffset || !comp_.usable(error)) return {};
  Glimpse there = comp_.glimpse(offset, length);
  if (!there.bytes.empty() || length == 0) return there;
  std::byte first{};
  if (read_filling(std::span(&first, 1), offset, Reason::asked).bytes == 0) return {};
  return comp_.glimpse(offset, length);
}

}  // namespace wherry::file
