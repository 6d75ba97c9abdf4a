// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/program/worker_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string_view>

namespace wherry::merge {

std::array<char, kCommand> command_of(pid_t process) {
  constexpr std::string_view kCut = "...";
  std::array<char, kCommand> command{};
  std::ifstream file(fmt::format("/proc/{}/cmdline", process), std::ios::binary);
  file.read(command.data(), kCommand);
  auto size = static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0));
  const bool cut = size == kCommand;
  if (cut) size = kCommand - kCut.size() - 1;
  while (size > 0 && command[size - 1] == '\0') --size;
  std::transform(command.begin(), command.begin() + size, command.begin(), [](char c) {
    return c == '\0' ? ' ' : c < ' ' || c > '~' ? '?' : c;
  });
  std::fill(command.begin() + size, command.end(), '\0');
  if (cut) kCut.copy(command.data() + size, kCut.size());
  return command;
}

std::string describe(const WorkerEntry& worker) {
  const std::string process =
      worker.process == 0 ? "a process that cannot be seen from here" : fmt::format("process {}", worker.process);
  return worker.command[0] == '\0' ? process : fmt::format("{} ({})", process, worker.command.data());
}

}  // namespace wherry::merge
