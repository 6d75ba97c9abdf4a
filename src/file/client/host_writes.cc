// SPDX-License-Identifier: Apache-2.0
#include "file/client/host_writes.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "file/client/bytes.hpp"

namespace wherry::file {

using layout::FileCall;

int HostWrites::delegate(Handle handle, std::uint64_t client, layout::FileStatus& status, std::uint64_t& room) {
  room = 0;
  const std::lock_guard lock(link_.mutex());
  const auto file = link_.find(handle);
  if (file == nullptr) return EBADF;
  HostLink::Asked asked{.once = true};
  asked.request.call = static_cast<std::uint32_t>(FileCall::delegate_write);
  asked.request.offset = client;
  layout::FileAnswer answer{};
  const int error = link_.call(asked, file.get(), bytes_of(status), &answer);
  if (error == 0) room = answer.value;
  if (error == 0) file->end = status.size;
  return error;
}

int HostWrites::give_back(Handle handle) {
  const std::lock_guard lock(link_.mutex());
  const auto file = link_.find(handle);
  if (file == nullptr) return EBADF;
  HostLink::Asked asked{.once = true};  // the delegation ends with the connection
  asked.request.call = static_cast<std::uint32_t>(FileCall::return_write);
  const int error = link_.call(asked, file.get());
  return error == ECONNRESET ? 0 : error;
}

HostWrites::Written HostWrites::write(Handle handle, std::uint64_t offset, std::span<const iovec> from,
                                      std::uint32_t by) {
  const std::lock_guard lock(link_.mutex());
  const auto file = link_.find(handle);
  if (file == nullptr) return {.result = Result::failure(EBADF)};
  if (HostLink::take_loss(*file)) return {.result = Result::failure(EIO)};
  HostLink::Asked asked{.data = from};
  asked.data_bytes = std::min(Buffers(from).bytes(), layout::kFileMaxLength);
  asked.request.call = static_cast<std::uint32_t>(FileCall::write);
  asked.request.flags = layout::kFileWriteKept | by;
  asked.request.offset = offset;
  asked.request.length = asked.data_bytes;
  layout::FileAnswer answer{};
  file->unflushed = true;
  const int error = link_.call(asked, file.get(), {}, &answer);
  if (answer.value > asked.data_bytes) return {.result = Result::failure(EIO)};
  file->end = std::max(file->end, offset + answer.value);
  if (error != 0) return {.result = Result::failure(error, answer.value), .begun = answer.position != 0};
  return {.result = Result::moved(answer.value), .modified = answer.position};
}

}  // namespace wherry::file
