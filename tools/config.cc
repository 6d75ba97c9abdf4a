// SPDX-License-Identifier: Apache-2.0
//
// wherry config: prints the configuration table, and whether the current values are valid.
#include "base/config.hpp"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include <wherry/error.hpp>

#include "base/printable.hpp"
#include "base/readable.hpp"
#include "commands.hpp"
#include "common/json_text.hpp"
#include "common/table.hpp"

namespace wherry::tools {
namespace {

// An option and its current value.
struct Setting {
  const config::Option& option;
  std::string value;
  std::optional<std::string> error;  // the reason if the value is invalid

  [[nodiscard]] bool changed() const { return config::is_set(option.key); }
};

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const config::Option& option : config::options()) {
    Setting setting{option, config::text(option.key), std::nullopt};
    try {
      config::check(option.key);
    } catch (const Error& error) {
      setting.error = error.what();
    }
    all.push_back(std::move(setting));
  }
  return all;
}

const char* mark(const Setting& setting) {
  if (setting.error) return "!";
  return setting.changed() ? "*" : "";
}

// "2M (twice the L2 of 1M)"
std::string default_of(const config::Option& option) {
  const std::string reason = config::default_reason(option);
  return config::default_text(option) + (reason.empty() ? "" : fmt::format(" ({})", reason));
}

void print_table(const std::vector<Setting>& all) {
  Table table({{""}, {"NAME"}, {"VARIABLE"}, {"VALUE"}, {"DEFAULT"}, {"UNIT"}, {"HELP"}});
  for (const Setting& setting : all) {
    const config::Option& option = setting.option;
    table.row({mark(setting), std::string(option.name), std::string(option.environment), printable(setting.value),
               default_of(option), std::string(option.unit), std::string(option.help)});
  }
  fmt::print("{}\n* set by the environment   ! is not valid\n", table.text());
}

void print_json(const std::vector<Setting>& all) {
  auto rows = nlohmann::json::array();
  for (const Setting& setting : all) {
    const config::Option& option = setting.option;
    nlohmann::json row{{"name", option.name},
                       {"environment", option.environment},
                       {"value", setting.value},
                       {"default", config::default_text(option)},
                       {"unit", option.unit},
                       {"help", option.help},
                       {"allowed", option.allowed},
                       {"changed", setting.changed()},
                       {"valid", !setting.error.has_value()}};
    if (const auto reason = config::default_reason(option); !reason.empty()) row["default_from"] = reason;
    if (setting.error) row["error"] = *setting.error;
    rows.push_back(std::move(row));
  }
  fmt::print("{}\n", json_text(rows));
}

int print_options(bool json) {
  const auto all = settings();
  json ? print_json(all) : print_table(all);
  int status = 0;
  for (const Setting& setting : all) {
    if (!setting.error) continue;
    std::fflush(stdout);
    fmt::print(stderr, "wherry config: {}\n", printable(*setting.error));
    status = 1;
  }
  return status;
}

}  // namespace

Action add_config(CLI::App& command) {
  auto json = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "Print JSON, with every option's limits, instead of a table");
  command.footer("Exit status: 0 if every value is valid, else 1.");
  return [json] { return print_options(*json); };
}

}  // namespace wherry::tools
