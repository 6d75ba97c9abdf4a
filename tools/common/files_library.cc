// SPDX-License-Identifier: Apache-2.0
#include "common/files_library.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <wherry/error.hpp>

#include "common/environment.hpp"

namespace wherry::tools {

std::filesystem::path files_library_place() { return library_folder() / "files" / "libwherry-preload.so"; }

std::string directory_list(const std::string& directories) {
  std::string list;
  std::size_t begin = 0;
  while (begin <= directories.size()) {
    const std::size_t end = std::min(directories.find_first_of(",:", begin), directories.size());
    const std::string name = directories.substr(begin, end - begin);
    begin = end + 1;
    std::error_code error;
    const auto path = std::filesystem::canonical(name, error);
    if (error) throw Error(error.value(), "use --files", name, "name directories that exist, separated by commas");
    if (!std::filesystem::is_directory(path, error)) {
      throw Error(ENOTDIR, "use --files", name, "name directories, separated by commas");
    }
    if (path.native().find(':') != std::string::npos) {
      throw Error(EINVAL, "use --files", name, "a colon separates directories: give it another name");
    }
    list += (list.empty() ? "" : ":") + path.native();
  }
  return list;
}

void use_files_library() {
  const auto library = files_library_place();
  std::error_code error;
  if (!std::filesystem::exists(library, error)) {
    throw Error(ENOENT, "use --files", library.string(), "install it beside this program (make install)");
  }
  put_first("LD_PRELOAD", library.string());
}

}  // namespace wherry::tools
