// SPDX-License-Identifier: Apache-2.0
// A peer that shakes hands as it should and then keeps no rule, as the tests of every interface make one.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>

#include "fabric/fabric.hpp"
#include "layout/bell_page.hpp"

namespace wherry {

/// The connection of such a peer to a listener in another process, without the interface above it. Waits until it is
/// accepted.
inline std::unique_ptr<fabric::Connection> shake_hands(const Address& where, const fabric::Offer& offer) {
  const auto connecting = fabric::find("shm").connect(where, offer);
  std::unique_ptr<fabric::Connection> connection;
  while (!(connection = connecting->try_finish())) std::this_thread::yield();
  return connection;
}

/// Stores in a word that the victim reads: anything, a number below `limit`, a little more than is there, or 0.
template <class Random>
void spoil(layout::Word& word, Random& random, std::uint64_t limit) {
  switch (random() % 4) {
    case 0:
      word = random();
      break;
    case 1:
      word = random() % limit;
      break;
    case 2:
      word += random() % 64;
      break;
    default:
      word = 0;
      break;
  }
}

}  // namespace wherry
