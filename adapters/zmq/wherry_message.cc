// SPDX-License-Identifier: Apache-2.0
#include <precompiled.hpp>  // before anything else of libzmq's

#include "wherry_message.hpp"

#include <msg.hpp>
#include "wherry_memory.hpp"

namespace zmq {
namespace {

void give(void* data, void* region) { wherry_message_memory().give(data, region); }

}  // namespace

bool wherry_init_large(msg_t& msg, std::size_t size) {
  const wherry_memory_t::piece_t piece = wherry_message_memory().take(size);
  if (piece.data == nullptr) return false;
  if (msg.init_data(piece.data, size, give, piece.region) == 0) return true;
  give(piece.data, piece.region);
  return false;
}

}  // namespace zmq
