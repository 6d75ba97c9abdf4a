// SPDX-License-Identifier: Apache-2.0
#include "file/client/host_connection.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/machine.hpp"
#include "file/client/lent_file.hpp"
#include "file/wire/hello.hpp"

namespace wherry::file {
namespace {

using layout::FileAnswer;

/// Data is sent in pieces of whole pages, which the server writes as they are. 64 KiB is below the size from which a
/// stream splits a message, so the server never receives into a buffer of its own.
constexpr std::size_t kPiece = std::size_t{64} << 10;

/// The longest payload of an answer.
constexpr std::size_t kMostPayload = std::size_t{1} << 20;

}  // namespace

std::uint64_t Buffers::bytes() const {
  std::uint64_t sum = 0;
  for (const iovec& buffer : rest_) sum += buffer.iov_len;
  return sum - done_;
}

std::span<std::byte> Buffers::front(std::size_t most) const {
  if (rest_.empty()) return {};
  return {static_cast<std::byte*>(rest_[0].iov_base) + done_, std::min(most, rest_[0].iov_len - done_)};
}

void Buffers::skip(std::size_t bytes) {
  done_ += bytes;
  while (!rest_.empty() && done_ == rest_[0].iov_len) {
    rest_ = rest_.subspan(1);
    done_ = 0;
  }
}

StreamConnection::StreamConnection(const std::string& address, std::size_t ring_bytes, AtFaultPoint at,
                                   Timeout listener_wait, Timeout timeout, const ClientProcess& process)
    : stream_(start_connect(address, {.ring_bytes = ring_bytes}, listener_wait).finish(timeout)), at_(std::move(at)) {
  layout::FileHello hello{};
  hello.version = layout::kFileVersion;
  hello.magic = layout::kFileMagic;
  hello.client = process.client;
  hello.process = process.number;
  const auto bytes = std::as_bytes(std::span(&hello, 1));
  const Timeout most = timeout.value_or(kGreeting);
  const auto greeting = std::as_writable_bytes(std::span(&hello_, 1));
  const bool answered = stream_.send(bytes, most).ok() && stream_.receive_all(greeting, most).ok();
  if (!answered) throw Error(ECONNRESET, "connect", address, "check that wherry serve listens there, and read its log");
  if (hello_.magic != layout::kFileMagic || hello_.version != layout::kFileVersion) {
    throw Error(EPROTO, "connect", address, "run wherry serve of the same version there");
  }
  // A process number that the operating system does not vouch for may be another process here.
  const bool vouched = stream_.peer().vouched() && is_own_kernel(boot_id_of(hello_));
  if (hello_.lends != 0 && vouched) lender_ = LentFile::process(stream_.peer().pid);
  if (hello_.root != 0 && lender_.valid() && LentFile::is_refused(lender_.get(), hello_.root - 1)) lender_.reset();
}

bool StreamConnection::send(layout::FileRequest request, std::string_view name, std::string_view second, Buffers data,
                            std::uint64_t data_bytes) {
  request.id = ++id_;
  request.name_bytes = static_cast<std::uint32_t>(name.size());
  request.second_bytes = static_cast<std::uint32_t>(second.size());
  const std::array<iovec, 3> parts{{{&request, sizeof request},
                                    {const_cast<char*>(name.data()), name.size()},
                                    {const_cast<char*>(second.data()), second.size()}}};
  if (!send_all(parts)) return false;
  pass(at_, FaultPoint::request_sent);
  while (data_bytes > 0) {
    const auto piece = data.front(std::min<std::uint64_t>(data_bytes, kPiece));
    const iovec part{piece.data(), piece.size()};
    if (piece.empty() || !(copy_ != nullptr ? send_copied(piece) : send_all(std::span(&part, 1)))) return false;
    data.skip(piece.size());
    data_bytes -= piece.size();
    pass(at_, FaultPoint::data_sent);
  }
  return true;
}

/// After an incomplete result: whether to stop waiting.
bool StreamConnection::is_over(const Result& result) const {
  return !result.failed() || result.error != ETIMEDOUT || !may_wait_();
}

bool StreamConnection::send_all(std::span<const iovec> parts) {
  if (!may_wait_) return stream_.send(parts).ok();
  Buffers left(parts);
  for (auto part = left.front(SIZE_MAX); !part.empty(); part = left.front(SIZE_MAX)) {
    const Result sent = stream_.send(part, kStall);
    if (!sent.ok() && is_over(sent)) return false;
    left.skip(sent.bytes);
  }
  return true;
}

bool StreamConnection::receive_all(std::span<std::byte> bytes) {
  if (!may_wait_) return stream_.receive_all(bytes).ok();
  while (!bytes.empty()) {
    const Result got = stream_.receive_all(bytes, kStall);
    if (!got.ok() && is_over(got)) return false;
    bytes = bytes.subspan(got.bytes);
  }
  return true;
}

/// Copies straight into the server's ring.
bool StreamConnection::send_copied(std::span<const std::byte> data) {
  while (!data.empty()) {
    const Regions room = stream_.reserve(data.size());
    if (room.empty()) {
      const Result ready = stream_.wait_writable(data.size(), longest_wait());
      if (!ready.ok() && is_over(ready)) return false;
      continue;
    }
    for (const auto region : {room.first, room.second}) {
      if (!region.empty() && !copy_(region.data(), data.data(), region.size())) return false;
      data = data.subspan(region.size());
    }
    if (!stream_.commit(room.size()).ok()) return false;
  }
  return true;
}

/// Copies straight out of this side's ring. Drops the data once some of a buffer was not accessible.
bool StreamConnection::receive_copied(std::span<std::byte> room, bool& is_accessible) {
  while (!room.empty()) {
    const ConstRegions seen = stream_.peek(room.size());
    if (seen.empty()) {
      const Result ready = stream_.wait_readable(longest_wait());
      if (!ready.ok() && is_over(ready)) return false;
      continue;
    }
    for (const auto region : {seen.first, seen.second}) {
      if (!region.empty()) is_accessible = is_accessible && copy_(room.data(), region.data(), region.size());
      room = room.subspan(region.size());
    }
    if (!stream_.consume(seen.size()).ok()) return false;
  }
  return true;
}

std::optional<FileAnswer> StreamConnection::receive_head() {
  FileAnswer head;
  if (!receive_all(std::as_writable_bytes(std::span(&head, 1)))) return {};
  // No system has an error number above 4095.
  if (head.id != id_ || head.last > 1 || head.error > 4095 || head.payload_bytes > kMostPayload) return {};
  pass(at_, FaultPoint::answer_begun);
  return head;
}

std::optional<FileAnswer> StreamConnection::receive(std::span<std::byte> payload) {
  const auto head = receive_head();
  if (!head || head->last == 0) return {};
  if (head->payload_bytes != (head->error == 0 ? payload.size() : 0)) return {};
  if (head->payload_bytes != 0 && !receive_all(payload)) return {};
  return head;
}

std::optional<FileAnswer> StreamConnection::receive(std::vector<std::byte>& payload, std::size_t most) {
  const auto head = receive_head();
  if (!head || head->last == 0 || head->payload_bytes > most) return {};
  payload.resize(head->payload_bytes);
  if (!payload.empty() && !receive_all(payload)) return {};
  return head;
}

/// Copies each piece out of the ring straight into the buffers.
std::optional<HostConnection::Read> StreamConnection::receive_data(Buffers into, std::uint64_t length) {
  std::uint64_t moved = 0;
  bool is_accessible = true;
  while (true) {
    const auto head = receive_head();
    if (!head || head->payload_bytes > length - moved) return {};
    if (head->last == 0 && head->payload_bytes == 0) return {};
    std::size_t left = head->payload_bytes;
    moved += left;
    while (left > 0) {
      const auto room = into.front(std::min(left, kPiece));
      if (room.empty() || !(copy_ != nullptr ? receive_copied(room, is_accessible) : receive_all(room))) return {};
      into.skip(room.size());
      left -= room.size();
    }
    if (head->last != 0) return Read{moved, is_accessible ? static_cast<int>(head->error) : EFAULT, head->position};
  }
}

}  // namespace wherry::file
