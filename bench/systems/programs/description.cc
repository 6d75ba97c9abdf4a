// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/programs/description.hpp"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace wherry::bench {
namespace {

using nlohmann::json;

Question question_of(const std::string& word) {
  static const std::map<std::string, Question> known{
      {"stream", Question::stream}, {"latency", Question::latency}, {"asleep", Question::asleep}};
  const auto found = known.find(word);
  if (found == known.end()) throw std::runtime_error(fmt::format("there is no question '{}'", word));
  return found->second;
}

Description description_of(const json& text, const std::filesystem::path& folder) {
  Description description;
  description.name = text.at("name");
  description.question = text.value("question", "");
  description.missing = text.value("missing", "");
  if (!description.missing.empty()) return description;
  description.settings = text.at("settings");
  description.program = folder / text.at("program").get<std::string>();
  for (const json& word : text.at("questions")) description.questions.push_back(question_of(word));
  description.most_senders = text.value("most_senders", 1U);
  description.least_size = text.value("least_size", std::size_t{1});
  description.in_place = text.value("in_place", false);
  return description;
}

}  // namespace

Description read_description(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "peer.json";
  try {
    std::ifstream text(file);
    return description_of(json::parse(text), folder);
  } catch (const std::exception& error) {
    throw std::runtime_error(fmt::format("{}: {}", file.string(), error.what()));
  }
}

}  // namespace wherry::bench
