// SPDX-License-Identifier: Apache-2.0
// The questions of `wherry bench`: which points each measures, and which tables answer it.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <vector>

#include "bench/harness/campaign.hpp"
#include "bench/harness/options.hpp"
#include "bench/harness/registry.hpp"
#include "bench/harness/report.hpp"

namespace wherry::bench {

/// An option of other questions that would do nothing here.
struct Without {
  std::string option;
  std::string why;
};

struct Asked {
  std::string name{};                  ///< of the subcommand
  std::string help{};                  ///< one line
  std::vector<std::uint64_t> sizes{};  ///< by default
  std::vector<std::uint64_t> smoke{};  ///< with --smoke
  std::vector<std::uint32_t> senders{1};
  std::vector<std::uint32_t> smoke_senders{1};
  std::vector<std::string> modes{"handover", "touched"};  ///< empty: there are none to choose
  bool limits_only = false;                               ///< nothing but limits has an answer
  bool own_only = false;                                  ///< nothing but the question's own systems has an answer
  std::vector<std::string> beside{};  ///< what stands beside the question's own systems; empty: all that answer any
  /// Whether a system, made for a question or for any (empty), is measured; null: as the three above say.
  bool (*chooses)(const std::string& system, const std::string& made_for) = nullptr;
  double seconds = 0.5;      ///< time of one sample, at most, by default
  std::string bytes = "1G";  ///< payload of one sample, at most, by default
  const char* bytes_help = "Payload of one sample, at most";
  const char* senders_option = "--senders";
  const char* senders_help = "How many processes send";
  std::uint32_t least_senders = 1;
  std::uint32_t most_senders = 1000;
  std::vector<Without> without{};
  /// Points for a campaign, or else a way of its own to measure.
  std::vector<Point> (*points)(const Options& options) = nullptr;
  std::vector<Row> (*measure)(const Options& options, std::span<System* const> systems,
                              Circumstances& circumstances) = nullptr;
  /// Options that no other question has.
  void (*add_options)(CLI::App& command, Options& options) = nullptr;
  std::string (*tables)(std::span<const Row> rows, const Options& options) = nullptr;
};

std::span<const Asked> questions();

/// Measures one question, in its own way or by a campaign that probes the placement of the cores.
std::vector<Row> measure(const Asked& question, const Options& options, const std::vector<System*>& systems,
                         Circumstances& circumstances);

bool has_option(const Asked& question, const std::string& option);

/// Whether it is asked of that system if no systems are named.
bool concerns(const Asked& question, const System& system);

/// Whether what is missing would have been part of the answer.
bool misses(const Asked& question, const Missing& missing);

}  // namespace wherry::bench
