// SPDX-License-Identifier: Apache-2.0
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <algorithm>

#include "messenger.hpp"

namespace wherry::mpi {
namespace {

// What one call of progress() reads out of senders' memory, at most, before it looks at the mailbox again.
constexpr std::uint64_t kPullAtOnce = 8 << 20;

std::uint64_t kind_flags(bool tagged, const Envelope& envelope) {
  return FI_RECV | (tagged ? FI_TAGGED : FI_MSG) | (envelope.has_data ? FI_REMOTE_CQ_DATA : 0);
}

Completion completion_of(const ReceiveRequest& request, const Unexpected& message) {
  Completion completion;
  completion.context = request.context;
  completion.flags = kind_flags(true, message.envelope);
  completion.bytes = message.envelope.bytes;
  completion.data = message.envelope.data;
  completion.tag = message.envelope.tag;
  completion.source = source_of(message.from);
  return completion;
}

Completion failed(const ReceiveRequest& request, int error) {
  Completion completion;
  completion.context = request.context;
  completion.flags = FI_RECV | (request.tagged ? FI_TAGGED : FI_MSG);
  completion.tag = request.tag;
  completion.error = error;
  return completion;
}

}  // namespace

Receive& Messenger::new_receive(const ReceiveRequest& request) {
  Receive& receive = receives_.take();
  receive.source = request.source;
  receive.tag = request.tag;
  receive.ignore = request.ignore;
  receive.context = request.context;
  receive.buffers = request.buffers;
  receive.tagged = request.tagged;
  receive.wanted = request.wanted;
  receive.several = request.several;
  return receive;
}

int Messenger::receive(const ReceiveRequest& request) {
  Receive& receive = new_receive(request);
  Unexpected* message = matching_.message_for(receive);
  if (!receive.several && message != nullptr) {
    message->unlink();
    accept(receive, *message);
    return 0;
  }
  matching_.post(receive);
  const std::uint64_t number = Pool<Receive>::number_of(receive);
  while (message != nullptr) {
    message->unlink();
    accept(bind(receive, message->envelope), *message);
    if (receives_.find(number) == nullptr || !receive.is_linked()) return 0;
    message = matching_.message_for(receive);
  }
  return 0;
}

// What the message goes into: the receive, which is posted no longer, or a part of one that takes several.
Receive& Messenger::bind(Receive& posted, const Envelope& envelope) {
  if (!posted.several) {
    posted.unlink();
    return posted;
  }
  Receive& part = receives_.take();
  const std::uint64_t room = posted.buffers.bytes() - posted.used;
  const std::uint64_t bytes = std::min(room, envelope.bytes);
  part.context = posted.context;
  part.wanted = posted.wanted;
  part.whole = &posted;
  part.buffers = Buffers(static_cast<std::byte*>(posted.buffers.first()) + posted.used, bytes);
  posted.used += bytes;
  ++posted.parts;
  if (room - bytes < std::max<std::uint64_t>(least_room_, 1)) posted.unlink();
  return part;
}

// The message is over for the matching, whatever of it is still to come.
void Messenger::accept(Receive& receive, Unexpected& message) {
  receive.from = message.from;
  receive.envelope = message.envelope;
  receive.wants_reply = message.wants_reply;
  receive.peer_request = message.peer_request;
  if (message.own != nullptr) return take_from_self(receive, message);
  if (message.error != 0) {
    const int error = message.error;
    drop(message);
    return finish(receive, error);
  }
  if (message.announced) {
    receive.remote = message.remote;
    receive.remote_pieces = message.remote_pieces;
    drop(message);
    return start_pull(receive);
  }
  receive.buffers.scatter(0, {message.payload.get(), message.arrived});
  Inflow* inflow = message.inflow;
  drop(message);
  if (inflow == nullptr) return finish(receive, 0);
  inflow->unexpected = nullptr;
  inflow->receive = &receive;
  inflow->into = receive.buffers;
}

void Messenger::take_from_self(Receive& receive, Unexpected& message) {
  Send& send = *message.own;
  std::uint64_t offset = 0;
  for (const iovec& range : send.buffers.ranges()) {
    receive.buffers.scatter(offset, {static_cast<const std::byte*>(range.iov_base), range.iov_len});
    offset += range.iov_len;
  }
  drop(message);
  complete(send, 0);
  finish(receive, 0);
}

void Messenger::drop(Unexpected& message) {
  if (message.announced) {
    --message.from->held;
  } else if (message.own == nullptr) {
    settle(kept_bytes(message));
  }
  message.payload.reset();
  unexpected_.give(message);
}

void Messenger::finish(Receive& receive, int error) {
  if (receive.role == Receive::Role::write) return finish_write(receive, error);
  if (receive.role == Receive::Role::read) return finish_read(receive, error);
  Completion completion;
  completion.context = receive.context;
  completion.flags = kind_flags(receive.tagged, receive.envelope);
  completion.bytes = std::min(receive.envelope.bytes, receive.buffers.bytes());
  completion.missing = receive.envelope.bytes - completion.bytes;
  completion.buffer = receive.buffers.first();
  completion.data = receive.envelope.data;
  completion.tag = receive.envelope.tag;
  completion.source = source_of(receive.from);
  completion.error = error != 0 ? error : completion.missing > 0 ? FI_ETRUNC : 0;
  completion.wanted = receive.wanted;
  if (receive.wants_reply && receive.from != nullptr) {
    control(*receive.from, Operation::done, receive.peer_request, static_cast<std::uint64_t>(error));
  }
  Receive* whole = receive.whole;
  receives_.give(receive);
  if (whole != nullptr && --whole->parts == 0 && !whole->is_linked()) {
    completion.flags |= FI_MULTI_RECV;
    receives_.give(*whole);
  }
  reporter_.received(completion);
}

void Messenger::start_pull(Receive& receive) {
  receive.wants_reply = true;
  const std::uint64_t goal = std::min(receive.envelope.bytes, receive.buffers.bytes());
  if (goal == 0) return finish(receive, 0);
  if (receive.from->error != 0) return finish(receive, receive.from->error);
  const bool reaches = mailbox_.reaches_private_memory(receive.from->peer);
  const bool streams = receive.role != Receive::Role::read && prefers_stream(*receive.from, goal);
  if (reaches && !streams) return pulls_.push_back(receive);
  want(receive, goal);
  if (reaches) streams_.push_back(receive);
}

bool Messenger::pull() noexcept {
  std::uint64_t budget = kPullAtOnce;
  while (Receive* receive = pulls_.front()) {
    const std::uint64_t before = receive->arrived;
    if (!pull(*receive)) return true;
    budget -= std::min(budget, receive->arrived - before);
    if (budget == 0) return true;
  }
  return true;
}

namespace {

// Where byte `offset` of the announced message lies, and how many follow it without a gap.
RemotePiece remote_at(const Receive& receive, std::uint64_t offset) {
  for (std::size_t i = 0; i < receive.remote_pieces; ++i) {
    const RemotePiece& piece = receive.remote[i];
    if (offset < piece.bytes) return {piece.address + offset, piece.bytes - offset};
    offset -= piece.bytes;
  }
  return {};
}

}  // namespace

// False: not all of it could be read.
bool Messenger::read_from_sender(Receive& receive, std::uint64_t offset, std::uint64_t bytes) {
  while (bytes > 0) {
    const RemotePiece source = remote_at(receive, offset);
    const std::span<std::byte> to = receive.buffers.at(offset, std::min(bytes, source.bytes));
    const std::size_t moved = mailbox_.read_private(receive.from->peer, to, source.address);
    if (moved == 0) return false;
    offset += moved;
    bytes -= moved;
  }
  return true;
}

// True if the receive is over.
bool Messenger::pull(Receive& receive) {
  const std::uint64_t goal = std::min(receive.envelope.bytes, receive.buffers.bytes());
  const std::uint64_t part = std::min(goal - receive.arrived, kPullAtOnce);
  int error = receive.from->error;
  if (error == 0 && !read_from_sender(receive, receive.arrived, part)) error = FI_EIO;
  receive.arrived += part;
  if (error == 0 && receive.arrived < goal) return false;
  receive.unlink();
  finish(receive, error);
  return true;
}

int Messenger::cancel(void* context) {
  Receive* receive = matching_.posted_with(context);
  if (receive == nullptr) return -FI_ENOENT;
  receive->unlink();
  ReceiveRequest request;
  request.context = context;
  request.tagged = receive->tagged;
  request.tag = receive->tag;
  Completion completion = failed(request, FI_ECANCELED);
  if (receive->parts == 0) {
    if (receive->several) completion.flags |= FI_MULTI_RECV;
    receives_.give(*receive);
  }
  reporter_.received(completion);
  return 0;
}

int Messenger::peek(const ReceiveRequest& request, bool claims, bool discards) {
  Receive& probe = new_receive(request);
  Unexpected* message = matching_.message_for(probe);
  receives_.give(probe);
  // What came with the last progress() is found after the next one. MPICH's MPI_Dist_graph_create probes for any
  // source, then receives from any, and takes its own message, which goes another way, for the probed one unless it has
  // polled all ways in between.
  const bool is_new = message != nullptr && message->own == nullptr && message->round + 1 == rounds_;
  if (message == nullptr || is_new) {
    reporter_.received(failed(request, FI_ENOMSG));
    peeked_ = true;
    progress();  // a program that peeks again and again finds it
    return 0;
  }
  reporter_.received(completion_of(request, *message));
  if (claims) matching_.claim(*message, request.context);
  if (discards && !claims) {
    message->unlink();
    discard(*message);
  }
  return 0;
}

int Messenger::discard_claimed(const ReceiveRequest& request) {
  Unexpected* message = matching_.take_claimed(request.context);
  if (message == nullptr) return -FI_EINVAL;
  reporter_.received(completion_of(request, *message));
  discard(*message);
  return 0;
}

void Messenger::discard(Unexpected& message) {
  Send* own = message.own;
  if (message.inflow != nullptr) {
    message.inflow->unexpected = nullptr;
    message.inflow->into = Buffers();
  }
  if (own == nullptr && (message.announced || message.wants_reply)) {
    control(*message.from, Operation::done, message.peer_request, 0);
  }
  drop(message);
  if (own != nullptr) complete(*own, 0);
}

int Messenger::receive_claimed(const ReceiveRequest& request) {
  Unexpected* message = matching_.take_claimed(request.context);
  if (message == nullptr) return -FI_EINVAL;
  accept(new_receive(request), *message);
  return 0;
}

}  // namespace wherry::mpi
