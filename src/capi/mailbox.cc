// SPDX-License-Identifier: Apache-2.0
// wherry.h: mailboxes.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include <wherry/wherry.h>
#include <wherry/mailbox.hpp>

#include "capi/boundary.hpp"

namespace {

using wherry::Address;
using wherry::Layout;
using wherry::Mailbox;
using wherry::MailboxOptions;
using wherry::NotCancelled;
using wherry::Result;
using wherry::capi::configurable_timeout_of;
using wherry::capi::destroy;
using wherry::capi::failed;
using wherry::capi::set_up;
using wherry::capi::timeout_of;

static_assert(WHERRY_LAYOUT_EQUAL == static_cast<int>(Layout::equal));
static_assert(WHERRY_LAYOUT_TOPOLOGY == static_cast<int>(Layout::topology));
static_assert(WHERRY_LAYOUT_ADAPTIVE == static_cast<int>(Layout::adaptive));

Mailbox* of(wherry_mailbox handle) { return static_cast<Mailbox*>(handle.impl); }

bool good_layout(int layout) { return layout >= WHERRY_LAYOUT_EQUAL && layout <= WHERRY_LAYOUT_ADAPTIVE; }

MailboxOptions of(const wherry_mailbox_options* options) {
  MailboxOptions made;
  if (options == nullptr) return made;
  if (options->budget != 0) made.budget = options->budget;
  if (options->header != 0) made.header = options->header;
  made.quiet = options->quiet;
  made.lane = options->lane;
  if (options->most_peers != 0) made.most_peers = options->most_peers;
  made.layout = static_cast<Layout>(options->layout);
  return made;
}

/// Calls `call` with the mailbox.
template <class Call>
int with(wherry_mailbox handle, Call&& call) {
  if (handle.impl == nullptr) return failed(EBADF, "there is no such mailbox: the handle is zero");
  return set_up([&] { return call(*of(handle)); });
}

int missing_argument() { return failed(EINVAL, "an address, or the place for the result, is missing"); }

/// A message may be empty: 0 bytes are one.
std::int64_t message_value(const Result& result) {
  if (result.failed()) return -result.error;
  return result.would_block() ? -EAGAIN : static_cast<std::int64_t>(result.bytes);
}

int copy_text(const std::string& from, char* text, std::size_t size) {
  if (size != 0) {
    const std::size_t length = std::min(from.size(), size - 1);
    std::memcpy(text, from.data(), length);
    text[length] = '\0';
  }
  return static_cast<int>(from.size());
}

bool good(const void* bytes, std::size_t size) { return bytes != nullptr || size == 0; }

}  // namespace

int wherry_mailbox_open(const struct wherry_mailbox_options* options, wherry_mailbox* mailbox) {
  if (mailbox == nullptr) return missing_argument();
  if (options != nullptr && (!good_layout(options->layout) || options->reserved != 0)) {
    return failed(EINVAL, "an unknown layout, or reserved fields that are not zero, in the options");
  }
  return set_up([&] {
    mailbox->impl = new Mailbox(of(options));
    return 0;
  });
}

void wherry_mailbox_close(wherry_mailbox mailbox) { destroy(of(mailbox)); }

int wherry_mailbox_listen(wherry_mailbox mailbox, const char* address) {
  if (address == nullptr) return missing_argument();
  return with(mailbox, [&](Mailbox& on) {
    on.listen(Address::parse(address));
    return 0;
  });
}

int wherry_mailbox_address(wherry_mailbox mailbox, char* text, size_t size) {
  if (!good(text, size)) return missing_argument();
  return with(mailbox, [&](Mailbox& on) { return copy_text(on.local().to_string(), text, size); });
}

int wherry_mailbox_connect(wherry_mailbox mailbox, const char* address, int64_t timeout_ns, uint32_t* peer) {
  if (address == nullptr || peer == nullptr) return missing_argument();
  return with(mailbox, [&](Mailbox& on) {
    *peer = on.connect(Address::parse(address), configurable_timeout_of(timeout_ns));
    return 0;
  });
}

int wherry_mailbox_peer_address(wherry_mailbox mailbox, uint32_t peer, char* text, size_t size) {
  if (!good(text, size)) return missing_argument();
  return with(mailbox, [&](Mailbox& on) { return copy_text(on.address_of(peer), text, size); });
}

int wherry_mailbox_forget(wherry_mailbox mailbox, uint32_t peer) {
  return with(mailbox, [&](Mailbox& on) {
    on.forget(peer);
    return 0;
  });
}

int64_t wherry_mailbox_send(wherry_mailbox mailbox, uint32_t peer, const void* bytes, size_t size, int64_t timeout_ns) {
  if (mailbox.impl == nullptr) return -EBADF;
  if (!good(bytes, size)) return -EINVAL;
  const NotCancelled here;
  return message_value(
      of(mailbox)->send(peer, std::span(static_cast<const std::byte*>(bytes), size), timeout_of(timeout_ns)));
}

int64_t wherry_mailbox_try_send(wherry_mailbox mailbox, uint32_t peer, const void* bytes, size_t size) {
  if (mailbox.impl == nullptr) return -EBADF;
  if (!good(bytes, size)) return -EINVAL;
  const NotCancelled here;
  return message_value(of(mailbox)->try_send(peer, std::span(static_cast<const std::byte*>(bytes), size)));
}

int64_t wherry_mailbox_receive(wherry_mailbox mailbox, void* buffer, size_t size, uint32_t* from, int64_t timeout_ns) {
  if (mailbox.impl == nullptr) return -EBADF;
  if (!good(buffer, size) || from == nullptr) return -EINVAL;
  const NotCancelled here;
  return message_value(of(mailbox)->receive({static_cast<std::byte*>(buffer), size}, *from, timeout_of(timeout_ns)));
}

int64_t wherry_mailbox_try_receive(wherry_mailbox mailbox, void* buffer, size_t size, uint32_t* from) {
  if (mailbox.impl == nullptr) return -EBADF;
  if (!good(buffer, size) || from == nullptr) return -EINVAL;
  const NotCancelled here;
  return message_value(of(mailbox)->try_receive({static_cast<std::byte*>(buffer), size}, *from));
}

int wherry_mailbox_lost(wherry_mailbox mailbox, uint32_t* peer, int* error) {
  if (peer == nullptr || error == nullptr) return missing_argument();
  return with(mailbox, [&](Mailbox& on) {
    Mailbox::Loss loss{};
    if (on.losses(std::span(&loss, 1)) == 0) return 0;
    *peer = loss.peer;
    *error = loss.error;
    return 1;
  });
}

int wherry_mailbox_wait(wherry_mailbox mailbox, int64_t timeout_ns) {
  return with(mailbox, [&](Mailbox& on) { return on.wait(timeout_of(timeout_ns)) ? 1 : 0; });
}

int wherry_mailbox_sleep(wherry_mailbox mailbox, int64_t timeout_ns) {
  return with(mailbox, [&](Mailbox& on) { return on.sleep(timeout_of(timeout_ns)) ? 1 : 0; });
}

int wherry_mailbox_progress(wherry_mailbox mailbox) {
  return with(mailbox, [](Mailbox& on) { return on.progress() ? 1 : 0; });
}

int wherry_mailbox_interrupt(wherry_mailbox mailbox) {
  return with(mailbox, [](Mailbox& on) {
    on.interrupt();
    return 0;
  });
}

int wherry_mailbox_descriptor(wherry_mailbox mailbox) {
  return with(mailbox, [](Mailbox& on) { return on.descriptor(); });
}

int wherry_mailbox_set_layout(wherry_mailbox mailbox, int layout) {
  if (!good_layout(layout)) return -EINVAL;
  return with(mailbox, [&](Mailbox& on) {
    on.set_layout(static_cast<Layout>(layout));
    return 0;
  });
}

int wherry_mailbox_set_budget(wherry_mailbox mailbox, size_t bytes) {
  return with(mailbox, [&](Mailbox& on) {
    on.set_budget(bytes);
    return 0;
  });
}

int wherry_mailbox_set_neighbours(wherry_mailbox mailbox, const uint32_t* peers, const uint32_t* weights,
                                  size_t count) {
  if (!good(peers, count)) return -EINVAL;
  return with(mailbox, [&](Mailbox& on) {
    std::vector<Mailbox::Neighbour> neighbours(count);
    for (std::size_t i = 0; i < count; ++i) neighbours[i] = {peers[i], weights == nullptr ? 1 : weights[i]};
    on.set_neighbours(neighbours);
    return 0;
  });
}

int wherry_mailbox_widen(wherry_mailbox mailbox, uint32_t peer, int wide) {
  return with(mailbox, [&](Mailbox& on) {
    on.widen(peer, wide != 0);
    return 0;
  });
}

int wherry_mailbox_get_section(wherry_mailbox mailbox, uint32_t peer, struct wherry_section* section) {
  if (section == nullptr) return -EINVAL;
  return with(mailbox, [&](Mailbox& on) {
    const Mailbox::Section has = on.section(peer);
    *section = {.incoming = has.incoming, .outgoing = has.outgoing, .changes = has.changes};
    return 0;
  });
}
