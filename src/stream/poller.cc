// SPDX-License-Identifier: Apache-2.0
#include "stream/poller.hpp"

#include <sys/epoll.h>

#include <cerrno>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/not_cancelled.hpp"
#include "base/refused_call.hpp"
#include "stream/impl.hpp"

namespace wherry {
namespace {

using fabric::Bell;

/// A stream is armed after this many looks that found nothing: together they have cost about as much as arming, a ring
/// and a wake-up.
constexpr unsigned kLooksBeforeIdle = 128;

/// While active streams keep a poller busy, it asks the kernel about the others this often; the clock is read once per
/// kReportsPerClock reports. A call takes about 0.3 us.
constexpr std::chrono::microseconds kAskInterval{20};
constexpr unsigned kReportsPerClock = 8;

/// While the poller spins and finds nothing, it asks the kernel once per this many looks: every few microseconds.
constexpr std::size_t kLooksPerAsk = 128;

/// Length of a sleep if the kernel refuses epoll_wait.
constexpr std::chrono::milliseconds kTick{1};

/// Most events taken by one call; the next call finds the others.
constexpr std::size_t kEvents = 64;

}  // namespace

Poller::Impl::Impl()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), interruption_{Source::Kind::interruption, bell_.descriptor(), 0} {
  if (!epoll_.valid()) throw Error(errno, "make a poller", "", advice_on(errno, "epoll_create1"));
  enter(interruption_);
}

Poller::Impl::~Impl() {
  while (!active_.empty()) forget(active_.front());
  while (!idle_.empty()) forget(idle_.front());
}

void Poller::Impl::enter(Source& source) {
  epoll_event event{.events = EPOLLIN, .data = {.ptr = &source}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, source.descriptor, &event) == 0) return;
  const int error = errno;
  std::string advice = advice_on(error, "epoll_ctl");
  if (error == EPERM) advice = "a file of this kind is always ready: there is nothing to wait for";
  if (error == EBADF) advice = "it must be open";
  throw Error(error, "add descriptor " + std::to_string(source.descriptor) + " to a poller", "", advice);
}

void Poller::Impl::leave(const Source& source) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, source.descriptor, nullptr); }

void Poller::Impl::add(Stream::Impl& stream, Token token) {
  if (stream.receiver.watcher() != nullptr) {
    throw Error(EEXIST, "poll the stream to", stream.connection->peer().address.to_string(),
                "the stream is in a poller already; remove it there first");
  }
  // The stream starts active, so that bytes that came before are found.
  active_.emplace_back(*this, stream.receiver, stream.connection->descriptor(Bell::data), token);
  Polled& polled = active_.back();
  polled.place = std::prev(active_.end());
  try {
    enter(polled);
  } catch (...) {
    active_.pop_back();
    throw;
  }
  stream.receiver.watch(&polled);
  if (!stream.receiver.is_mapped()) ++unmapped_;
  signal_descriptor();
}

void Poller::Impl::remove(const Stream::Impl& stream) {
  auto* polled = static_cast<Polled*>(stream.receiver.watcher());
  if (polled != nullptr && &polled->poller == this) forget(*polled);
}

/// Removes a stream, before its descriptor is closed: a child's copy of it would keep it in the epoll set for ever.
void Poller::Impl::forget(Polled& polled) {
  polled.receiver.watch(nullptr);
  if (!polled.receiver.is_mapped()) --unmapped_;
  // A forked child shares the epoll set and the bell with its parent, and must change neither.
  if (!origin_.inherited()) {
    leave(polled);
    polled.receiver.take_bell_back();
  }
  (polled.active ? active_ : idle_).erase(polled.place);
}

void Poller::Impl::add(int descriptor, Token token) {
  const auto [place, added] = descriptors_.try_emplace(descriptor, Source{Source::Kind::descriptor, descriptor, token});
  if (!added)
    throw Error(EEXIST, "add descriptor " + std::to_string(descriptor) + " to a poller", "", "remove it first");
  try {
    enter(place->second);
  } catch (...) {
    descriptors_.erase(place);
    throw;
  }
}

void Poller::Impl::remove(int descriptor) {
  const auto place = descriptors_.find(descriptor);
  if (place == descriptors_.end()) return;
  if (!origin_.inherited()) leave(place->second);
  descriptors_.erase(place);
}

std::size_t Poller::Impl::wait(std::span<Token> ready, const Timeout& timeout) {
  if (ready.empty()) return 0;
  Found found{ready};
  if (!timeout || timeout->count() != 0) coalescing_.before_look();
  if (asking_is_due()) ask(found);
  look(found);
  const bool soon = found.any() || linger(found, stream::deadline_of(timeout));
  coalescing_.found(soon ? found.bytes : 0);
  reports_ += static_cast<unsigned>(found.count);
  signal_descriptor();
  return found.count;
}

/// Nothing is ready: spins, asks the kernel, and sleeps. True: something came almost at once, while spinning.
bool Poller::Impl::linger(Found& found, fabric::Deadline deadline) {
  while (true) {
    const bool over = stream::has_passed(deadline);
    const bool may_be_ready = !over && spin(found, deadline);
    if (!may_be_ready) ask(found);
    look(found);
    if (found.any() || interrupted_.exchange(false)) return may_be_ready && spin_.came_soon();
    // Inside another event loop all streams are armed before this returns; otherwise the next wait looks at them.
    if (over && !nested_) return false;
    if (may_be_ready || !arm_all()) continue;
    silence_descriptor();
    if (over || interrupted_.exchange(false)) return false;
    sleep(found, deadline);
    look(found);
    if (found.any()) return false;
  }
}

/// Polls the active streams for the spin budget. True: something may be ready.
bool Poller::Impl::spin(Found& found, fabric::Deadline deadline) {
  if (active_.empty() || (unmapped_ != 0 && !progress_all())) return false;
  std::size_t looks = 0;
  const bool may_be_ready = spin_.look(
      [&] {
        if (unmapped_ != 0) (void)progress_all();
        if (any_is_ready()) return true;
        looks += active_.size();
        if (looks < kLooksPerAsk) return false;
        looks = 0;
        ask(found);
        return found.any() || interrupted_.load(std::memory_order_relaxed);
      },
      deadline);
  if (unmapped_ != 0) end_progress();
  return may_be_ready;
}

/// Makes progress for active streams on put fabrics. False: polling gains nothing for one of them.
bool Poller::Impl::progress_all() const {
  bool all = true;
  for (const Polled& polled : active_) {
    if (!polled.receiver.is_mapped()) all = polled.receiver.progress() && all;
  }
  return all;
}

void Poller::Impl::end_progress() const {
  for (const Polled& polled : active_) {
    if (!polled.receiver.is_mapped()) polled.receiver.end_progress();
  }
}

bool Poller::Impl::any_is_ready() const {
  for (const Polled& polled : active_) {
    if (!polled.receiver.look().would_block()) return true;
  }
  return false;
}

/// Makes every stream idle. False: one of them has something to receive.
bool Poller::Impl::arm_all() {
  while (!active_.empty()) {
    Polled& polled = active_.front();
    if (!polled.receiver.arm_bell()) return false;
    polled.active = false;
    idle_.splice(idle_.end(), active_, polled.place);
  }
  return true;
}

/// Looks at each active stream once, without a system call.
void Poller::Impl::look(Found& found) {
  for (std::size_t left = active_.size(); left > 0 && !found.full(); --left) {
    Polled& polled = active_.front();
    active_.splice(active_.end(), active_, polled.place);
    const Result now = polled.receiver.look();
    const bool ready = !now.would_block();
    if (!ready && ++polled.idle_looks > kLooksBeforeIdle && polled.receiver.arm_bell()) {
      polled.active = false;
      idle_.splice(idle_.end(), active_, polled.place);
    }
    if (!ready) continue;
    polled.idle_looks = 0;
    found.report(polled.token, now.bytes);
  }
}

void Poller::Impl::activate(Polled& polled) {
  polled.idle_looks = 0;
  if (std::exchange(polled.active, true)) return;
  active_.splice(active_.end(), idle_, polled.place);
  signal_descriptor();
}

bool Poller::Impl::asking_is_due() {
  if (reports_ < kReportsPerClock) return false;
  reports_ = 0;
  return stream::SteadyClock::now() >= next_ask_;
}

void Poller::Impl::ask(Found& found) {
  next_ask_ = stream::SteadyClock::now() + kAskInterval;
  take_events(found, 0);
}

void Poller::Impl::sleep(Found& found, fabric::Deadline deadline) {
  if (!deadline) return take_events(found, -1);
  // For a timeout in nanoseconds: epoll_wait takes milliseconds only.
  if (fabric::wait_until_readable(epoll_.get(), deadline)) take_events(found, 0);
}

void Poller::Impl::take_events(Found& found, int timeout_ms) {
  const NotCancelled here;
  std::array<epoll_event, kEvents> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), timeout_ms);
  if (count < 0 && errno != EINTR) return poll_without_epoll(found, timeout_ms != 0);
  for (int i = 0; i < count; ++i) {
    Source& source = *static_cast<Source*>(events[static_cast<std::size_t>(i)].data.ptr);
    switch (source.kind) {
      case Source::Kind::interruption:
        if (!signalled_) bell_.silence();
        break;
      case Source::Kind::descriptor:
        if (!found.full()) found.report(source.token, 0);
        break;
      case Source::Kind::stream:
        auto& polled = static_cast<Polled&>(source);
        polled.receiver.on_bell();
        activate(polled);
        break;
    }
  }
}

/// Treats everything as possibly ready, because the kernel refuses epoll_wait (a seccomp filter).
void Poller::Impl::poll_without_epoll(Found& found, bool after_a_tick) {
  if (after_a_tick) std::this_thread::sleep_for(kTick);
  while (!idle_.empty()) {
    idle_.front().receiver.on_bell();
    activate(idle_.front());
  }
  std::vector<pollfd> polled;
  for (const auto& [descriptor, source] : descriptors_) {
    polled.push_back({.fd = descriptor, .events = POLLIN, .revents = 0});
  }
  if (!polled.empty()) (void)fabric::wait_for_events(polled, stream::SteadyClock::now() + kTick);
  for (const pollfd& entry : polled) {
    if (entry.revents != 0 && !found.full()) found.report(descriptors_.at(entry.fd).token, 0);
  }
}

void Poller::Impl::interrupt() {
  interrupted_.store(true);
  bell_.notify();
}

int Poller::Impl::descriptor() {
  nested_ = true;
  signal_descriptor();
  return epoll_.get();
}

/// Makes the descriptor readable while a stream is active, because the bell of an active stream is not armed.
void Poller::Impl::signal_descriptor() {
  if (!nested_ || signalled_ || active_.empty()) return;
  signalled_ = true;
  bell_.notify();
}

void Poller::Impl::silence_descriptor() {
  if (!signalled_) return;
  signalled_ = false;
  bell_.silence();
}

Poller::Poller() : impl_(std::make_unique<Impl>()) {}
Poller::Poller(Poller&&) noexcept = default;
Poller& Poller::operator=(Poller&&) noexcept = default;
Poller::~Poller() = default;

void Poller::add(Stream& stream, Token token) {
  if (!stream.is_open()) throw Error(EBADF, "poll a stream", "", "the stream is closed");
  impl_->add(*stream.impl_, token);
}

void Poller::remove(Stream& stream) noexcept {
  if (stream.is_open()) impl_->remove(*stream.impl_);
}

void Poller::add(int descriptor, Token token) { impl_->add(descriptor, token); }
void Poller::remove(int descriptor) noexcept { impl_->remove(descriptor); }

std::size_t Poller::wait(std::span<Token> ready, Timeout timeout) noexcept { return impl_->wait(ready, timeout); }
void Poller::interrupt() noexcept { impl_->interrupt(); }
int Poller::descriptor() noexcept { return impl_->descriptor(); }

}  // namespace wherry
