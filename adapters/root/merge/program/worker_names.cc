// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/program/worker_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>

#include "base/printable.hpp"

namespace wherry::merge {

std::array<char, kCommand> command_of(pid_t process) {
  constexpr std::string_view kCut = "...";
  std::array<char, kCommand> command{};
  std::ifstream file(fmt::format("/proc/{}/cmdline", process), std::ios::binary);
  std::string words(kCommand, '\0');
  file.read(words.data(), kCommand);
  words.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  bool cut = words.size() == kCommand;
  words.erase(words.find_last_not_of('\0') + 1);
  std::replace(words.begin(), words.end(), '\0', ' ');
  std::string shown = printable(words);
  for (; shown.size() + kCut.size() >= kCommand; shown = printable(words)) {
    words.pop_back();
    cut = true;
  }
  if (cut) shown += kCut;
  shown.copy(command.data(), kCommand - 1);
  return command;
}

std::string describe(const WorkerEntry& worker) {
  const std::string process =
      worker.process == 0 ? "a process that cannot be seen from here" : fmt::format("process {}", worker.process);
  return worker.command[0] == '\0' ? process : fmt::format("{} ({})", process, worker.command.data());
}

}  // namespace wherry::merge
