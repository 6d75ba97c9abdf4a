// SPDX-License-Identifier: Apache-2.0
#include "environment.hpp"

#include <limits.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/loaded_libraries.hpp"
#include "kept_text.hpp"
#include "program_memory.hpp"

namespace wherry::preload {
namespace {

constexpr std::string_view kPreload = "LD_PRELOAD=";
// Variables that a child needs to read the same files in the same way, and to reach the same host.
constexpr std::array<const char*, 13> kKept{
    "WHERRY_FILES",        "WHERRY_FILE_PATH", "WHERRY_FILE_PATHS", "WHERRY_FILES_REPORT", "WHERRY_JOB",
    "WHERRY_NODE",         "WHERRY_LOG",       "WHERRY_HOSTS",      "WHERRY_FABRIC",       "WHERRY_KEY",
    "WHERRY_HOST_TIMEOUT", "WHERRY_LIBFABRIC", "WHERRY_MACHINE"};
static_assert(kKept.size() + 1 <= kMostVariables);

WHERRY_START_DATA const char* library = nullptr;
WHERRY_START_DATA std::size_t library_length = 0;
WHERRY_START_DATA std::array<char*, kKept.size()> variables{};
WHERRY_START_DATA std::array<std::string_view, kKept.size()> signs{};  // the name of each, with its =
WHERRY_START_DATA std::size_t variable_count = 0;

bool is_named(const char* variable, std::string_view name_and_sign) {
  return std::string_view(variable, strnlen(variable, name_and_sign.size())) == name_and_sign;
}

/// Returns where a list of names with colons or spaces has this library, or null.
const char* library_in(const char* list) {
  const char* found = list;
  while ((found = std::strstr(found, library)) != nullptr) {
    const bool begins = found == list || found[-1] == ':' || found[-1] == ' ';
    const char end = found[library_length];
    if (begins && (end == '\0' || end == ':' || end == ' ')) return found;
    found += library_length;
  }
  return nullptr;
}

/// Makes LD_PRELOAD with this library before the others, or without it if the program is incompatible.
char* rewritten(const char* list, PreloadSupport support, std::span<char> text) {
  char* end = std::copy(kPreload.begin(), kPreload.end(), text.begin().base());
  const char* const there = list == nullptr ? nullptr : library_in(list);
  if (support == PreloadSupport::incompatible && there != nullptr) {
    end = std::copy(list, there, end);
    const char* const rest = there + library_length;
    end = std::copy(rest, rest + std::strlen(rest), end);
  } else {
    end = std::copy(library, library + library_length, end);
    if (list != nullptr && *list != '\0') {
      *end++ = ':';
      end = std::copy(list, list + std::strlen(list), end);
    }
  }
  *end = '\0';
  return text.data();
}

}  // namespace

void keep_environment() noexcept {
  const char* const path = path_of_this_library();
  if (path == nullptr || path[0] != '/') return;
  library = path;
  library_length = std::strlen(path);
  for (const char* const name : kKept) {
    const char* const value = std::getenv(name);
    if (value == nullptr) continue;
    // In the environment the name and its sign precede the value.
    const std::size_t sign = std::strlen(name) + 1;
    char* const variable = keep_text({value - sign, sign + std::strlen(value)});
    if (variable == nullptr) return;
    variables[variable_count] = variable;
    signs[variable_count++] = {variable, sign};
  }
}

std::size_t count_variables(char* const* given) noexcept {
  if (given == nullptr) return 0;
  ProgramMemory memory;
  std::size_t count = 0;
  while (true) {
    if (!memory.can_read(static_cast<const void*>(given + count), sizeof(*given))) return ProgramMemory::kUnreadable;
    if (given[count] == nullptr) return count;
    if (memory.length_of(given[count]) == ProgramMemory::kUnreadable) return ProgramMemory::kUnreadable;
    count++;
  }
}

std::size_t text_for(char* const* given) noexcept {
  std::size_t longest = 0;
  for (char* const* variable = given; variable != nullptr && *variable != nullptr; variable++) {
    if (is_named(*variable, kPreload)) longest = std::max(longest, std::strlen(*variable));
  }
  return longest + kPreload.size() + library_length + 2;
}

char* const* complete(char* const* given, PreloadSupport support, std::span<char*> room,
                      std::span<char> text) noexcept {
  if (library == nullptr) return given;
  std::size_t count = 0;
  bool changed = false;
  bool has_preload = false;
  std::array<bool, kKept.size()> has{};
  for (char* const* variable = given; variable != nullptr && *variable != nullptr; variable++) {
    char* word = *variable;
    if (is_named(word, kPreload)) {
      has_preload = true;
      const bool is_there = library_in(word + kPreload.size()) != nullptr;
      if (is_there == (support == PreloadSupport::incompatible)) {
        word = rewritten(word + kPreload.size(), support, text);
        changed = true;
      }
    }
    for (std::size_t i = 0; i < variable_count; i++) {
      has[i] = has[i] || is_named(word, signs[i]);
    }
    room[count++] = word;
  }
  if (!has_preload && support != PreloadSupport::incompatible) {
    room[count++] = rewritten(nullptr, support, text);
    changed = true;
  }
  for (std::size_t i = 0; i < variable_count; i++) {
    if (has[i]) continue;
    room[count++] = variables[i];
    changed = true;
  }
  room[count] = nullptr;
  return changed ? room.data() : given;
}

}  // namespace wherry::preload
