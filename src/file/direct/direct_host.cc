// SPDX-License-Identifier: Apache-2.0
#include "file/direct/direct_host.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <utility>

#include "file/wire/hello.hpp"

namespace wherry::file {
namespace {

using layout::FileCall;

/// The server serves the mount at this time, so it is running.
constexpr std::chrono::seconds kConnectTimeout{2};

layout::FileRequest request_of(FileCall call, std::uint64_t handle) {
  layout::FileRequest request{};
  request.call = static_cast<std::uint32_t>(call);
  request.handle = handle;
  return request;
}

/// Bytes of one request. Other threads' transfers on the connection wait for its end.
constexpr std::size_t kMostPart = std::size_t{16} << 20;

iovec buffer_of(std::span<const std::byte> bytes) { return {const_cast<std::byte*>(bytes.data()), bytes.size()}; }

}  // namespace

DirectHost::DirectHost(const std::string& address, const Caller& caller)
    : connection_(
          std::make_unique<StreamConnection>(address, 0, AtFaultPoint(), StreamConnection::kNoWait, kConnectTimeout)),
      first_laps_{2 * connection_->receive_capacity(), 2 * connection_->send_capacity()},
      boot_(boot_id_of(connection_->server())) {
  connection_->set_wait_check(caller.may_wait);
  connection_->set_copy(caller.copy);
}

void DirectHost::break_off() {
  broken_.store(true, std::memory_order_relaxed);
  connection_.reset();
}

/// If another thread uses the connection, that thread closes the handles after its turn.
void DirectHost::close_left() noexcept {
  while (true) {
    {
      const std::lock_guard lock(left_mutex_);
      if (left_.empty()) return;
    }
    const std::unique_lock turn(mutex_, std::try_to_lock);
    if (!turn.owns_lock()) return;
    std::vector<std::uint64_t> left;
    {
      const std::lock_guard lock(left_mutex_);
      left.swap(left_);
    }
    for (const std::uint64_t handle : left) (void)ask(request_of(FileCall::close, handle), {}, {}, {});
  }
}

std::optional<layout::FileAnswer> DirectHost::ask(const layout::FileRequest& request, std::string_view second,
                                                  std::span<const std::byte> data, std::span<std::byte> payload) {
  if (connection_ == nullptr) return {};
  const iovec buffer = buffer_of(data);
  std::optional<layout::FileAnswer> answer;
  if (connection_->send(request, {}, second, Buffers(std::span(&buffer, 1)), data.size()))
    answer = connection_->receive(payload);
  if (!answer) break_off();
  return answer;
}

int DirectHost::open(const layout::FileTicket& ticket, std::unique_ptr<File>& file) {
  const Turn turn(*this);
  const std::string_view second(reinterpret_cast<const char*>(&ticket), sizeof ticket);
  layout::FileStatus status{};
  const auto answer =
      ask(request_of(FileCall::open_ticket, 0), second, {}, std::as_writable_bytes(std::span(&status, 1)));
  if (!answer) return ECONNRESET;
  if (answer->error != 0) return static_cast<int>(answer->error);
  file = std::make_unique<File>(*this, answer->value);
  return 0;
}

DirectHost::File::~File() {
  {
    const std::lock_guard lock(host_.left_mutex_);
    host_.left_.push_back(handle_);
  }
  host_.close_left();
}

Result DirectHost::File::read_part(std::uint64_t offset, std::span<std::byte> into) {
  const Turn turn(host_);
  if (host_.connection_ == nullptr) return Result::failure(ECONNRESET);
  layout::FileRequest request = request_of(FileCall::read, handle_);
  request.offset = offset;
  request.length = into.size();
  const iovec room = buffer_of(into);
  std::optional<HostConnection::Read> got;
  if (host_.connection_->send(request, {}, {}, Buffers({}), 0))
    got = host_.connection_->receive_data(Buffers(std::span(&room, 1)), request.length);
  if (!got) {
    host_.break_off();
    return Result::failure(ECONNRESET);
  }
  host_.shared_.store((got->position & layout::kFileServerShared) != 0, std::memory_order_relaxed);
  host_.moved_[0].fetch_add(got->bytes, std::memory_order_relaxed);
  return got->error != 0 ? Result::failure(got->error) : Result::moved(got->bytes);
}

Result DirectHost::File::read(std::uint64_t offset, std::span<std::byte> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const std::size_t length = std::min(into.size() - done, kMostPart);
    const Result got = read_part(offset + done, into.subspan(done, length));
    if (!got.ok()) return got;
    done += got.bytes;
    if (got.bytes < length) break;
  }
  return Result::moved(done);
}

Result DirectHost::File::write_part(std::uint64_t offset, std::span<const std::byte> from) {
  const Turn turn(host_);
  layout::FileRequest request = request_of(FileCall::write, handle_);
  request.offset = offset;
  request.length = from.size();
  const auto answer = host_.ask(request, {}, from, {});
  if (!answer) return Result::failure(ECONNRESET);
  if (answer->error != 0) return Result::failure(static_cast<int>(answer->error));
  host_.moved_[1].fetch_add(from.size(), std::memory_order_relaxed);
  host_.shared_.store((answer->position & layout::kFileServerShared) != 0, std::memory_order_relaxed);
  if ((answer->position & layout::kFileHasSetId) != 0) has_set_id_.store(true, std::memory_order_relaxed);
  return answer->value == from.size() ? Result::moved(from.size()) : Result::failure(EIO);
}

Result DirectHost::File::write(std::uint64_t offset, std::span<const std::byte> from) {
  std::size_t done = 0;
  while (done < from.size()) {
    const Result put = write_part(offset + done, from.subspan(done, std::min(from.size() - done, kMostPart)));
    if (!put.ok()) return put;
    done += put.bytes;
  }
  return Result::moved(done);
}

}  // namespace wherry::file
