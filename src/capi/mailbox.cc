// SPDX-License-Identifier: Apache-2.0
// wherry.h: mailboxes.
#include <cerrno>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <wherry/wherry.h>
#include <wherry/mailbox.hpp>

#include "capi/boundary.hpp"

namespace {

using wherry::Address;
using wherry::ConstRegions;
using wherry::Layout;
using wherry::Mailbox;
using wherry::MailboxOptions;
using wherry::NotCancelled;
using wherry::Result;
using wherry::capi::bad_options;
using wherry::capi::bytes_at;
using wherry::capi::configurable_timeout_of;
using wherry::capi::copy_text;
using wherry::capi::destroy;
using wherry::capi::good;
using wherry::capi::list_of;
using wherry::capi::message_value;
using wherry::capi::missing_argument;
using wherry::capi::no_handle;
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
  made.overflow = options->overflow;
  if (options->most_peers != 0) made.most_peers = options->most_peers;
  made.layout = static_cast<Layout>(options->layout);
  return made;
}

/// Calls `call` with the mailbox.
template <class Call>
int with(wherry_mailbox handle, Call&& call) {
  if (handle.impl == nullptr) return no_handle();
  return set_up([&] { return call(*of(handle)); });
}

/// Calls `call`, which moves data, with the mailbox.
template <class Call>
std::int64_t moved(wherry_mailbox handle, Call&& call) {
  if (handle.impl == nullptr) return -EBADF;
  const NotCancelled here;
  return message_value(call(*of(handle)));
}

/// Returns the bytes of all pieces. Empty: the list is invalid, or has more than INT64_MAX bytes.
std::optional<std::uint64_t> size_of(const iovec* pieces, int count) {
  if (!good(pieces, count)) return std::nullopt;
  std::uint64_t sum = 0;
  for (const iovec& piece : list_of(pieces, count)) {
    if (piece.iov_len > INT64_MAX - sum || (piece.iov_base == nullptr && piece.iov_len != 0)) return std::nullopt;
    sum += piece.iov_len;
  }
  return sum;
}

/// Calls `call` with a C++ message of the same state, and copies the number of taken bytes back.
template <class Call>
std::int64_t moved(wherry_mailbox handle, wherry_outgoing* message, Call&& call) {
  if (handle.impl == nullptr) return -EBADF;
  if (message == nullptr || message->reserved != 0) return -EINVAL;
  const auto size = size_of(message->pieces, message->count);
  if (!size || message->taken > *size) return -EINVAL;
  message->size = *size;
  return moved(handle, [&](Mailbox& on) {
    Mailbox::Outgoing out{.pieces = list_of(message->pieces, message->count), .bytes = *size, .taken = message->taken};
    const Result result = call(on, out);
    message->taken = out.taken;
    return result;
  });
}

ConstRegions regions_of(const iovec (&bytes)[2]) {
  return {bytes_at(static_cast<const void*>(bytes[0].iov_base), bytes[0].iov_len),
          bytes_at(static_cast<const void*>(bytes[1].iov_base), bytes[1].iov_len)};
}
iovec buffer_of(std::span<const std::byte> bytes) { return {const_cast<std::byte*>(bytes.data()), bytes.size()}; }

}  // namespace

int wherry_mailbox_open(const struct wherry_mailbox_options* options, wherry_mailbox* mailbox) {
  if (mailbox == nullptr) return missing_argument();
  if (options != nullptr && !good_layout(options->layout)) return bad_options();
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

int64_t wherry_mailbox_peers(wherry_mailbox mailbox) {
  return mailbox.impl == nullptr ? -EBADF : static_cast<int64_t>(of(mailbox)->peers());
}

int wherry_mailbox_forget(wherry_mailbox mailbox, uint32_t peer) {
  return with(mailbox, [&](Mailbox& on) {
    on.forget(peer);
    return 0;
  });
}

int64_t wherry_mailbox_send(wherry_mailbox mailbox, uint32_t peer, const void* bytes, size_t size, int64_t timeout_ns) {
  if (!good(bytes, size)) return -EINVAL;
  return moved(mailbox, [&](Mailbox& on) { return on.send(peer, bytes_at(bytes, size), timeout_of(timeout_ns)); });
}

int64_t wherry_mailbox_try_send(wherry_mailbox mailbox, uint32_t peer, const void* bytes, size_t size) {
  if (!good(bytes, size)) return -EINVAL;
  return moved(mailbox, [&](Mailbox& on) { return on.try_send(peer, bytes_at(bytes, size)); });
}

int64_t wherry_mailbox_try_send_parts(wherry_mailbox mailbox, uint32_t peer, const void* head, size_t head_size,
                                      const void* rest, size_t rest_size) {
  if (!good(head, head_size) || !good(rest, rest_size)) return -EINVAL;
  return moved(mailbox,
               [&](Mailbox& on) { return on.try_send(peer, bytes_at(head, head_size), bytes_at(rest, rest_size)); });
}

int64_t wherry_mailbox_try_send_whole(wherry_mailbox mailbox, uint32_t peer, const struct iovec* pieces, int count) {
  wherry_outgoing message{.pieces = pieces, .count = count, .reserved = 0, .taken = 0, .size = 0};
  return moved(mailbox, &message, [&](Mailbox& on, Mailbox::Outgoing& out) { return on.try_send_whole(peer, out); });
}

int64_t wherry_mailbox_try_send_outgoing(wherry_mailbox mailbox, uint32_t peer, struct wherry_outgoing* message) {
  return moved(mailbox, message, [&](Mailbox& on, Mailbox::Outgoing& out) { return on.try_send(peer, out); });
}

int64_t wherry_mailbox_send_outgoing(wherry_mailbox mailbox, uint32_t peer, struct wherry_outgoing* message,
                                     int64_t timeout_ns) {
  return moved(mailbox, message,
               [&](Mailbox& on, Mailbox::Outgoing& out) { return on.send(peer, out, timeout_of(timeout_ns)); });
}

int64_t wherry_mailbox_room(wherry_mailbox mailbox, uint32_t peer, size_t least) {
  return moved(mailbox, [&](Mailbox& on) { return Result::moved(on.room(peer, least)); });
}

int64_t wherry_mailbox_writable(wherry_mailbox mailbox, uint32_t* peers, size_t count) {
  if (!good(peers, count)) return -EINVAL;
  return moved(mailbox, [&](Mailbox& on) { return Result::moved(on.writable(std::span(peers, count))); });
}

int64_t wherry_mailbox_try_peek(wherry_mailbox mailbox, struct wherry_piece* piece) {
  if (piece == nullptr) return -EINVAL;
  return moved(mailbox, [&](Mailbox& on) {
    Mailbox::Piece found;
    const Result result = on.try_peek(found);
    *piece = {.from = found.from,
              .more = found.more ? 1 : 0,
              .message_size = found.message_bytes,
              .offset = found.offset,
              .bytes = {buffer_of(found.bytes.first), buffer_of(found.bytes.second)}};
    return result;
  });
}

int wherry_mailbox_consume(wherry_mailbox mailbox, const struct wherry_piece* piece, size_t size) {
  if (mailbox.impl == nullptr) return -EBADF;
  if (piece == nullptr || size > regions_of(piece->bytes).size()) return -EINVAL;
  const NotCancelled here;
  of(mailbox)->consume({.from = piece->from,
                        .message_bytes = piece->message_size,
                        .offset = piece->offset,
                        .bytes = regions_of(piece->bytes),
                        .more = piece->more != 0},
                       size);
  return 0;
}

int64_t wherry_mailbox_receive(wherry_mailbox mailbox, void* buffer, size_t size, uint32_t* from, int64_t timeout_ns) {
  if (!good(buffer, size) || from == nullptr) return -EINVAL;
  return moved(mailbox, [&](Mailbox& on) { return on.receive(bytes_at(buffer, size), *from, timeout_of(timeout_ns)); });
}

int64_t wherry_mailbox_try_receive(wherry_mailbox mailbox, void* buffer, size_t size, uint32_t* from) {
  if (!good(buffer, size) || from == nullptr) return -EINVAL;
  return moved(mailbox, [&](Mailbox& on) { return on.try_receive(bytes_at(buffer, size), *from); });
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

int wherry_mailbox_reaches_private_memory(wherry_mailbox mailbox, uint32_t peer) {
  return with(mailbox, [&](Mailbox& on) { return on.reaches_private_memory(peer) ? 1 : 0; });
}

int64_t wherry_mailbox_read_private(wherry_mailbox mailbox, uint32_t peer, void* buffer, size_t size,
                                    uint64_t address) {
  if (!good(buffer, size)) return -EINVAL;
  return moved(mailbox,
               [&](Mailbox& on) { return Result::moved(on.read_private(peer, bytes_at(buffer, size), address)); });
}
