// SPDX-License-Identifier: Apache-2.0
//
// The limit of the kernel's copy into another process: one process_vm_writev per message, and a counter that publishes
// it.
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "bench/harness/registry.hpp"
#include "bench/systems/limits/limit.hpp"

namespace wherry::bench {
namespace {

class KernelCopyLink final : public Link {
 public:
  KernelCopyLink(const Place& place, Counter& sent, std::span<std::byte> target)
      : sent_(sent), target_(target), from_(place.sample.size) {
    if (place.receives()) {
      place.exchange.post(0, std::to_string(::getpid()));
    } else {
      receiver_ = std::stoi(place.exchange.read(0));
    }
  }

  std::span<std::byte> prepare() override { return from_.span(); }
  void send() override {
    const iovec here{from_.span().data(), target_.size()};
    const iovec there{target_.data(), target_.size()};
    if (::process_vm_writev(receiver_, &here, 1, &there, 1, 0) != static_cast<ssize_t>(target_.size())) {
      throw std::system_error(errno, std::system_category(), "process_vm_writev");
    }
    sent_.value.store(++at_, std::memory_order_release);
  }
  std::span<const std::byte> receive() override {
    ++at_;
    spin_until([&] { return sent_.value.load(std::memory_order_acquire) >= at_; });
    return target_;
  }

 private:
  Counter& sent_;
  std::span<std::byte> target_;
  MessageBuffer from_;
  pid_t receiver_ = 0;
  std::uint64_t at_ = 0;
};

class KernelCopy final : public Limit<Counter> {
 public:
  KernelCopy() : Limit("kernel-copy", "process_vm_writev into memory of the receiver's, one call for each message") {}

  [[nodiscard]] std::string question() const override { return "scif"; }
  [[nodiscard]] bool can(const Sample& sample) const override {
    return sample.question == Question::stream && sample.senders == 1 && !sample.touched;
  }
  std::unique_ptr<Link> open(const Place& place) override {
    return std::make_unique<KernelCopyLink>(place, control(), memory());
  }

 protected:
  [[nodiscard]] std::size_t memory_bytes(const Sample& sample) const override { return sample.size; }
};

}  // namespace

void add_kernel_copy_limit(Registry& registry) { registry.systems.push_back(std::make_unique<KernelCopy>()); }

}  // namespace wherry::bench
