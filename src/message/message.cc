// SPDX-License-Identifier: Apache-2.0
// The public handles.
#include <wherry/message.hpp>

#include <cerrno>
#include <utility>

#include "message/publisher.hpp"
#include "message/subscriber.hpp"

namespace wherry {
namespace {

const Address kNoAddress{};
const Peer kNoPeer{};
constexpr Result kClosed = Result::failure(EBADF);

}  // namespace

void Loan::give_back() noexcept {
  message::Slabs* const slabs = std::exchange(slabs_, nullptr);
  bytes_ = {};
  slabs->drop(block_);
  slabs->release();
}

void Message::give_back() noexcept {
  bytes_ = {};
  std::exchange(connection_, nullptr)->release(ticket_, process_);
}

const Peer& Message::publisher() const noexcept {
  return connection_ == nullptr ? kNoPeer : connection_->connection().peer();
}

Publisher::Publisher(PublisherOptions options) : impl_(std::make_unique<Impl>(options)) {}
Publisher::Publisher(Publisher&&) noexcept = default;
Publisher& Publisher::operator=(Publisher&&) noexcept = default;
Publisher::~Publisher() = default;

void Publisher::listen(std::string_view address) { impl_->listen(Address::parse(address)); }
void Publisher::connect(std::string_view address, Timeout timeout) { impl_->connect(Address::parse(address), timeout); }
void Publisher::start_connect(std::string_view address, Timeout wait) {
  impl_->start_connect(Address::parse(address), wait);
}
std::size_t Publisher::admit(std::size_t wanted, Timeout timeout) { return impl_->admit(wanted, timeout); }

Result Publisher::lend(Loan& into, std::uint32_t block, Result result) noexcept {
  if (!result.ok()) return result;
  message::Slabs* const slabs = impl_->slabs();
  slabs->hold();
  into.slabs_ = slabs;
  into.block_ = block;
  into.bytes_ = {slabs->start(block), result.bytes};
  return result;
}

Result Publisher::loan(Loan& into, std::size_t bytes, Timeout timeout) noexcept {
  if (!impl_) return kClosed;
  into.release();
  std::uint32_t block = 0;
  const Result result = impl_->loan(block, bytes, stream::deadline_of(timeout));
  return lend(into, block, result);
}

Result Publisher::try_loan(Loan& into, std::size_t bytes) noexcept {
  if (!impl_) return kClosed;
  into.release();
  std::uint32_t block = 0;
  const Result result = impl_->try_loan(block, bytes);
  return lend(into, block, result);
}

/// Empties a loan after a publish: its block belongs to the subscribers now, or is free again.
Result Publisher::settle(Loan& loan, Result result) noexcept {
  if (!result.ok()) return result;
  std::exchange(loan.slabs_, nullptr)->release();
  loan.bytes_ = {};
  return result;
}

Result Publisher::publish(Loan& loan, Timeout timeout) noexcept {
  if (!impl_) return kClosed;
  if (!loan.held() || loan.slabs_ != impl_->slabs()) return Result::failure(EINVAL);
  return settle(loan, impl_->publish(loan.block_, loan.bytes_.size(), stream::deadline_of(timeout)));
}

Result Publisher::try_publish(Loan& loan) noexcept {
  if (!impl_) return kClosed;
  if (!loan.held() || loan.slabs_ != impl_->slabs()) return Result::failure(EINVAL);
  return settle(loan, impl_->try_publish(loan.block_, loan.bytes_.size()));
}

int Publisher::descriptor() { return impl_ ? impl_->descriptor() : -1; }
void Publisher::cancel() noexcept {
  if (impl_) impl_->cancel();
}
std::size_t Publisher::subscribers() const noexcept { return impl_ ? impl_->subscribers() : 0; }
const Address& Publisher::local() const noexcept { return impl_ ? impl_->local() : kNoAddress; }
std::size_t Publisher::pool_bytes() const noexcept { return impl_ ? impl_->pool_bytes() : 0; }

Subscriber::Subscriber(SubscriberOptions options) : impl_(std::make_unique<Impl>(options)) {}
Subscriber::Subscriber(Subscriber&&) noexcept = default;
Subscriber& Subscriber::operator=(Subscriber&&) noexcept = default;
Subscriber::~Subscriber() = default;

void Subscriber::listen(std::string_view address) { impl_->listen(Address::parse(address)); }
void Subscriber::connect(std::string_view address, Timeout timeout) {
  impl_->connect(Address::parse(address), timeout);
}
void Subscriber::start_connect(std::string_view address, Timeout wait) {
  impl_->start_connect(Address::parse(address), wait);
}
std::size_t Subscriber::admit(std::size_t wanted, Timeout timeout) { return impl_->admit(wanted, timeout); }

Result Subscriber::take(Message& into, Timeout timeout) noexcept {
  if (!impl_) return kClosed;
  into.release();
  message::SubscriberConnection::Taken taken;
  const Result result = impl_->take(into.connection_, taken, stream::deadline_of(timeout));
  into.bytes_ = taken.bytes;
  into.ticket_ = taken.ticket;
  into.process_ = taken.process;
  return result;
}

Result Subscriber::try_take(Message& into) noexcept {
  if (!impl_) return kClosed;
  into.release();
  message::SubscriberConnection::Taken taken;
  const Result result = impl_->try_take(into.connection_, taken);
  into.bytes_ = taken.bytes;
  into.ticket_ = taken.ticket;
  into.process_ = taken.process;
  return result;
}

int Subscriber::descriptor() { return impl_ ? impl_->descriptor() : -1; }
void Subscriber::cancel() noexcept {
  if (impl_) impl_->cancel();
}
std::size_t Subscriber::publishers() const noexcept { return impl_ ? impl_->publishers() : 0; }
std::uint64_t Subscriber::dropped() const noexcept { return impl_ ? impl_->dropped() : 0; }
const Address& Subscriber::local() const noexcept { return impl_ ? impl_->local() : kNoAddress; }

}  // namespace wherry
