// SPDX-License-Identifier: Apache-2.0
// Calls that move data.
#include "file/client/host.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace wherry::file {
namespace {

using layout::FileCall;
using layout::FileStatus;

iovec buffer_of(std::span<const std::byte> bytes) { return {const_cast<std::byte*>(bytes.data()), bytes.size()}; }

}  // namespace

BootId Host::boot() const {
  const std::lock_guard lock(link_.mutex());
  return link_.boot();
}

layout::FileHello Host::server() const {
  const std::lock_guard lock(link_.mutex());
  return link_.server();
}

/// Data written to it may be unflushed. That matters if the host can be rebooted without this process.
Host::Handle Host::resume(std::string_view name, std::uint32_t flags, const FileStatus& same, bool lost, UniqueFd kept,
                          const std::optional<HostBoot>& seen) {
  const std::lock_guard lock(link_.mutex());
  auto made = std::make_shared<File>();
  made->name = name;
  made->flags = flags & ~(layout::kFileOpenCreate | layout::kFileOpenExclusive | layout::kFileOpenTruncate);
  made->status = same;
  made->unflushed =
      (flags & layout::kFileOpenWrite) != 0 && seen.value_or(HostBoot{.boot = link_.boot()}).boot != own_boot_id();
  made->boot = seen ? seen->boot : link_.boot();
  made->lost = seen && seen->lost;
  made->stale = lost;
  if (kept.valid() && !lost) made->kept = LentFile::keep(std::move(kept), flags);
  const auto lent = made->kept;
  const Handle own = link_.resume(std::move(made));
  if (lent != nullptr) link_.lent().set(own, lent);
  return own;
}

Host::Opened Host::open(std::string_view name, std::uint32_t flags, std::uint32_t mode) {
  const std::lock_guard lock(link_.mutex());
  link_.apply_noted_renames();
  Asked asked{.name = name};
  asked.request.mode = mode;
  return open(asked, nullptr, name, flags);
}

Host::Opened Host::open_again(Handle handle, std::uint32_t flags) {
  const std::lock_guard lock(link_.mutex());
  const auto file = link_.find(handle);
  if (file == nullptr) return {.error = EBADF};
  return open({}, file.get(), {}, flags);
}

/// @param other  an open handle of the same file; null: opens by name
Host::Opened Host::open(Asked asked, File* other, std::string_view name, std::uint32_t flags) {
  Opened opened;
  asked.request.call = static_cast<std::uint32_t>(FileCall::open);
  asked.request.flags = flags;
  layout::FileAnswer answer{};
  opened.error = link_.call(asked, other, std::as_writable_bytes(std::span(&opened.status, 1)), &answer);
  if (opened.error != 0) return opened;
  auto made = std::make_shared<File>();
  File& file = *made;
  file.name = other != nullptr ? other->name : std::string(name);
  constexpr std::uint32_t kOnce =
      layout::kFileOpenCreate | layout::kFileOpenExclusive | layout::kFileOpenTruncate | layout::kFileOpenTellStable;
  file.flags = flags & ~kOnce;
  file.handle = answer.value;
  file.lent_as = answer.position & ~layout::kFileStable;
  opened.is_stable = (answer.position & layout::kFileStable) != 0;
  file.status = opened.status;
  file.end = opened.status.size;
  opened.handle = link_.add(std::move(made));
  return opened;
}

int Host::close(Handle handle) {
  const std::lock_guard lock(link_.mutex());
  const auto file = link_.find(handle);
  if (file == nullptr) return EBADF;
  const int lost = take_loss_error(*file);
  link_.lent().set(handle, nullptr);
  int error = 0;
  if (link_.connection() != nullptr || file->unflushed) {
    // A dead server has closed the file, too. Unflushed data may be lost in a reboot; the next server's boot id shows
    // that.
    Asked asked{.once = !file->unflushed};
    asked.request.call = static_cast<std::uint32_t>(FileCall::close);
    error = link_.call(asked, file.get());
  }
  file->closed = true;
  link_.erase(file);
  // ESTALE: the server does not know the handle, so the file is closed. No error.
  return lost != 0 || error == ESTALE || (error == ECONNRESET && !file->unflushed) ? lost : error;
}

int Host::check_loss(Handle handle) {
  if (link_.lent().find(handle) != nullptr) return 0;
  const std::lock_guard lock(link_.mutex());
  const auto file = link_.find(handle);
  if (file == nullptr) return EBADF;
  FileStatus status{};
  Asked asked;
  asked.request.call = static_cast<std::uint32_t>(FileCall::status);
  const int error =
      file->unflushed && !file->lost ? link_.call(asked, file.get(), std::as_writable_bytes(std::span(&status, 1))) : 0;
  return take_loss_error(*file) != 0 ? EIO : error;
}

int Host::take_loss_error(File& file) { return HostLink::take_loss(file) ? EIO : 0; }

void Host::note_boots(Handle handle, HostBoot::Note note) {
  const std::lock_guard lock(link_.mutex());
  const auto file = link_.find(handle);
  if (file == nullptr) return;
  note({.boot = file->boot, .lost = file->lost});
  file->note_boot = std::move(note);
}

/// Returns the server's descriptor of the file, or null. Tries only once per file: a refusal is final.
std::shared_ptr<LentFile> Host::borrow(File& file) {
  if (auto had = link_.lent().find(file.own)) return had;
  if (file.lent_as == 0 || file.guarded || !lends() || file.stale) return nullptr;
  // The server keeps its descriptor open as long as the handle, which ends with the connection.
  if (link_.connection() == nullptr || link_.connection()->lender() < 0) return nullptr;
  pass(link_.options().at, FaultPoint::lent);
  int error = 0;
  auto taken =
      LentFile::take(link_.connection()->lender(), std::exchange(file.lent_as, 0) - 1, file.status, file.flags, error);
  // EPERM, ENOSYS: the kernel refuses every file. After ESRCH, of a dead server, the next server is asked.
  if (error == EPERM || error == ENOSYS) link_.refuse_lent();
  if (taken) link_.lent().set(file.own, taken);
  return taken;
}

std::shared_ptr<LentFile> Host::lend(Handle handle) {
  if (auto had = link_.lent().find(handle)) return had;
  const std::lock_guard lock(link_.mutex());
  const auto file = link_.find(handle);
  if (file == nullptr) return nullptr;
  FileStatus status{};
  Asked asked;
  asked.request.call = static_cast<std::uint32_t>(FileCall::status);
  // A resumed file that is not opened yet: any call opens it.
  if (file->handle == 0 && link_.call(asked, file.get(), std::as_writable_bytes(std::span(&status, 1))) != 0)
    return nullptr;
  return borrow(*file);
}

Result Host::read(Handle handle, std::uint64_t offset, std::span<const iovec> into) {
  if (const auto lent = link_.lent().find(handle)) return lent->read(offset, into);
  std::unique_lock lock(link_.mutex());
  const auto file = link_.find(handle);
  if (file == nullptr) return Result::failure(EBADF);
  if (const auto lent = borrow(*file)) {
    lock.unlock();
    return lent->read(offset, into);
  }
  const std::uint64_t wanted = Buffers(into).bytes();
  Asked asked;
  asked.request.call = static_cast<std::uint32_t>(FileCall::read);
  asked.request.offset = offset;
  asked.request.length = std::min(wanted, layout::kFileMaxLength);
  HostConnection::Read read{};
  const int error = link_.exchange(asked, file.get(), [&](HostConnection& connection) -> std::optional<int> {
    const auto got = connection.receive_data(Buffers(into), asked.request.length);
    if (!got) return {};
    read = *got;
    return 0;
  });
  if (error != 0) return Result::failure(error);
  return read.error != 0 ? Result::failure(read.error, read.bytes) : Result::moved(read.bytes);
}

/// Returns the moved bytes also if an error follows; the next call returns the error.
Result Host::put(Handle handle, FileCall call, std::uint64_t offset, std::span<const iovec> from) {
  const bool append = call == FileCall::append;
  const auto by = [&](LentFile& lent) -> std::optional<Result> {
    if (append != lent.appends() || (append && from.size() > LentFile::kMostParts)) return {};
    return append ? lent.append(from) : lent.write(offset, from);
  };
  if (const auto lent = link_.lent().find(handle)) {
    if (const auto result = by(*lent)) return *result;
  }
  std::unique_lock lock(link_.mutex());
  const auto file = link_.find(handle);
  if (file == nullptr) return Result::failure(EBADF);
  if (const int lost = take_loss_error(*file); lost != 0) return Result::failure(lost);
  if (const auto lent = borrow(*file)) {
    lock.unlock();
    if (const auto result = by(*lent)) return *result;
    lock.lock();
    file->end = lent->end();
  }
  Asked asked;
  asked.request.call = static_cast<std::uint32_t>(call);
  asked.request.offset = append ? file->end : offset;
  return put(*file, asked, from);
}

Result Host::put(File& file, Asked asked, std::span<const iovec> from) {
  const bool append = asked.request.call == static_cast<std::uint32_t>(FileCall::append);
  asked.data = from;
  asked.data_bytes = std::min(Buffers(from).bytes(), append ? layout::kFileMaxAppend : layout::kFileMaxLength);
  asked.request.length = asked.data_bytes;
  layout::FileAnswer answer{};
  file.unflushed = true;
  const int error = link_.call(asked, &file, {}, &answer);
  if (answer.value > asked.data_bytes) return Result::failure(EIO);
  if (append && answer.position != 0) file.end = answer.position;
  return error != 0 && answer.value == 0 ? Result::failure(error) : Result::moved(answer.value);
}

Result Host::append_again(Handle handle, std::uint64_t end, std::span<const std::byte> from) {
  const iovec buffer = buffer_of(from);
  const std::lock_guard lock(link_.mutex());
  const auto file = link_.find(handle);
  if (file == nullptr) return Result::failure(EBADF);
  Asked asked;
  asked.request.call = static_cast<std::uint32_t>(FileCall::append);
  asked.request.offset = end;
  asked.request.repeated = 1;
  return put(*file, asked, std::span(&buffer, 1));
}

std::uint64_t Host::end(Handle handle) {
  FileStatus now{};
  if (status(handle, now) == 0) return now.size;
  const std::lock_guard lock(link_.mutex());
  const auto file = link_.find(handle);
  return file == nullptr ? 0 : file->end;
}

Result Host::write(Handle handle, std::uint64_t offset, std::span<const iovec> from) {
  return put(handle, FileCall::write, offset, from);
}

Result Host::append(Handle handle, std::span<const iovec> from) { return put(handle, FileCall::append, 0, from); }

Result Host::read(Handle handle, std::uint64_t offset, std::span<std::byte> into) {
  const iovec buffer = buffer_of(into);
  return read(handle, offset, std::span(&buffer, 1));
}

Result Host::write(Handle handle, std::uint64_t offset, std::span<const std::byte> from) {
  const iovec buffer = buffer_of(from);
  return write(handle, offset, std::span(&buffer, 1));
}

Result Host::append(Handle handle, std::span<const std::byte> from) {
  const iovec buffer = buffer_of(from);
  return append(handle, std::span(&buffer, 1));
}

int Host::flush(Handle handle, bool data_only) {
  // The data is in this process's own kernel: it cannot be lost in a reboot without this process.
  if (const auto lent = link_.lent().find(handle)) return lent->flush(data_only);
  const std::lock_guard lock(link_.mutex());
  const auto file = link_.find(handle);
  if (file == nullptr) return EBADF;
  if (const int lost = take_loss_error(*file); lost != 0) return lost;
  Asked asked;
  asked.request.call = static_cast<std::uint32_t>(FileCall::flush);
  asked.request.flags = data_only ? layout::kFileFlushDataOnly : 0;
  const int error = link_.call(asked, file.get());
  // A failed flush is reported once, as by the kernel.
  if (error == 0) file->unflushed = file->has_write_tickets;
  return take_loss_error(*file) != 0 ? EIO : error;
}

}  // namespace wherry::file
