// SPDX-License-Identifier: Apache-2.0
//
// files_game_worker FILE, as files_game starts it: an ordinary program.
#include "tests/files/kernel_worker.hpp"
#include "tests/files/turns.hpp"

int main(int count, char** words) {
  if (count != 6) fail("files_game starts this");
  return take_turns(words + 2,
                    [words](Truth& truth, std::uint64_t seed) { return KernelWorker(truth, words[1], seed); });
}
