// SPDX-License-Identifier: Apache-2.0
#include "wire.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace wherry::root {
namespace {

std::array<iovec, 2> pieces_of(const RootRecord& record, std::string_view text) {
  return {iovec{const_cast<RootRecord*>(&record), sizeof record}, iovec{const_cast<char*>(text.data()), text.size()}};
}

}  // namespace

std::optional<ControlMessage> parse(std::span<const std::byte> message) {
  constexpr std::size_t kMostText = std::max({layout::kRootMaxName, layout::kRootMaxReason, layout::kRootMaxOutput});
  ControlMessage parsed;
  if (message.size() < sizeof parsed.record || message.size() - sizeof parsed.record > kMostText) return std::nullopt;
  std::memcpy(&parsed.record, message.data(), sizeof parsed.record);
  const auto text = message.subspan(sizeof parsed.record);
  parsed.text.assign(reinterpret_cast<const char*>(text.data()), text.size());
  return parsed;
}

Result send(FramedStream& to, const RootRecord& record, std::string_view text) {
  const auto pieces = pieces_of(record, text);
  return to.send(std::span(pieces).first(text.empty() ? 1 : 2));
}

Result try_send(FramedStream& to, const RootRecord& record, std::string_view text) {
  const auto pieces = pieces_of(record, text);
  return to.try_send(std::span(pieces).first(text.empty() ? 1 : 2));
}

}  // namespace wherry::root
