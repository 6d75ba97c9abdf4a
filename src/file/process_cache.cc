// SPDX-License-Identifier: Apache-2.0
#include "file/process_cache.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <mutex>
#include <string>

#include "base/log.hpp"
#include "base/not_cancelled.hpp"
#include "file/cache_looks.hpp"
#include "file/card.hpp"
#include "file/per_process.hpp"
#include "file/visible.hpp"

namespace wherry::file {
namespace {

struct Attaching {
  std::mutex mutex;
  bool started = false;
};

constinit PerProcess<Attaching> attaching;
constinit Cache cache;
// What open files know of their places in the cache is of the segment that the process had first.
constinit std::atomic<bool> orphaned{false};
constinit std::atomic<std::int64_t> next_look{0};  // for a card, by a process that has none

/// A child that does nothing may outlive its parent, and the card must not end before it: the child is a client of its
/// own at once. A card that has ended meanwhile is used no more: others note no changes there.
void be_client_in_child() {
  if (cache.attached() && cache.after_fork().error == EAGAIN) {
    orphaned.store(true, std::memory_order_relaxed);
    cache.detach();
  }
}

constexpr std::int64_t kMillisecond = 1'000'000;  // ns

/// Of the installation that this library is of, else the one that a shell would run; empty: none.
std::string find_wherry() {
  // With more rights than its user's a program starts nothing that its environment names.
  if (::getauxval(AT_SECURE) != 0) return "";
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&process_cache), &info) != 0 && info.dli_fname != nullptr) {
    const std::filesystem::path library(info.dli_fname);
    if (library.is_absolute() && library.filename().string().starts_with("libwherry")) {
      // PREFIX/lib or PREFIX/lib/MACHINE; nowhere else is a neighbour to be trusted.
      const std::filesystem::path folder = library.parent_path();
      for (const std::filesystem::path& above : {folder, folder.parent_path()}) {
        const std::string program = above.parent_path() / "bin" / "wherry";
        const bool installed = above.filename() == "lib" || above.filename() == "lib64";
        if (installed && ::access(program.c_str(), X_OK) == 0) return program;
      }
    }
  }
  std::array<char, PATH_MAX> room{};
  const char* const found = find_in_path("wherry", room.data());
  return found != nullptr && *found == '/' ? found : "";
}

}  // namespace

Cache& process_cache(bool start) noexcept {
  if (cache.attached() || orphaned.load(std::memory_order_relaxed)) return cache;
  const int before = errno;
  try {
    const NotCancelled here;
    Attaching& state = attaching.get();
    const std::lock_guard lock(state.mutex);
    if (cache.attached()) return cache;
    [[maybe_unused]] static const int handled = ::pthread_atfork(nullptr, nullptr, be_client_in_child);
    const Refusal refusal = cache.attach();
    const bool none = refusal.error == ENOENT || refusal.error == EAGAIN;
    if (start && !state.started && (none || (cache.attached() && !has_card()))) {
      state.started = true;
      if (const std::string program = find_wherry(); !program.empty()) ensure_card(program, cache);
    }
  } catch (const std::exception& error) {
    log::write(log::Level::info, std::string("no cache of files: ") + error.what());
  }
  errno = before;
  return cache;
}

void look_for_card() noexcept {
  if (cache.attached()) [[likely]]
    return;
  const std::int64_t now = static_cast<std::int64_t>(coarse_clock());
  if (now < next_look.load(std::memory_order_relaxed)) return;
  next_look.store(now + 10 * kMillisecond, std::memory_order_relaxed);
  process_cache(false);
}

}  // namespace wherry::file
