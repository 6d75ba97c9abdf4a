// SPDX-License-Identifier: Apache-2.0
#include "server.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include <wherry/poller.hpp>

#include "base/fork_generation.hpp"
#include "buffer_allocator.hpp"
#include "events.hpp"

namespace wherry::root {
namespace {

constexpr StreamOptions kStreamOptions{.ring_bytes = kControlRing, .windows = true};
constexpr Poller::Token kListenerToken = 0;  // sessions count from 1
/// Messages that are received from one worker before the next worker's turn.
constexpr std::size_t kTurn = 16;
/// A worker sends at most two messages for each of its files before it has to wait for an answer.
constexpr std::size_t kMessagesPerFile = 2;

ServerOptions checked(ServerOptions options) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const bool good = options.unit != 0 && options.unit % page == 0 && options.least != 0 && options.least % page == 0 &&
                    options.max_file >= options.unit && options.max_file <= std::size_t{1} << 40 &&
                    options.leases_per_worker >= 1 && options.leases_per_worker <= 64 &&
                    options.files_per_worker >= 1 && options.files_per_worker <= 64 &&
                    options.longest_stall.count() >= 0;
  if (!good) {
    throw Error(EINVAL, "serve files", "",
                "unit and least must be multiples of the page size, max_file at least a unit and at most 1 TiB, "
                "leases_per_worker and files_per_worker 1 to 64, longest_stall not negative");
  }
  options.max_file = options.max_file / options.unit * options.unit;
  if (options.leases_at_once == 0) {
    // Three per processor: one is filled, the others wait to be read or are being read.
    options.leases_at_once = std::max<std::size_t>(6, std::size_t{3} * std::thread::hardware_concurrency());
  }
  return options;
}

/// Leaks the object in a forked child. The child has no server thread and must send nothing to workers, so its copies
/// are never destroyed.
template <class Impl>
std::unique_ptr<Impl> own(std::unique_ptr<Impl> impl) {
  if (impl != nullptr && impl->origin.inherited()) static_cast<void>(impl.release());
  return impl;
}

}  // namespace

class WindowServer::Impl {
 public:
  Impl(std::string_view address, ServerOptions options)
      : files_per_worker_(options.files_per_worker),
        listener_(listen(address, kStreamOptions)),
        allocator_(std::make_shared<BufferAllocator>(checked(std::move(options)), events_)) {
    poller_.add(listener_.descriptor(), kListenerToken);
    allocator_->on_news([this] { poller_.interrupt(); });
    thread_ = std::thread([this] { run(); });
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    stop_ = true;
    poller_.interrupt();
    thread_.join();
    allocator_->close();
    sessions_.clear();
  }

  const Origin origin{};

  std::size_t settle();
  Events& events() { return events_; }
  BufferAllocator& allocator() { return *allocator_; }
  [[nodiscard]] const Address& local() const { return listener_.local(); }

 private:
  void run();
  void accept();
  void receive(std::uint64_t number, std::size_t most);
  void receive_all();
  void remove(std::uint64_t number, const std::string& reason);

  const std::size_t files_per_worker_;
  Events events_;
  Listener listener_;
  std::shared_ptr<BufferAllocator> allocator_;
  Poller poller_;
  std::map<std::uint64_t, std::shared_ptr<Session>> sessions_;  // the thread's own
  std::uint64_t last_number_ = 0;
  std::atomic<bool> stop_{false};
  std::atomic<bool> settling_{false};
  std::thread thread_;
};

void WindowServer::Impl::run() {
  std::array<Poller::Token, 64> ready{};
  while (!stop_) {
    const std::size_t count = poller_.wait(ready, allocator_->grant_over_budget());
    for (std::size_t i = 0; i < count; ++i) {
      if (ready[i] == kListenerToken) {
        accept();
      } else {
        receive(ready[i], kTurn);
      }
    }
    const bool settling = settling_;
    if (settling) receive_all();
    while (const auto session = allocator_->closing()) remove(session->worker->number, session->reason);
    if (settling) {
      settling_ = false;
      settling_.notify_one();
    }
  }
}

std::size_t WindowServer::Impl::settle() {
  settling_ = true;
  poller_.interrupt();
  settling_.wait(true);
  return events_.size();
}

void WindowServer::Impl::receive_all() {
  accept();
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, session] : sessions_) numbers.push_back(number);
  for (const std::uint64_t number : numbers) receive(number, kMessagesPerFile * files_per_worker_);
}

void WindowServer::Impl::accept() {
  try {
    while (auto stream = listener_.try_accept()) {
      const std::uint64_t number = ++last_number_;
      auto session = std::make_shared<Session>(std::move(*stream), number);
      poller_.add(session->frames.stream(), number);
      sessions_[number] = session;
      allocator_->join(number, session);
    }
  } catch (const Error&) {
    // This connection is refused; the others are not affected.
  }
}

void WindowServer::Impl::receive(std::uint64_t number, std::size_t most) {
  const auto found = sessions_.find(number);
  if (found == sessions_.end()) return;
  Session& session = *found->second;
  for (std::size_t heard = 0; heard < most; ++heard) {
    const Received received = session.frames.try_receive();
    if (received.result.would_block()) return;
    if (received.result.ended()) return remove(number, "it left without finishing");
    if (received.result.failed()) {
      return remove(number, received.result.error == ECONNRESET ? "it died" : std::strerror(received.result.error));
    }
    const auto message = parse(received.message);
    if (!message) return allocator_->drop(number, "it sent a malformed message");
    allocator_->on_message(session, *message);
  }
}

void WindowServer::Impl::remove(std::uint64_t number, const std::string& reason) {
  const auto found = sessions_.find(number);
  if (found == sessions_.end()) return;
  const auto session = std::exchange(found->second, nullptr);
  sessions_.erase(found);
  allocator_->leave(*session, std::string(reason));
  session->frames.close();
}

WindowServer::WindowServer(std::string_view address, ServerOptions options)
    : impl_(std::make_unique<Impl>(address, std::move(options))) {}
WindowServer::~WindowServer() { own(std::move(impl_)).reset(); }

std::optional<Event> WindowServer::next(Timeout timeout) { return impl_->events().next(timeout); }
void WindowServer::interrupt() noexcept { impl_->events().interrupt(); }
std::size_t WindowServer::settle() { return impl_->settle(); }
int WindowServer::descriptor() const noexcept { return impl_->events().descriptor(); }
const Address& WindowServer::local() const noexcept { return impl_->local(); }
void WindowServer::drop(std::uint64_t worker, std::string_view reason) { impl_->allocator().drop(worker, reason); }
ServerStatistics WindowServer::statistics() const { return impl_->allocator().statistics(); }

PostedFile::PostedFile() noexcept = default;
PostedFile::PostedFile(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
PostedFile::PostedFile(PostedFile&&) noexcept = default;
PostedFile& PostedFile::operator=(PostedFile&& other) noexcept {
  if (this != &other) {
    refuse("the server did not take the file");
    impl_ = std::move(other.impl_);
  }
  return *this;
}
PostedFile::~PostedFile() { refuse("the server did not take the file"); }

const Worker& PostedFile::worker() const noexcept { return *impl_->worker; }
const std::string& PostedFile::name() const noexcept { return impl_->name; }
std::span<const std::byte> PostedFile::bytes() const noexcept {
  return impl_->lease->range->memory().subspan(impl_->place, impl_->bytes);
}
std::uint64_t PostedFile::sequence() const noexcept { return impl_->sequence; }

void PostedFile::done() noexcept {
  if (auto file = own(std::move(impl_))) file->allocator->done(*file);
}

void PostedFile::refuse(std::string_view reason) noexcept {
  if (auto file = own(std::move(impl_))) file->allocator->refuse(*file, reason);
}

}  // namespace wherry::root
