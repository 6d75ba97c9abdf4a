// SPDX-License-Identifier: Apache-2.0
//
// A pipe each way, blocking write and read; a megabyte of buffer for a single sender, the kernel's own size for many.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "bench/harness/check.hpp"
#include "bench/harness/registry.hpp"
#include "bench/systems/sockets/descriptor_links.hpp"

namespace wherry::bench {
namespace {

/// The largest that a user may ask for, unless it was changed: /proc/sys/fs/pipe-max-size.
constexpr int kLargest = 1 << 20;

struct Pipe {
  UniqueFd in;
  UniqueFd out;
};

Pipe make_pipe(bool large) {
  std::array<int, 2> ends{};
  check(::pipe2(ends.data(), O_CLOEXEC) == 0, "pipe2");
  if (large) (void)::fcntl(ends[1], F_SETPIPE_SZ, kLargest);  // A smaller one works, too.
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

class PipeSystem final : public LinkSystem {
 public:
  [[nodiscard]] std::string name() const override { return "pipe"; }
  [[nodiscard]] std::string settings() const override {
    return "1 MiB of buffer (many: the kernel's size), blocking write and read; many: epoll";
  }
  [[nodiscard]] bool can(const Sample& /*sample*/) const override { return true; }

  // Pipes have no name by which the processes could find them: they inherit them.
  Outcome run(const Sample& sample) override {
    to_receiver_.clear();
    for (std::uint32_t i = 0; i < sample.senders; ++i) to_receiver_.push_back(make_pipe(sample.senders == 1));
    to_sender_ = make_pipe(true);
    return LinkSystem::run(sample);
  }

  std::unique_ptr<Link> open(const Place& place) override {
    const std::size_t size = place.sample.size;
    std::unique_ptr<Link> link;
    if (!place.receives()) {
      link =
          std::make_unique<DescriptorLink>(std::move(to_sender_.in), std::move(to_receiver_[place.rank - 1].out), size);
    } else if (to_receiver_.size() == 1) {
      link = std::make_unique<DescriptorLink>(std::move(to_receiver_[0].in), std::move(to_sender_.out), size);
    } else {
      std::vector<UniqueFd> incoming;
      for (Pipe& pipe : to_receiver_) incoming.push_back(std::move(pipe.in));
      link = std::make_unique<ManyDescriptorsLink>(std::move(incoming), size);
    }
    // A copy of the other ends would hide that the other side is gone.
    to_receiver_.clear();
    to_sender_ = {};
    return link;
  }

 private:
  std::vector<Pipe> to_receiver_;
  Pipe to_sender_;
};

}  // namespace

void add_pipe(Registry& registry) { registry.systems.push_back(std::make_unique<PipeSystem>()); }

}  // namespace wherry::bench
