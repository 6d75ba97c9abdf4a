// SPDX-License-Identifier: Apache-2.0
//
// A hostile shipper: whatever bytes arrive, the collector's session ends, reads and writes no memory but its own, and
// stores nothing outside its directory.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/common/memory_channel.hpp"
#include "tools/collect/session.hpp"

namespace {

namespace fs = std::filesystem;

// Deep enough that a path which climbs out still ends where it is noticed.
class Playground {
 public:
  Playground() {
    const fs::path base = fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
    root_ = base / fmt::format("wherry-fuzz-{}", ::getpid());
    into_ = root_ / "1/2/3/4/into";
    fs::create_directories(into_.parent_path());
  }
  ~Playground() { fs::remove_all(root_); }

  [[nodiscard]] const fs::path& into() const { return into_; }
  void clean() const { fs::remove_all(into_); }
  // One path from the root to the destination, and nothing beside it.
  [[nodiscard]] bool nothing_escaped() const {
    for (fs::path place = root_; place != into_;) {
      const fs::directory_iterator entries(place);
      if (std::distance(begin(entries), end(entries)) != 1) return false;
      place = fs::directory_iterator(place)->path();
    }
    return true;
  }

 private:
  fs::path root_;
  fs::path into_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Playground playground;
  {
    wherry::tools::Destination destination(playground.into(), true);
    wherry::tools::LiveTotals totals;
    wherry::test::MemoryChannel channel(std::as_bytes(std::span(data, size)), 1000);
    const auto report = wherry::tools::Session(channel, destination, totals, [](const std::string&) {}).run();
    const bool complete = report.end == wherry::tools::SessionEnd::complete;
    if (complete && !report.error.empty()) std::abort();
  }
  if (!playground.nothing_escaped()) std::abort();
  playground.clean();
  return 0;
}
