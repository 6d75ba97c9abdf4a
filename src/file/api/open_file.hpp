// SPDX-License-Identifier: Apache-2.0
// Names in wherry::files: finds where a file is, and opens it there.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <wherry/files.hpp>

#include "file/api/served_file.hpp"

namespace wherry::file {

struct Opening {
  std::unique_ptr<Source> source;
  ServedOptions options;
};

/// As wherry::files::open, stat and remove. Throw Error.
Opening open_file(std::string_view name, int flags, unsigned mode, const wherry::files::Options& options);
layout::FileStatus look_at_name(std::string_view name, const wherry::files::Options& options);
void remove_name(std::string_view name, const wherry::files::Options& options);

}  // namespace wherry::file
