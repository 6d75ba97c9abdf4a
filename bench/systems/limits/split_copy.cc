// SPDX-License-Identifier: Apache-2.0
//
// Split copy: straight from one private buffer to the other, each side half of it, through process_vm_readv and writev.
// One message at a time.
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bench/harness/check.hpp"
#include "bench/harness/registry.hpp"
#include "bench/systems/limits/limit.hpp"

namespace wherry::bench {
namespace {

/// Where one side's buffer is.
struct Side {
  std::atomic<int> pid = 0;
  std::atomic<std::byte*> buffer = nullptr;
  Counter ready;   ///< messages it stands ready for
  Counter copied;  ///< messages of which it has copied its half
};

struct Sides {
  Side sender;
  Side receiver;
};

void reach(Counter& counter, std::uint64_t value) { counter.value.store(value, std::memory_order_release); }
void await(const Counter& counter, std::uint64_t value) {
  spin_until([&] { return counter.value.load(std::memory_order_acquire) >= value; });
}

using Transfer = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

class SplitLink final : public Link {
 public:
  SplitLink(Side& mine, Side& other, std::size_t size, bool sends)
      : mine_(mine), other_(other), buffer_(size), sends_(sends) {
    // The two are siblings, and where Yama guards processes only a parent may reach into its children.
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    mine_.buffer = buffer_.span().data();
    mine_.pid = ::getpid();
    spin_until([&] { return other_.pid != 0; });
  }

  std::span<std::byte> prepare() override { return buffer_.span(); }
  void send() override { pass(); }
  std::span<const std::byte> receive() override {
    pass();
    return buffer_.span();
  }

 private:
  void pass() {
    reach(mine_.ready, ++message_);
    await(other_.ready, message_);
    copy_half();
    reach(mine_.copied, message_);
    await(other_.copied, message_);
  }

  // The sender writes the second half, the receiver reads the first.
  void copy_half() {
    const std::size_t size = buffer_.span().size();
    std::size_t at = sends_ ? size / 2 : 0;
    const std::size_t end = sends_ ? size : size / 2;
    const Transfer transfer = sends_ ? ::process_vm_writev : ::process_vm_readv;
    while (at < end) {
      const iovec here{mine_.buffer.load(std::memory_order_relaxed) + at, end - at};
      const iovec there{other_.buffer.load(std::memory_order_relaxed) + at, end - at};
      const ssize_t n = transfer(other_.pid.load(std::memory_order_relaxed), &here, 1, &there, 1, 0);
      check(n > 0, "process_vm");
      at += static_cast<std::size_t>(n);
    }
  }

  Side& mine_;
  Side& other_;
  MessageBuffer buffer_;
  bool sends_;
  std::uint64_t message_ = 0;
};

class SplitCopy final : public Limit<Sides> {
 public:
  SplitCopy() : Limit("split-copy", "process_vm_readv and writev between private buffers, half each, both spin") {}

  [[nodiscard]] bool can(const Sample& sample) const override {
    return sample.question == Question::stream && sample.senders == 1;
  }
  std::unique_ptr<Link> open(const Place& place) override {
    Sides& sides = control();
    Side& mine = place.receives() ? sides.receiver : sides.sender;
    Side& other = place.receives() ? sides.sender : sides.receiver;
    return std::make_unique<SplitLink>(mine, other, place.sample.size, !place.receives());
  }
};

}  // namespace

void add_split_copy_limit(Registry& registry) { registry.systems.push_back(std::make_unique<SplitCopy>()); }

}  // namespace wherry::bench
