// SPDX-License-Identifier: Apache-2.0
// wherry/message.h: publishers and subscribers. Templates implement the calls that both have.
#include <cerrno>
#include <utility>

#include <wherry/wherry.h>
#include <wherry/message.hpp>

#include "capi/boundary.hpp"
#include "capi/held.hpp"

namespace {

using wherry::Loan;
using wherry::Message;
using wherry::NotCancelled;
using wherry::Overflow;
using wherry::Publisher;
using wherry::PublisherOptions;
using wherry::Result;
using wherry::Subscriber;
using wherry::SubscriberOptions;
using wherry::capi::bad_options;
using wherry::capi::configurable_timeout_of;
using wherry::capi::copy_text;
using wherry::capi::destroy;
using wherry::capi::done_or_error;
using wherry::capi::good;
using wherry::capi::Held;
using wherry::capi::message_or_end;
using wherry::capi::missing_argument;
using wherry::capi::no_handle;
using wherry::capi::peer_of;
using wherry::capi::set_up;
using wherry::capi::timeout_of;

static_assert(WHERRY_OVERFLOW_WAIT == static_cast<int>(Overflow::wait));
static_assert(WHERRY_OVERFLOW_DROP_OLDEST == static_cast<int>(Overflow::drop_oldest));

Publisher* of(wherry_publisher handle) { return static_cast<Publisher*>(handle.impl); }
Subscriber* of(wherry_subscriber handle) { return static_cast<Subscriber*>(handle.impl); }

/// Calls `call` with the object of a handle.
template <class Handle, class Call>
int with(Handle handle, Call&& call) {
  if (handle.impl == nullptr) return no_handle();
  return set_up([&] { return call(*of(handle)); });
}

template <class Handle>
int listen(Handle handle, const char* address) {
  if (address == nullptr) return missing_argument();
  return with(handle, [&](auto& on) {
    on.listen(address);
    return 0;
  });
}

template <class Handle>
int connect(Handle handle, const char* address, int64_t timeout_ns) {
  if (address == nullptr) return missing_argument();
  return with(handle, [&](auto& on) {
    on.connect(address, configurable_timeout_of(timeout_ns));
    return 0;
  });
}

template <class Handle>
int start_connect(Handle handle, const char* address, int64_t timeout_ns) {
  if (address == nullptr) return missing_argument();
  return with(handle, [&](auto& on) {
    on.start_connect(address, configurable_timeout_of(timeout_ns));
    return 0;
  });
}

/// The number of peers fits into an int: there are fewer peers than descriptors.
template <class Handle>
int64_t admit(Handle handle, size_t wanted, int64_t timeout_ns) {
  return with(handle, [&](auto& on) { return static_cast<int>(on.admit(wanted, timeout_of(timeout_ns))); });
}

template <class Handle>
int descriptor(Handle handle) {
  return with(handle, [](auto& on) { return on.descriptor(); });
}

template <class Handle>
int cancel(Handle handle) {
  if (handle.impl == nullptr) return -EBADF;
  const NotCancelled here;
  of(handle)->cancel();
  return 0;
}

template <class Handle>
int address_of(Handle handle, char* text, size_t size) {
  if (!good(text, size)) return missing_argument();
  return with(handle, [&](auto& on) { return copy_text(on.local().to_string(), text, size); });
}

/// Calls `call`, which moves data, with the publisher and the loan of a C struct.
template <class Call>
int with_loan(wherry_publisher publisher, wherry_loan* loan, Call&& call) {
  if (publisher.impl == nullptr) return -EBADF;
  if (loan == nullptr) return -EINVAL;
  const NotCancelled here;
  Loan held = Held::take(*loan);
  const Result result = call(*of(publisher), held);
  Held::put(std::move(held), *loan);
  return done_or_error(result);
}

template <class Call>
int with_message(wherry_subscriber subscriber, wherry_message* message, Call&& call) {
  if (subscriber.impl == nullptr) return -EBADF;
  if (message == nullptr) return -EINVAL;
  const NotCancelled here;
  Message held = Held::take(*message);
  const Result result = call(*of(subscriber), held);
  Held::put(std::move(held), *message);
  return message_or_end(result);
}

}  // namespace

int wherry_publisher_open(const struct wherry_publisher_options* options, wherry_publisher* publisher) {
  if (publisher == nullptr) return missing_argument();
  PublisherOptions wanted;
  if (options != nullptr) {
    if ((options->flags & ~WHERRY_PREFAULT) != 0 || options->reserved != 0) return bad_options();
    wanted = {.pool_bytes = options->pool_bytes, .prefault = (options->flags & WHERRY_PREFAULT) != 0};
  }
  return set_up([&] {
    publisher->impl = new Publisher(wanted);
    return 0;
  });
}

void wherry_publisher_close(wherry_publisher publisher) { destroy(of(publisher)); }

int wherry_publisher_listen(wherry_publisher publisher, const char* address) { return listen(publisher, address); }

int wherry_publisher_connect(wherry_publisher publisher, const char* address, int64_t timeout_ns) {
  return connect(publisher, address, timeout_ns);
}

int wherry_publisher_start_connect(wherry_publisher publisher, const char* address, int64_t timeout_ns) {
  return start_connect(publisher, address, timeout_ns);
}

int64_t wherry_publisher_admit(wherry_publisher publisher, size_t wanted, int64_t timeout_ns) {
  return admit(publisher, wanted, timeout_ns);
}

int wherry_publisher_loan(wherry_publisher publisher, size_t size, int64_t timeout_ns, wherry_loan* loan) {
  return with_loan(publisher, loan,
                   [&](Publisher& from, Loan& into) { return from.loan(into, size, timeout_of(timeout_ns)); });
}

int wherry_publisher_try_loan(wherry_publisher publisher, size_t size, wherry_loan* loan) {
  return with_loan(publisher, loan, [&](Publisher& from, Loan& into) { return from.try_loan(into, size); });
}

int wherry_loan_shorten(wherry_loan* loan, size_t size) {
  if (loan == nullptr || loan->pool == nullptr || size > loan->size) return -EINVAL;
  loan->size = size;
  return 0;
}

void wherry_loan_release(wherry_loan* loan) {
  if (loan == nullptr) return;
  const NotCancelled here;
  Held::take(*loan).release();
}

int wherry_publisher_publish(wherry_publisher publisher, wherry_loan* loan, int64_t timeout_ns) {
  return with_loan(publisher, loan,
                   [&](Publisher& by, Loan& held) { return by.publish(held, timeout_of(timeout_ns)); });
}

int wherry_publisher_try_publish(wherry_publisher publisher, wherry_loan* loan) {
  return with_loan(publisher, loan, [](Publisher& by, Loan& held) { return by.try_publish(held); });
}

int wherry_publisher_descriptor(wherry_publisher publisher) { return descriptor(publisher); }
int wherry_publisher_cancel(wherry_publisher publisher) { return cancel(publisher); }

int64_t wherry_publisher_subscribers(wherry_publisher publisher) {
  return publisher.impl == nullptr ? -EBADF : static_cast<int64_t>(of(publisher)->subscribers());
}

int wherry_publisher_address(wherry_publisher publisher, char* text, size_t size) {
  return address_of(publisher, text, size);
}

int64_t wherry_publisher_pool_bytes(wherry_publisher publisher) {
  return publisher.impl == nullptr ? -EBADF : static_cast<int64_t>(of(publisher)->pool_bytes());
}

int wherry_subscriber_open(const struct wherry_subscriber_options* options, wherry_subscriber* subscriber) {
  if (subscriber == nullptr) return missing_argument();
  SubscriberOptions wanted;
  if (options != nullptr) {
    if ((options->flags & ~WHERRY_PREFAULT) != 0 || options->overflow > WHERRY_OVERFLOW_DROP_OLDEST ||
        options->reserved[0] != 0 || options->reserved[1] != 0) {
      return bad_options();
    }
    if (options->queue != 0) wanted.queue = options->queue;
    wanted.overflow = static_cast<Overflow>(options->overflow);
    wanted.prefault = (options->flags & WHERRY_PREFAULT) != 0;
  }
  return set_up([&] {
    subscriber->impl = new Subscriber(wanted);
    return 0;
  });
}

void wherry_subscriber_close(wherry_subscriber subscriber) { destroy(of(subscriber)); }

int wherry_subscriber_listen(wherry_subscriber subscriber, const char* address) { return listen(subscriber, address); }

int wherry_subscriber_connect(wherry_subscriber subscriber, const char* address, int64_t timeout_ns) {
  return connect(subscriber, address, timeout_ns);
}

int wherry_subscriber_start_connect(wherry_subscriber subscriber, const char* address, int64_t timeout_ns) {
  return start_connect(subscriber, address, timeout_ns);
}

int64_t wherry_subscriber_admit(wherry_subscriber subscriber, size_t wanted, int64_t timeout_ns) {
  return admit(subscriber, wanted, timeout_ns);
}

int wherry_subscriber_take(wherry_subscriber subscriber, int64_t timeout_ns, wherry_message* message) {
  return with_message(subscriber, message,
                      [&](Subscriber& from, Message& into) { return from.take(into, timeout_of(timeout_ns)); });
}

int wherry_subscriber_try_take(wherry_subscriber subscriber, wherry_message* message) {
  return with_message(subscriber, message, [](Subscriber& from, Message& into) { return from.try_take(into); });
}

void wherry_message_release(wherry_message* message) {
  if (message == nullptr) return;
  const NotCancelled here;
  Held::take(*message).release();
}

int wherry_message_publisher(const wherry_message* message, struct wherry_peer* peer) {
  if (message == nullptr || message->connection == nullptr || peer == nullptr) return -EINVAL;
  *peer = peer_of(Held::publisher(*message));
  return 0;
}

int wherry_subscriber_descriptor(wherry_subscriber subscriber) { return descriptor(subscriber); }
int wherry_subscriber_cancel(wherry_subscriber subscriber) { return cancel(subscriber); }

int64_t wherry_subscriber_publishers(wherry_subscriber subscriber) {
  return subscriber.impl == nullptr ? -EBADF : static_cast<int64_t>(of(subscriber)->publishers());
}

int64_t wherry_subscriber_dropped(wherry_subscriber subscriber) {
  return subscriber.impl == nullptr ? -EBADF : static_cast<int64_t>(of(subscriber)->dropped());
}

int wherry_subscriber_address(wherry_subscriber subscriber, char* text, size_t size) {
  return address_of(subscriber, text, size);
}
