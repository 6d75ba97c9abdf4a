// SPDX-License-Identifier: Apache-2.0
// Calls that move no data between this process and an open file.
#include <algorithm>
#include <cerrno>

#include "file/client/bytes.hpp"
#include "file/client/host.hpp"

namespace wherry::file {
namespace {

using layout::FileCall;

constexpr auto kNothing = [](const auto& /*file*/, const layout::FileAnswer& /*answer*/) {};

}  // namespace

/// Asks an open file. Calls `then` with it after a success.
template <class Then>
int Host::call(FileCall call, Handle handle, std::uint32_t flags, std::uint64_t offset, std::uint64_t length,
               std::span<std::byte> payload, Then then) {
  const std::lock_guard lock(link_.mutex());
  const auto file = link_.find(handle);
  if (file == nullptr) return EBADF;
  Asked asked;
  asked.request.call = static_cast<std::uint32_t>(call);
  asked.request.flags = flags;
  asked.request.offset = offset;
  asked.request.length = length;
  if (call == FileCall::set_size || call == FileCall::allocate) file->unflushed = true;
  layout::FileAnswer answer{};
  const int error = link_.call(asked, file.get(), payload, &answer);
  if (error == 0) then(*file, answer);
  return error;
}

int Host::status(Handle handle, layout::FileStatus& status) {
  if (const auto lent = lend(handle)) return lent->status(status);
  return call(FileCall::status, handle, 0, 0, 0, bytes_of(status), kNothing);
}

int Host::delegate(Handle handle, std::uint64_t client, layout::FileStatus& status,
                   std::chrono::milliseconds& kept_for) {
  const std::unique_lock lock(link_.mutex(), std::try_to_lock);
  if (!lock.owns_lock()) return EBUSY;
  const auto file = link_.find(handle);
  if (file == nullptr) return EBADF;
  if (link_.connection() == nullptr && Clock::now() < delegates_from_) return ECONNRESET;
  Asked asked{.once = link_.connection() != nullptr};
  asked.request.call = static_cast<std::uint32_t>(FileCall::delegate);
  asked.request.offset = client;
  layout::FileAnswer answer{};
  const int error = link_.call(asked, file.get(), bytes_of(status), &answer);
  if (error == ECONNRESET) delegates_from_ = Clock::now() + kTryAgain;
  if (error == 0) kept_for = std::chrono::milliseconds(std::min(answer.value, layout::kFileDelegationMs));
  return error;
}

int Host::file_system(Handle handle, layout::FileSystemStatus& status) {
  return call(FileCall::file_system, handle, 0, 0, 0, bytes_of(status), kNothing);
}

int Host::set_size(Handle handle, std::uint64_t size) {
  const int error =
      call(FileCall::set_size, handle, 0, size, 0, {}, [&](File& file, const layout::FileAnswer&) { file.end = size; });
  // An earlier process's descriptor still works if the server no longer has a way to the file.
  const auto lent = error == ESTALE ? link_.lent().find(handle) : nullptr;
  return lent == nullptr ? error : lent->set_size(size);
}

int Host::set_mode(Handle handle, std::uint32_t mode) {
  if (const auto lent = link_.read_only() ? nullptr : lend(handle)) return lent->set_mode(mode);
  const std::lock_guard lock(link_.mutex());
  const auto file = link_.find(handle);
  if (file == nullptr) return EBADF;
  Asked asked;
  asked.request.call = static_cast<std::uint32_t>(FileCall::set_mode);
  asked.request.mode = mode;
  return link_.call(asked, file.get());
}

int Host::set_owner(Handle handle, std::uint32_t user, std::uint32_t group) {
  if (const auto lent = link_.read_only() ? nullptr : lend(handle)) return lent->set_owner(user, group);
  return call(FileCall::set_owner, handle, 0, user, group, {}, kNothing);
}

int Host::set_times(Handle handle, const layout::FileTimes& times) {
  if (const auto lent = link_.read_only() ? nullptr : lend(handle)) return lent->set_times(times);
  const std::lock_guard lock(link_.mutex());
  const auto file = link_.find(handle);
  if (file == nullptr) return EBADF;
  Asked asked{.second = text_of(std::as_bytes(std::span(&times, 1)))};
  asked.request.call = static_cast<std::uint32_t>(FileCall::set_times);
  return link_.call(asked, file.get());
}

Result Host::copy(Handle from, std::uint64_t offset, Handle to, std::uint64_t to_offset, std::uint64_t length) {
  const std::lock_guard lock(link_.mutex());
  const auto file = link_.find(from);
  const auto target = link_.find(to);
  if (file == nullptr || target == nullptr) return Result::failure(EBADF);
  if (const int lost = take_loss_error(*target); lost != 0) return Result::failure(lost);
  Asked asked{.target = target.get(), .copy = {.handle = 0, .offset = to_offset}};
  asked.request.call = static_cast<std::uint32_t>(FileCall::copy);
  asked.request.offset = offset;
  asked.request.length = std::min(length, layout::kFileMaxLength);
  target->unflushed = true;
  layout::FileAnswer answer{};
  const int error = link_.call(asked, file.get(), {}, &answer);
  if (answer.value > asked.request.length) return Result::failure(EIO);
  return error != 0 && answer.value == 0 ? Result::failure(error) : Result::moved(answer.value);
}

int Host::allocate(Handle handle, std::uint32_t flags, std::uint64_t offset, std::uint64_t length) {
  return call(FileCall::allocate, handle, flags, offset, length, {}, kNothing);
}

int Host::seek(Handle handle, std::uint64_t offset, layout::FileSeek what, std::uint64_t& found) {
  return call(FileCall::seek, handle, static_cast<std::uint32_t>(what), offset, 0, {},
              [&](const File&, const layout::FileAnswer& answer) { found = answer.position; });
}

}  // namespace wherry::file
