// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/file/chosen_ways.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>

#include "base/unique_fd.hpp"
#include "layout/statistics_page.hpp"

namespace wherry::bench::file {
namespace {

namespace fs = std::filesystem;

ChosenWay::Way way_in(const layout::TransferWay& way) {
  return {.calls = way.calls, .bytes = way.bytes, .estimate_ns = way.estimate_ns, .explored = way.explored};
}

/// Reads by pread, which gives no memory to pages that were never written.
void read_ways(const fs::path& page, WayCounts& counts) {
  const UniqueFd file(::open(page.c_str(), O_RDONLY | O_CLOEXEC));
  layout::StatisticsHeader header{};
  if (::pread(file.get(), &header, sizeof header, 0) != sizeof header) return;
  if (header.version != layout::kStatisticsVersion || header.pid != static_cast<std::uint64_t>(::getpid())) return;
  for (std::size_t place = 0; place < counts.size(); ++place) {
    layout::TransferClass one{};
    const std::size_t offset = layout::kTransferClassesOffset + place * sizeof one;
    if (::pread(file.get(), &one, sizeof one, static_cast<off_t>(offset)) != sizeof one) return;
    counts[place] = {.place = place, .host = way_in(one.host), .kernel = way_in(one.kernel)};
  }
}

}  // namespace

void read_own_ways(WayCounts& counts) {
  const std::string name = std::string("/memfd:") + layout::kStatisticsMemfdName;
  std::error_code error;
  for (fs::directory_iterator entry("/proc/self/fd", error), end; !error && entry != end; entry.increment(error)) {
    std::error_code gone;
    if (fs::read_symlink(entry->path(), gone).native().starts_with(name)) read_ways(entry->path(), counts);
  }
}

std::vector<ChosenWay> used_ways(const WayCounts& counts) {
  std::vector<ChosenWay> used;
  std::copy_if(counts.begin(), counts.end(), std::back_inserter(used),
               [](const ChosenWay& one) { return one.host.calls + one.kernel.calls != 0; });
  return used;
}

}  // namespace wherry::bench::file
