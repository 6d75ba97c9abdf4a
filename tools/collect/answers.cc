// SPDX-License-Identifier: Apache-2.0
#include "collect/answers.hpp"

namespace wherry::tools {

using layout::ShipAnswer;

void Answers::stored(std::uint64_t id) {
  if (id - last_reported_id_ >= kStoredPerAnswer) send(ShipAnswer::stored, id, 0, {}, {});
}

void Answers::refused(std::uint64_t id, int error, std::string_view path, std::string_view message) {
  send(ShipAnswer::refused, id, error, path, message);
}

void Answers::summary(std::uint64_t id, int error, std::string_view message) {
  send(ShipAnswer::summary, id, error, {}, message);
  channel_.finish_sending();
}

void Answers::send(ShipAnswer answer, std::uint64_t id, int error, std::string_view path, std::string_view message) {
  path = path.substr(0, layout::kShipMaxPath);
  message = message.substr(0, layout::kShipMaxMessage);
  layout::ShipResult result{};
  result.version = layout::kShipVersion;
  result.answer = static_cast<std::uint32_t>(answer);
  result.id = id;
  result.error = static_cast<std::uint32_t>(error);
  result.path_bytes = static_cast<std::uint32_t>(path.size());
  result.message_bytes = static_cast<std::uint32_t>(message.size());
  channel_.write(std::as_bytes(std::span(&result, 1)));
  channel_.write(std::as_bytes(std::span(path)));
  channel_.write(std::as_bytes(std::span(message)));
  channel_.flush();
  if (answer == ShipAnswer::stored) last_reported_id_ = id;
}

}  // namespace wherry::tools
