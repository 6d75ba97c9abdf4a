// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/file/program/fuse_process.hpp"

#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "bench/systems/file/program/pipe.hpp"
#include "bench/systems/file/program/private_mounts.hpp"

namespace wherry::bench::file {
namespace {

/// Nothing is said if all is well.
int serve(const std::string& folder, Passthrough::Cache cache, UniqueFd said) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    Passthrough files(folder, cache);
    said.reset();
    return files.run();
  } catch (const std::exception& error) {
    const std::string_view words = error.what();
    (void)!::write(said.get(), words.data(), words.size());
    return 1;
  }
}

}  // namespace

FuseProcess::FuseProcess(std::string folder, Passthrough::Cache cache) : folder_(std::move(folder)) {
  keep_mounts_private();
  Pipe said = make_pipe();
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::system_category(), "fork");
  if (pid_ == 0) std::_Exit(serve(folder_, cache, std::move(said.write)));
  said.write.reset();
  const std::string words = read_all(said.read.get());
  struct statfs mounted{};
  if (words.empty() && ::statfs(folder_.c_str(), &mounted) == 0 && mounted.f_type == kFuseMagic) return;
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
  throw std::runtime_error(words.empty() ? "a FUSE file system ended before it was mounted" : words);
}

FuseProcess::~FuseProcess() {
  ::umount2(folder_.c_str(), MNT_DETACH);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
}

}  // namespace wherry::bench::file
