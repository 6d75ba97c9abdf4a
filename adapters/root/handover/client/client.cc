// SPDX-License-Identifier: Apache-2.0
#include "client.hpp"

#include <sys/random.h>

#include <cstring>

#include "client_impl.hpp"

namespace wherry::root {
namespace {

/// If a lease holds at least this many files that are not done, a worker with a small file waits for one of them
/// instead of asking for another lease.
constexpr std::size_t kCrowd = 3;
/// A worker that needs memory waits this long for a report of several done files. Then it asks for one report per file.
constexpr std::chrono::milliseconds kCalm{20};
/// Bytes per nanosecond. A worker that writes more slowly unmaps the pages of a posted file: it may need the memory,
/// and page faults in its next file do not slow it down. A worker that only copies is faster, and keeps the pages.
constexpr std::size_t kCopying = 4;

}  // namespace

WindowClient::Impl::Impl(std::string_view address, ClientOptions options) : address_(address), options_(options) {
  if (::getrandom(id_, sizeof id_, 0) != sizeof id_) throw Error(errno, "name a worker", address_, "");
  try {
    greet();
  } catch (const Broken& broken) {
    if (options_.reconnect.count() == 0) fail(broken.error, "the server ended the connection");
    connect_again(broken);
  } catch (const Error& error) {
    // The connect may fall between the death of one server and the start of the next.
    const int code = error.code().value();
    if (options_.reconnect.count() == 0 || (code != ECONNREFUSED && code != ECONNRESET)) throw;
    connect_again(Broken{code});
  }
}

std::span<std::byte> WindowClient::Impl::grow(std::size_t bytes) {
  if (bytes > max_file_) {
    throw Error(
        EFBIG, "write a file", address_,
        "the server takes files of at most " + std::to_string(max_file_) +
            " bytes: hand over more often (TFile::Write), or let it take larger ones (wherry-merge --max-file)");
  }
  if (bytes > file().size()) persist([&] { enlarge(bytes); });
  return file();
}

std::span<std::byte> WindowClient::Impl::file() const {
  if (!begun_) return {};
  const auto free = lease_->free_from(*begun_);
  return free.first(std::min(free.size(), max_file_));
}

std::uint64_t WindowClient::Impl::post(std::string_view name, std::size_t bytes) {
  if (bytes == 0 || bytes > file().size() || name.empty() || name.size() > layout::kRootMaxName) {
    throw Error(EINVAL, "hand over a file", address_,
                "give a name of 1 to 4095 bytes, and a size of 1 byte to that of file()");
  }
  const auto now = Clock::now();
  const bool swift = last_post_ && now - *last_post_ < options_.swift;
  last_post_ = now;
  // Listed before it is sent: if the connection breaks here, resume() posts the file to the next server.
  posted_.push_back({.sequence = ++sequence_, .name = std::string(name), .bytes = bytes});
  persist([&, fresh = true]() mutable {
    if (std::exchange(fresh, false)) hand_over(posted_.back(), swift, 0);
    receive_pending();
    if (recalled_ && !begun_) leave_lease();
  });
  return sequence_;
}

void WindowClient::Impl::discard() {
  begun_.reset();
  carried_.clear();
  persist([this] { leave_lease(); });
}

void WindowClient::Impl::wait(std::size_t files) {
  persist([&] {
    if (posted_.size() > files && posted_.size() > 1) listen();
    while (posted_.size() > files) receive();
    if (recalled_ && !begun_) leave_lease();
  });
}

void WindowClient::Impl::finish() {
  wait(0);
  discard();
  // Waits for the farewell. A server that dies before it answers may not have received `finished`, and the next server
  // would wait for this worker.
  persist([this] {
    finishing_ = true;
    send(record_of(RootKind::finished));
    while (finishing_) receive();
  });
  frames_.close();
}

/// Makes the file being written at least `bytes` large. Moves it to another lease if its own is too small.
void WindowClient::Impl::enlarge(std::size_t bytes) {
  if (begun_ && is_too_small(*begun_ + bytes)) pick_up();
  reserve(bytes);
  std::copy(carried_.begin(), carried_.end(), lease_->at(*begun_));
  carried_ = {};
}

/// Gets memory for `bytes` of the file being written. Begins a file if none has begun.
void WindowClient::Impl::reserve(std::size_t bytes) {
  if (!begun_) {
    begin(bytes);
    began_ = Clock::now();
  }
  const std::size_t end = *begun_ + bytes;
  while (!lease_->files.is_free(*begun_, end)) receive_done();
  if (end > lease_->bytes) need(end);
}

void WindowClient::Impl::begin(std::size_t bytes) {
  const auto waiting = [this] {
    return std::count_if(posted_.begin(), posted_.end(), [](const Posted& file) { return file.here; });
  };
  while (static_cast<std::size_t>(waiting()) >= most_files_) receive_done();
  if (find_place(std::max(bytes, expected_))) return;
  leave_lease();
  need(std::max(bytes, std::min(end_of_place(expected_), unit_)));
  begun_ = 0;
}

/// Whether the lease ends before `end` and cannot grow.
bool WindowClient::Impl::is_too_small(std::size_t end) const { return end > lease_->bytes && lease_->bytes < unit_; }

/// Copies the file being written out of a lease that is too small, then leaves the lease. The copy comes first: other
/// workers may write into the lease once it is left.
void WindowClient::Impl::pick_up() {
  const auto written = file();
  carried_.assign(written.begin(), written.end());
  begun_.reset();
  leave_lease();
}

/// Finds a place for the next file in the first unit of the current lease. Waits for a done file if the lease is
/// crowded. False if another lease is needed.
bool WindowClient::Impl::find_place(std::size_t bytes) {
  while (lease_ && !recalled_) {
    if (is_too_small(bytes)) return false;
    begun_ = lease_->files.empty() ? 0 : lease_->files.first_fit(bytes, std::min(unit_, lease_->bytes));
    if (begun_) return true;
    if (may_have_larger() || bytes > unit_ / kCrowd || lease_->files.count() < kCrowd) return false;
    receive_done();
  }
  return false;
}

/// Whether the current lease is small and the only one that this worker holds. If the worker fills it before the server
/// has read it, the server grants a larger one next.
bool WindowClient::Impl::may_have_larger() const {
  return lease_->bytes < unit_ &&
         std::all_of(posted_.begin(), posted_.end(), [this](const Posted& file) { return file.lease == lease_; });
}

void WindowClient::Impl::need(std::size_t bytes) {
  send(record_of(RootKind::need, 0, bytes));
  needed_ = bytes;
  while (needed_ != 0) receive();
}

void WindowClient::Impl::on_grant(const ControlMessage& grant) {
  const std::uint64_t offset = grant.record.value;
  const std::uint64_t bytes = grant.record.bytes;
  if (needed_ == 0 || bytes < needed_ || bytes > max_file_ + unit_ || (lease_ && offset != lease_->offset)) {
    fail(EPROTO, "the server granted memory that this worker did not ask for");
  }
  needed_ = 0;
  if (!lease_) lease_ = std::make_shared<MappedLease>(MappedLease{.offset = offset});
  try {
    lease_->mapped = mapped_.map(frames_.stream().windows(), offset, bytes);
  } catch (const Error& error) {
    if (error.code().value() == ECONNRESET) throw Broken{ECONNRESET};
    failure_ = error;
    throw;
  }
  lease_->bytes = bytes;
  lease_->keeps = (grant.record.flags & layout::kRootKeeps) != 0;
}

/// Posts the file being written as `file`. Keeps its lease for the next file if half of the usable part stays free, and
/// if files follow soon (`swift`) or the server allows it (`keeps`).
void WindowClient::Impl::hand_over(Posted& file, bool swift, std::uint32_t flags) {
  file.place = *begun_;
  file.lease = lease_;
  file.here = true;
  lease_->files.take(file.place, file.place + file.bytes);
  begun_.reset();
  expected_ = file.bytes;
  listening_ = false;
  const bool keeps =
      (swift || lease_->keeps) && !recalled_ && 2 * end_of_place(file.bytes) <= std::min(unit_, lease_->bytes);
  if (!keeps) {
    flags |= layout::kRootLeaves;
    if (file.bytes < kCopying * static_cast<std::size_t>(std::chrono::nanoseconds(Clock::now() - began_).count())) {
      lease_->unload(file.place, file.bytes);
    }
    lease_.reset();
    recalled_ = false;
  }
  RootRecord record = record_of(RootKind::post, file.sequence, file.bytes);
  record.flags = flags;
  record.place = file.place;
  send(record, file.name);
}

void WindowClient::Impl::leave_lease() {
  if (!lease_) return;
  lease_.reset();
  recalled_ = false;
  send(record_of(RootKind::leave));
}

void WindowClient::Impl::send(const RootRecord& record, std::string_view text) {
  if (root::send(frames_, record, text).ok()) return;
  // A server sends the reason before it closes a session: receive() throws when it reads that, or the end.
  for (;;) receive();
}

/// Asks the server to report each file as soon as it is done, until the next post.
void WindowClient::Impl::listen() {
  if (!std::exchange(listening_, true)) send(record_of(RootKind::listen));
}

void WindowClient::Impl::receive() { on_message(frames_.receive()); }

void WindowClient::Impl::receive_done() {
  if (listening_) return receive();
  const Received received = frames_.receive(kCalm);
  if (received.result.failed() && received.result.error == ETIMEDOUT) return listen();
  on_message(received);
}

void WindowClient::Impl::receive_pending() {
  for (;;) {
    const Received received = frames_.try_receive();
    if (received.result.would_block()) return;
    on_message(received);
  }
}

void WindowClient::Impl::on_message(const Received& received) {
  if (!received.result.ok()) throw Broken{received.result.ended() ? ECONNRESET : received.result.error};
  const auto message = parse(received.message);
  if (!message) fail(EPROTO, "the server sent a malformed message");
  switch (message->kind()) {
    case RootKind::welcome:
      return on_welcome(*message);
    case RootKind::grant:
      return on_grant(*message);
    case RootKind::done:
      return on_done(message->record.value);
    case RootKind::recall:
      recalled_ = lease_ != nullptr;
      return;
    case RootKind::farewell:
      if (!std::exchange(finishing_, false)) fail(EPROTO, "the server sent a farewell before this worker finished");
      return;
    case RootKind::refuse:
      fail(ECANCELED, "the server closed this worker's session: " + message->text);
    default:
      fail(EPROTO, "the server sent a message of an unknown kind");
  }
}

void WindowClient::Impl::on_welcome(const ControlMessage& message) {
  constexpr std::size_t kMost = std::size_t{1} << 60;
  const RootRecord& welcome = message.record;
  number_ = welcome.flags;
  output_ = message.text;
  max_file_ = welcome.value;
  unit_ = welcome.bytes;
  most_files_ = welcome.place;
  if (unit_ == 0 || unit_ % layout::kRootPlace != 0 || unit_ > max_file_ || max_file_ > kMost || most_files_ == 0) {
    fail(EPROTO, "the server sent invalid limits");
  }
}

/// Forgets a file that the server reported done, and frees its place in the lease.
void WindowClient::Impl::on_done(std::uint64_t sequence) {
  const auto file =
      std::find_if(posted_.begin(), posted_.end(), [&](const Posted& posted) { return posted.sequence == sequence; });
  if (file == posted_.end()) return;
  if (file->here) file->lease->files.free(file->place);
  posted_.erase(file);
}

void WindowClient::Impl::fail(int error, const std::string& why) {
  std::string text = why;
  if (!posted_.empty()) text += "; files handed over but not known to be done: " + std::to_string(posted_.size());
  failure_.emplace(error, "hand over files", address_, text);
  frames_.close();
  throw Error(*failure_);
}

WindowClient::WindowClient(std::string_view address, ClientOptions options)
    : impl_(std::make_unique<Impl>(address, options)) {}
WindowClient::WindowClient(WindowClient&&) noexcept = default;
WindowClient& WindowClient::operator=(WindowClient&&) noexcept = default;
WindowClient::~WindowClient() = default;

std::span<std::byte> WindowClient::grow(std::size_t bytes) { return impl_->grow(bytes); }
std::span<std::byte> WindowClient::file() const noexcept { return impl_->file(); }
std::uint64_t WindowClient::post(std::string_view name, std::size_t bytes) { return impl_->post(name, bytes); }
void WindowClient::discard() { impl_->discard(); }
void WindowClient::wait(std::size_t files) { impl_->wait(files); }
std::size_t WindowClient::pending() const noexcept { return impl_->pending(); }
void WindowClient::finish() { impl_->finish(); }
std::size_t WindowClient::max_file() const noexcept { return impl_->max_file(); }
std::uint32_t WindowClient::number() const noexcept { return impl_->number(); }

std::string WindowClient::output_of(std::string_view name) const {
  const std::string& output = impl_->output();
  return output.ends_with('/') ? output + std::string(name.substr(name.rfind('/') + 1)) : output;
}

}  // namespace wherry::root
