// SPDX-License-Identifier: Apache-2.0
// For tests: two messengers in one process, connected over the fabric shm.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "messenger.hpp"

namespace wherry::mpi {

class Log : public Reporter {
 public:
  void sent(const Completion& completion) override { sends.push_back(completion); }
  void received(const Completion& completion) override { receives.push_back(completion); }
  std::deque<Completion> sends;
  std::deque<Completion> receives;
};

class MessengerTest : public testing::Test {
 protected:
  explicit MessengerTest(const MailboxOptions& options = {}, std::size_t most_eager = kMostInjected)
      : a_(at_a_log_, options, job_processors(), most_eager), b_(at_b_log_, options) {
    at_a_ = &a_.link_to(b_.name());
    at_a_->address = 1;
    b_.link_to(a_.name()).address = 7;
    a_.link_to(a_.name()).address = 0;
  }

  // The text is kept until the end of the test.
  SendRequest message(std::string text, std::uint64_t tag = 5) {
    SendRequest request;
    request.to = at_a_;
    const std::string& kept = kept_.emplace_back(std::move(text));
    request.buffers = Buffers(kept.data(), kept.size());
    request.tag = tag;
    request.tagged = true;
    return request;
  }
  static ReceiveRequest into(std::string& buffer, std::uint64_t tag = 5) {
    ReceiveRequest request;
    request.buffers = Buffers(buffer.data(), buffer.size());
    request.tag = tag;
    request.tagged = true;
    request.context = &buffer;
    return request;
  }
  void progress_until(const std::function<bool()>& done) {
    while (!done()) {
      a_.progress();
      b_.progress();
    }
  }
  Completion next_receive() {
    progress_until([&] { return !at_b_log_.receives.empty(); });
    const Completion first = at_b_log_.receives.front();
    at_b_log_.receives.pop_front();
    return first;
  }
  // Runs until everything sent before has arrived.
  void settle() {
    std::string flag(1, ' ');
    ASSERT_EQ(b_.receive(into(flag, 999)), 0);
    ASSERT_EQ(a_.send(message("x", 999)), 0);
    EXPECT_EQ(next_receive().tag, 999U);
    progress_until([&] { return a_.mailbox().section(at_a_->peer).outgoing != 0; });
    b_.progress();
  }

  Log at_a_log_, at_b_log_;
  Messenger a_;
  Messenger b_;
  Link* at_a_ = nullptr;
  std::deque<std::string> kept_;
};

}  // namespace wherry::mpi
