// SPDX-License-Identifier: Apache-2.0
#include "file/server/server_session.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "base/log.hpp"

namespace wherry::file {
namespace {

using layout::FileAnswer;
using layout::FileCall;

/// Data of one turn. Another client of the same thread waits for about 0.1 ms.
constexpr std::size_t kTurnBytes = std::size_t{1} << 20;

/// Cost of a request, in addition to its data: 64 small requests are a turn.
constexpr std::size_t kRequestBytes = kTurnBytes / 64;

std::string string_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

ServerSession::ServerSession(Stream stream, Service& service)
    : stream_(std::move(stream)),
      service_(service),
      handles_(service.budget),
      calls_(service.tree, handles_, service.terms, service.delegations, &service.tickets, &service.lock_graph) {}

ServerSession::Next ServerSession::advance(bool crowded) noexcept {
  turn_ = kTurnBytes;
  crowded_ = crowded;
  if (watcher_) watcher_->silence();
  try {
    while (turn_ > 0) {
      switch (step()) {
        case Step::on:
          break;
        case Step::readable:
          return Next::when_readable;
        case Step::writable:
          return Next::when_writable;
        case Step::later:
          return Next::later;
        case Step::over:
          return Next::over;
      }
    }
  } catch (const std::exception& error) {  // no memory
    break_off(error.what());
    return Next::over;
  }
  return Next::at_once;
}

ServerSession::Step ServerSession::step() {
  if (sent_ < out_.size()) return send_out();
  switch (state_) {
    case State::following:
      return follow();
    case State::reading:
      return read_piece();
    case State::gathering:
      return gather();
    case State::writing:
      return write_piece();
    case State::copying:
      return copy_piece();
    case State::watching:
      return watch();
    default:
      return take_message();
  }
}

ServerSession::Step ServerSession::send_out() {
  const Result result = stream_.try_send(std::span<const std::byte>(out_).subspan(sent_));
  if (result.failed()) return Step::over;
  sent_ += result.bytes;
  if (sent_ < out_.size()) return Step::writable;
  out_.clear();
  sent_ = 0;
  if (state_ == State::requests) pass(service_.at, FaultPoint::answered);
  return Step::on;
}

/// Receives a header and its names, but no data.
ServerSession::Step ServerSession::take_message() {
  while (have_ < need_) {
    const Result result = stream_.try_receive(std::span(in_).subspan(have_, need_ - have_));
    if (result.would_block()) return Step::readable;
    if (!result.ok()) return Step::over;
    have_ += result.bytes;
    if (have_ < need_ || have_ != sizeof(layout::FileRequest) || state_ == State::greeting) continue;
    std::memcpy(&request_.header, in_.data(), sizeof request_.header);
    if (!is_valid(request_.header)) return break_off("malformed request");
    need_ += request_.header.name_bytes + request_.header.second_bytes;
  }
  have_ = 0;
  need_ = sizeof(layout::FileRequest);
  return state_ == State::greeting ? greet() : begin();
}

ServerSession::Step ServerSession::greet() {
  layout::FileHello hello;
  std::memcpy(&hello, in_.data(), sizeof hello);
  if (hello.magic != layout::kFileMagic) return break_off("not a client of wherry serve");
  if (hello.version != layout::kFileVersion) return break_off("another version of Wherry");
  calls_.set_client(hello.client);
  if (hello.client != 0) member_.emplace(service_.processes, hello.client, hello.process);
  state_ = State::following;
  return Step::on;
}

/// Waits, since another thread may still serve requests of an earlier process of the client.
ServerSession::Step ServerSession::follow() {
  if (nothing_came() == Step::over) return Step::over;
  if (member_ && member_->has_earlier()) return Step::later;
  const auto bytes = std::as_bytes(std::span(&service_.hello, 1));
  out_.assign(bytes.begin(), bytes.end());
  state_ = State::requests;
  return Step::on;
}

ServerSession::Step ServerSession::begin() {
  const layout::FileRequest& header = request_.header;
  const auto names = std::span(in_).subspan(sizeof header);
  request_.name = string_of(names.first(header.name_bytes));
  request_.second = string_of(names.subspan(header.name_bytes, header.second_bytes));
  pass(service_.at, FaultPoint::request_taken);
  turn_ -= std::min(turn_, kRequestBytes);
  switch (static_cast<FileCall>(header.call)) {
    case FileCall::read:
      return begin_read(handles_.find(header.handle));
    case FileCall::write:
    case FileCall::append:
      return begin_write(handles_.find(header.handle));
    case FileCall::copy:
      return begin_copy();
    case FileCall::set_xattr:
      return begin_gathering(calls_.refused(request_));
    case FileCall::await_recalls:
      return begin_watch();
    default:
      return perform();
  }
}

/// If a call that opens a file meets a lease, recalls are sent at once, and this client asks again.
ServerSession::Step ServerSession::perform() {
  const Outcome outcome = calls_.perform(request_);
  if (outcome.is_leased()) service_.delegations.look();
  answer(outcome);
  return Step::on;
}

ServerSession::Step ServerSession::begin_watch() {
  const std::uint64_t number = request_.header.offset;
  if (number == 0 && !watcher_) {
    watcher_.emplace(service_.delegations);
    answer({.value = watcher_->number()});
  } else if (number == 0 || !watcher_ || number != watcher_->number()) {
    answer({.error = EINVAL});
  } else {
    state_ = State::watching;
  }
  return Step::on;
}

ServerSession::Step ServerSession::watch() {
  const std::vector<layout::FileIdentity> recalled = watcher_->take();
  if (!recalled.empty()) {
    const auto bytes = std::as_bytes(std::span(recalled));
    answer({.value = watcher_->number(), .payload = {bytes.begin(), bytes.end()}});
    return Step::on;
  }
  std::byte early{};
  const Result result = stream_.try_receive(std::span(&early, 1));
  if (result.would_block()) return Step::readable;
  return result.ok() ? break_off("request before the last one was answered") : Step::over;
}

/// Sends the whole answer of a call that moved no data, or the last part of another one.
void ServerSession::answer(const Outcome& outcome) {
  pass(service_.at, FaultPoint::call_made);
  const FileAnswer head{.id = request_.header.id,
                        .last = 1,
                        .error = static_cast<std::uint32_t>(outcome.error),
                        .payload_bytes = static_cast<std::uint32_t>(outcome.payload.size()),
                        .value = outcome.value,
                        .position = outcome.position};
  const auto bytes = std::as_bytes(std::span(&head, 1));
  out_.assign(bytes.begin(), bytes.end());
  out_.insert(out_.end(), outcome.payload.begin(), outcome.payload.end());
  state_ = State::requests;
}

FileAnswer ServerSession::head_of(std::size_t payload, bool last) const {
  return {.id = request_.header.id,
          .last = last ? 1U : 0U,
          .error = 0,
          .payload_bytes = static_cast<std::uint32_t>(payload),
          .value = 0,
          .position = crowded_ ? layout::kFileServerShared : 0};
}

/// Called if expected data has not arrived: returns whether it still can.
ServerSession::Step ServerSession::nothing_came() {
  return stream_.try_receive(std::span<std::byte>()).ok() ? Step::readable : Step::over;
}

ServerSession::Step ServerSession::break_off(const char* why) {
  service_.warnings.write(log::Level::warning, "wherry serve: closes the connection of process " +
                                                   std::to_string(stream_.peer().pid) + ": " + why);
  return Step::over;
}

}  // namespace wherry::file
