// SPDX-License-Identifier: Apache-2.0
#include "bench/program/options.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <string>

#include <wherry/error.hpp>

#include "base/config.hpp"

namespace wherry::bench {
namespace {

constexpr std::uint64_t kLargest = std::uint64_t{1} << 30;

/// Empty if it is a size, else why not: what CLI11 wants of a check.
std::string check_size(const std::string& text) {
  try {
    const std::uint64_t bytes = config::parse_bytes("the size", text);
    return bytes >= 1 && bytes <= kLargest ? "" : "a size is from 1 byte to 1G";
  } catch (const Error& error) {
    return error.what();
  }
}

std::string check_bytes(const std::string& text) {
  try {
    return config::parse_bytes("--bytes", text) > 0 ? "" : "it must be more than 0 bytes";
  } catch (const Error& error) {
    return error.what();
  }
}

std::string check_plot(const std::string& text) {
  const bool known = text.ends_with(".svg") || text.ends_with(".png") || text.ends_with(".html");
  return known ? "" : "the name must end in .svg, .png or .html";
}

/// The cores that this process may run on.
std::vector<int> allowed_cores() {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return {};
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<unsigned>(core), &allowed)) cores.push_back(core);
  }
  return cores;
}

std::string check_core(const std::string& text) {
  const std::vector<int> cores = allowed_cores();
  const bool known = std::any_of(cores.begin(), cores.end(), [&](int core) { return std::to_string(core) == text; });
  return known ? "" : fmt::format("this process may run on cores {}", fmt::join(cores, ","));
}

/// An option of other questions: using it here is an error that says why it is missing.
void refuse(CLI::App& command, const Without& without) {
  const auto tell = [without](const std::string&) {
    throw CLI::ValidationError(without.option, "there is no such option here: " + without.why);
  };
  command.add_option_function<std::string>(without.option, tell)->group("");
}

/// The first two; none where there is only one, since one core for both is worth asking for.
std::vector<int> default_cores() {
  std::vector<int> cores = allowed_cores();
  if (cores.size() < 2) return {};
  cores.resize(2);
  return cores;
}

}  // namespace

void BenchArguments::add_to(CLI::App& command, const Asked& question) {
  add_lengths(command, question);
  command.add_option("--samples", other.samples, "Samples of each figure; the systems take turns")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  if (!question.modes.empty()) {
    command.add_option("--modes", modes, "handover, touched (the payload is really written and read), or both")
        ->delimiter(',')
        ->default_str(fmt::format("{}", fmt::join(question.modes, ",")))
        ->check(CLI::IsMember({"handover", "touched"}));
  }
  if (has_option(question, "--systems")) {
    command.add_option("--systems", other.systems, "What to measure, such as wherry,tcp; default: all that is found")
        ->delimiter(',');
  }
  if (question.senders.size() > 1) {
    command.add_option(question.senders_option, senders, question.senders_help)
        ->delimiter(',')
        ->check(CLI::Range(question.least_senders, question.most_senders));
  }
  if (has_option(question, "--cores")) {
    command
        .add_option("--cores", other.cores, "Cores to keep the receiver and the sender on, such as 0,1; one for both")
        ->expected(1, 2)
        ->delimiter(',')
        ->check(check_core);
  }
  command.add_option("--seed", other.seed, "Of the order in which the systems take turns")->capture_default_str();
  command.add_option("--json", json, "Also write the figures to this file; -: standard output");
  command.add_option("--plot", plot, "Also draw the figures: FILE.svg, FILE.png, or FILE.html, a page of everything")
      ->check(check_plot);
  if (question.add_options != nullptr) question.add_options(command, other);
  command.add_flag("--smoke", other.smoke, "A second: that it runs, not what it measures");
  for (const Without& one : question.without) refuse(command, one);
}

/// How much a sample consists of.
void BenchArguments::add_lengths(CLI::App& command, const Asked& question) {
  if (has_option(question, "--sizes")) {
    command.add_option("--sizes", sizes, "Bytes of one message, file or call, such as 64,4K,1M")
        ->delimiter(',')
        ->check(check_size);
  }
  if (has_option(question, "--bytes")) {
    command.add_option("--bytes", bytes, question.bytes_help)->default_str(question.bytes)->check(check_bytes);
  }
  if (has_option(question, "--seconds")) {
    command.add_option("--seconds", seconds, "Length of one sample, at most; roughly")
        ->default_str(fmt::format("{}", question.seconds))
        ->check(CLI::Range(0.001, 600.0));
  }
}

Options BenchArguments::options(const Asked& question) const {
  Options options = other;
  for (const std::string& size : sizes) options.sizes.push_back(config::parse_bytes("--sizes", size));
  if (sizes.empty()) options.sizes = options.smoke ? question.smoke : question.sizes;
  options.seconds = seconds.value_or(question.seconds);
  options.bytes = config::parse_bytes("--bytes", bytes.value_or(question.bytes));
  options.modes = modes.empty() ? question.modes : modes;
  options.senders = senders;
  if (senders.empty()) options.senders = options.smoke ? question.smoke_senders : question.senders;
  if (options.cores.empty() && has_option(question, "--cores")) options.cores = default_cores();
  if (options.smoke) {
    options.samples = 1;
    options.seconds = 0.01;
    options.bytes = 4 << 20;
  }
  // A time that no system keeps to is not printed.
  if (!has_option(question, "--seconds")) options.seconds = 0;
  return options;
}

}  // namespace wherry::bench
