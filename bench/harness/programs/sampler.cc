// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/programs/sampler.hpp"

#include <cstdlib>
#include <system_error>

namespace wherry::bench {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> places(const char* variable) {
  if (const char* named = std::getenv(variable); named != nullptr && *named != '\0') return {named};
  std::error_code ignored;
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  return {here, here.parent_path() / "lib" / "wherry" / "bench"};
}

}  // namespace

std::string Sampler::take(const std::string& job, std::chrono::seconds patience) {
  const auto deadline = Program::Clock::now() + patience;
  try {
    if (!program_) program_ = std::make_unique<Program>(command_, deadline);
    version_ = program_->version();
    program_->tell("sample " + job);
    return program_->hear("done", deadline);
  } catch (...) {
    program_.reset();  // With whatever it has started.
    throw;
  }
}

std::optional<fs::path> find_bench_program(const std::string& name, const char* variable) {
  for (const fs::path& place : places(variable)) {
    std::error_code ignored;
    if (fs::exists(place / name, ignored)) return place / name;
  }
  return std::nullopt;
}

}  // namespace wherry::bench
