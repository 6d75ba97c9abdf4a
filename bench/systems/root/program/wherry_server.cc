// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>
#include <stdexcept>

#include "adapters/root/handover/server/server.hpp"
#include "bench/harness/touch.hpp"
#include "bench/systems/root/program/wherry.hpp"

namespace wherry::bench::root {
namespace {

using wherry::root::Event;
using wherry::root::PostedFile;
using wherry::root::WindowServer;

/// Reads each file where the worker wrote it.
class TouchServer final : public Server {
 public:
  explicit TouchServer(const Task& task) : task_(task) {}

  [[nodiscard]] std::string address() const override { return server_.local().to_string(); }

  void serve() override {
    while (left_ < task_.job.workers) {
      std::optional<Event> event = server_.next();
      if (!event) continue;
      if (event->kind == Event::Kind::posted) take(event->file);
      if (event->kind == Event::Kind::finished) ++left_;
      if (event->kind == Event::Kind::gone) throw std::runtime_error("a worker is gone: " + event->reason);
    }
  }

 private:
  void take(PostedFile& file) {
    const std::uint64_t sum = sum_all(file.bytes());
    if (!task_.live() && sum != task_.image.sum) throw std::runtime_error("a file has been altered");
    total_ = total_ + sum;
    const std::size_t size = file.bytes().size();
    file.done();
    if (++taken_ > task_.expected()) return;
    task_.shared.add_sent(size);
    if (taken_ < task_.expected()) return;
    task_.shared.stamp();
    task_.shared.arrive(Step::done);
  }

  const Task& task_;
  WindowServer server_{"wherry://*:*"};
  std::uint32_t left_ = 0;
  std::uint64_t taken_ = 0;
  volatile std::uint64_t total_ = 0;  // Keeps the sum from being optimised away.
};

}  // namespace

std::unique_ptr<Server> make_window_server(const Task& task) {
  if (task.job.figure == Figure::merge) return make_merge_server(task);
  return std::make_unique<TouchServer>(task);
}

}  // namespace wherry::bench::root
