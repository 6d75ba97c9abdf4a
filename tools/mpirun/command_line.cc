// SPDX-License-Identifier: Apache-2.0
#include "mpirun/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <string_view>

#include "mpirun/shell.hpp"
#include "mpirun/usage_error.hpp"

namespace wherry::tools {
namespace {

using Words = std::vector<std::string>;

struct LauncherOption {
  std::string_view name;  ///< without hyphens: launchers take one or two
  std::size_t values;
};

/// The common options of Hydra and of Open MPI 4 and 5. The number of values is needed to find where the program
/// begins.
constexpr std::array kLauncherOptions{
    LauncherOption{"allow-run-as-root", 0},
    LauncherOption{"bind-to", 1},
    LauncherOption{"bind-to-core", 0},
    LauncherOption{"bootstrap", 1},
    LauncherOption{"configfile", 1},
    LauncherOption{"display-map", 0},
    LauncherOption{"env", 2},
    LauncherOption{"envall", 0},
    LauncherOption{"envlist", 1},
    LauncherOption{"envnone", 0},
    LauncherOption{"genv", 2},
    LauncherOption{"genvall", 0},
    LauncherOption{"genvlist", 1},
    LauncherOption{"genvnone", 0},
    LauncherOption{"gmca", 2},
    LauncherOption{"iface", 1},
    LauncherOption{"l", 0},
    LauncherOption{"launcher", 1},
    LauncherOption{"map-by", 1},
    LauncherOption{"mca", 2},
    LauncherOption{"N", 1},
    LauncherOption{"nooversubscribe", 0},
    LauncherOption{"npernode", 1},
    LauncherOption{"output", 1},
    LauncherOption{"output-filename", 1},
    LauncherOption{"oversubscribe", 0},
    LauncherOption{"path", 1},
    LauncherOption{"pernode", 0},
    LauncherOption{"ppn", 1},
    LauncherOption{"prefix", 1},
    LauncherOption{"prepend-rank", 0},
    LauncherOption{"prtemca", 2},
    LauncherOption{"rank-by", 1},
    LauncherOption{"rankfile", 1},
    LauncherOption{"report-bindings", 0},
    LauncherOption{"stdin", 1},
    LauncherOption{"tag-output", 0},
    LauncherOption{"timeout", 1},
    LauncherOption{"use-hwthread-cpus", 0},
    LauncherOption{"v", 0},
    LauncherOption{"verbose", 0},
    LauncherOption{"wd", 1},
    LauncherOption{"wdir", 1},
    LauncherOption{"x", 1},
};

bool is_option(std::string_view word) { return word.size() > 1 && word.front() == '-' && word != "--"; }

/// An option of the command in CLI11's notation.
struct OwnOption {
  Words words;
  bool needs_value = false;  ///< its value is the next word
};

OwnOption spelled(const CLI::Option& option, const std::string& name, const std::string& value, bool has_value) {
  const bool is_short = name.size() == 2;
  if (!has_value) return {{name}, option.get_items_expected_max() > 0};
  return {is_short ? Words{name, value} : Words{name + "=" + value}, false};
}

/// Finds an option of the command. Empty words: it is not one.
OwnOption own_option(const CLI::App& command, const std::string& word) {
  const std::size_t equals = word.find('=');
  const bool has_value = equals != std::string::npos;
  const std::string name = word.substr(0, equals);
  const std::string value = has_value ? word.substr(equals + 1) : "";
  for (const std::string& candidate : {name, "-" + name}) {
    if (const CLI::Option* const option = command.get_option_no_throw(candidate)) {
      return spelled(*option, candidate, value, has_value);
    }
  }
  // Only a number may follow without a space: -npernode is not -n with a value.
  const std::string letter = word.substr(0, 2);
  if (word.size() > 2 && std::isdigit(static_cast<unsigned char>(word[2])) != 0) {
    if (const CLI::Option* const option = command.get_option_no_throw(letter)) {
      return spelled(*option, letter, word.substr(2), true);
    }
  }
  return {};
}

/// The number of words of an option of the MPI's launcher, itself included. 0: unknown option.
std::size_t launcher_words(std::string_view word) {
  const std::string_view name = word.substr(0, word.find('='));
  const std::string_view bare = name.substr(name.starts_with("--") ? 2 : 1);
  const auto* const option = std::ranges::find(kLauncherOptions, bare, &LauncherOption::name);
  if (option == kLauncherOptions.end()) return 0;
  return name.size() == word.size() ? 1 + option->values : 1;
}

[[noreturn]] void refuse(Words line, const Words& launchers, const Words& rest) {
  line.insert(line.begin(), {"wherry", "mpirun"});
  line.emplace_back("--");
  line.insert(line.end(), launchers.begin(), launchers.end());
  const bool continues = rest.size() > 1 && rest[0] == "--" && is_option(rest[1]);
  if (!continues) line.emplace_back("--");
  const std::size_t skipped = !rest.empty() && rest[0] == "--" ? 1 : 0;
  line.insert(line.end(), rest.begin() + static_cast<std::ptrdiff_t>(skipped), rest.end());
  if (rest.size() == skipped) line.emplace_back("PROGRAM");
  throw UsageError(fmt::format("{} is an option of the MPI's launcher: write it between -- and --: {}",
                               launchers.front(), shell_line(line)));
}

}  // namespace

std::vector<std::string> normalised(const CLI::App& command, const std::vector<std::string>& words) {
  Words own;
  Words written;  // own as the user wrote them
  Words launchers;
  auto word = words.begin();
  const auto take = [&](std::size_t count, Words& to) {
    const auto end = word + std::min(static_cast<std::ptrdiff_t>(count), words.end() - word);
    to.insert(to.end(), word, end);
    word = end;
  };
  while (word != words.end() && is_option(*word)) {
    const OwnOption option = own_option(command, *word);
    if (!option.words.empty()) {
      own.insert(own.end(), option.words.begin(), option.words.end());
      take(1, written);
      if (option.needs_value && word != words.end()) {
        own.push_back(*word);
        take(1, written);
      }
    } else if (const std::size_t count = launcher_words(*word)) {
      take(count, launchers);
    } else {
      throw UsageError(
          fmt::format("{} is not an option of wherry mpirun (see wherry mpirun --help); if it is one of "
                      "the MPI's launcher, write it and its values between -- and --, before the program",
                      *word));
    }
  }
  if (!launchers.empty()) refuse(written, launchers, Words(word, words.end()));
  own.insert(own.end(), word, words.end());
  return own;
}

}  // namespace wherry::tools
