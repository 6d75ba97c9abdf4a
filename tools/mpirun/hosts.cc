// SPDX-License-Identifier: Apache-2.0
#include "mpirun/hosts.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <sstream>

#include <wherry/error.hpp>

#include "mpirun/usage_error.hpp"

namespace wherry::tools {
namespace {

constexpr int kMaxSlots = 65536;
constexpr std::string_view kSlots = "slots=";

int count_of(std::string_view text, const std::string& where) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc() && end == text.data() + text.size() && count >= 0 && count <= kMaxSlots) return count;
  throw UsageError(fmt::format("{}: \"{}\" is not a number of slots from 0 to {}", where, text, kMaxSlots));
}

/// Parses a name with the :N of MPICH and the user@ of Open MPI. Two or more colons mean an IPv6 address.
Host host_of(std::string_view word, const std::string& where) {
  Host host;
  if (const auto at = word.find('@'); at != std::string_view::npos) word.remove_prefix(at + 1);
  if (const auto colon = word.find(':'); colon != std::string_view::npos && colon == word.rfind(':')) {
    host.slots = count_of(word.substr(colon + 1), where);
    word = word.substr(0, colon);
  }
  host.name = word;
  return host;
}

std::string_view without_domain(std::string_view name) { return name.substr(0, name.find('.')); }

bool equal(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

std::vector<Host> read_hostfile(const std::filesystem::path& file) {
  std::error_code error;
  const bool is_folder = std::filesystem::is_directory(file, error);
  errno = 0;
  std::ifstream in(file);
  if (is_folder || !in) {
    throw Error(is_folder ? EISDIR : errno, "read hostfile", file.string(),
                "without a hostfile all processes start on this machine: -n says how many");
  }
  std::vector<Host> hosts;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string word;
    if (!(words >> word)) continue;
    const std::string where = fmt::format("{}:{}", file.string(), number);
    Host host = host_of(word, where);
    host.line = number;
    while (words >> word) {
      if (word.starts_with(kSlots)) host.slots = count_of(std::string_view(word).substr(kSlots.size()), where);
    }
    hosts.push_back(host);
  }
  return hosts;
}

std::vector<Host> hosts_of_list(const std::string& list) {
  std::vector<Host> hosts;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    if (!word.empty()) hosts.push_back(host_of(word, "--host " + list));
  }
  return hosts;
}

bool is_this_machine(std::string_view name, std::string_view own) {
  if (name == "::1" || name.starts_with("127.")) return true;
  const std::string_view label = without_domain(name);
  if (equal(label, "localhost")) return true;
  const bool both_have_domains = label != name && without_domain(own) != own;
  return both_have_domains ? equal(name, own) : equal(label, without_domain(own));
}

int slots_of(const std::vector<Host>& hosts, std::string_view own, const std::string& source) {
  int slots = 0;
  for (const Host& host : hosts) {
    if (!is_this_machine(host.name, own)) {
      const std::string line = host.line == 0 ? "" : fmt::format(", line {}", host.line);
      throw UsageError(
          fmt::format("{}{} names {}, and this machine is {}: Wherry moves messages between processes of one machine. "
                      "Leave {} out, or start this job with the MPI's own mpiexec; if {} is this machine, write "
                      "localhost",
                      source, line, host.name, own, host.name, host.name));
    }
    slots = std::min(slots + host.slots, kMaxSlots);
  }
  return slots;
}

std::string own_host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace wherry::tools
