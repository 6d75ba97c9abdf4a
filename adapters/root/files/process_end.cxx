// SPDX-License-Identifier: Apache-2.0
#include "process_end.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/fork_generation.hpp"

namespace wherry::root {
namespace {

constexpr int kRunning = -1;
std::atomic<int> exit_status{kRunning};

struct Act {
  std::function<void(int)> call;
  std::uint64_t generation = fork_generation();
};

/// Python sets this flag before it destroys the objects of its modules, and calls exit() later.
bool is_python_ending() {
  for (const char* const name : {"Py_IsFinalizing", "_Py_IsFinalizing"}) {  // since 3.13, and before
    if (void* const symbol = ::dlsym(RTLD_DEFAULT, name)) return reinterpret_cast<int (*)()>(symbol)() != 0;
  }
  return false;
}

}  // namespace

void watch_for_end() {
  (void)::on_exit([](int status, void*) { exit_status = status & 0xff; }, nullptr);
}

bool is_ending() { return exit_status != kRunning || is_python_ending(); }

void at_end(std::function<void(int status)> act) {
  if (exit_status != kRunning) return act(exit_status);
  auto later = std::make_unique<Act>(Act{.call = std::move(act)});
  const auto run = [](int status, void* argument) {
    const std::unique_ptr<Act> due(static_cast<Act*>(argument));
    if (due->generation == fork_generation()) due->call(status & 0xff);
  };
  if (::on_exit(run, later.get()) == 0) {
    [[maybe_unused]] const Act* const registered = later.release();
  }
}

}  // namespace wherry::root
