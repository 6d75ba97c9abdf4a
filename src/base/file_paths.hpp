// SPDX-License-Identifier: Apache-2.0
//
// The names of file paths (files::Path) in the environment and on command lines.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include <wherry/file_path.hpp>

namespace wherry {

struct FilePathWord {
  std::string_view word;
  files::Path path;
  std::string_view now{};  ///< for a name of the last release: its new name; else empty
};

inline constexpr std::array kFilePathWords{
    FilePathWord{"auto", files::Path::automatic},      FilePathWord{"kernel", files::Path::kernel},
    FilePathWord{"cache", files::Path::cache},         FilePathWord{"card", files::Path::card},
    FilePathWord{"host", files::Path::host},           FilePathWord{"local", files::Path::kernel, "kernel"},
    FilePathWord{"comp", files::Path::cache, "cache"}, FilePathWord{"os", files::Path::card, "card"},
};

/// Returns the entry of a name. Null: there is none.
constexpr const FilePathWord* find_file_path(std::string_view word) {
  const auto* const found =
      std::find_if(kFilePathWords.begin(), kFilePathWords.end(), [&](const auto& one) { return one.word == word; });
  return found == kFilePathWords.end() ? nullptr : found;
}

}  // namespace wherry
