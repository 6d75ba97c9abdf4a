// SPDX-License-Identifier: Apache-2.0
#include "bench/questions/file/explanation.hpp"

#include <fmt/format.h>

#include "base/readable.hpp"
#include "bench/harness/report.hpp"

namespace wherry::bench::file {
namespace {

std::string text_of(const char* name, const ChosenWay::Way& way) {
  const std::string estimate =
      way.estimate_ns == 0 ? "not measured" : fmt::format("{:.1f} us", static_cast<double>(way.estimate_ns) / 1000);
  return fmt::format("{} {} ({} calls, {}, {} to try it)", name, estimate, way.calls, human_bytes(way.bytes),
                     way.explored);
}

const char* kind_of(layout::TransferKind kind) {
  if (kind == layout::TransferKind::write) return "writes";
  return kind == layout::TransferKind::hit ? "reads in memory" : "reads not in memory";
}

}  // namespace

std::string explain(const std::vector<ChosenWay>& ways) {
  std::string text;
  for (const ChosenWay& one : ways) {
    const layout::TransferTraits traits = layout::transfer_traits(one.place);
    text += fmt::format("  {} {}, from {}{}: {}; {}; chosen: {}\n", kind_of(traits.kind),
                        traits.in_order ? "in order" : "elsewhere", size_text(traits.bytes),
                        traits.crowded ? ", cores busy" : "", text_of("host", one.host), text_of("mount", one.kernel),
                        layout::go_to_host(traits, one.host, one.kernel) ? "host" : "mount");
  }
  return text;
}

}  // namespace wherry::bench::file
