// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/root/job.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace wherry::bench::root {
namespace {

using nlohmann::json;

json read(const std::string& line) {
  try {
    return json::parse(line);
  } catch (const json::exception& error) {
    throw std::runtime_error(error.what());
  }
}

void check(bool sensible, const char* what) {
  if (!sensible) throw std::runtime_error(what);
}

Job job_of(const json& text) {
  Job job{.figure = figure_of(text.at("figure")),
          .system = text.at("system"),
          .tree = tree_of(text.at("tree")),
          .threads = text.at("threads"),
          .workers = text.at("workers"),
          .files = text.at("files"),
          .size = text.at("size")};
  check(job.workers > 0 && job.files > 0 && job.size > 0, "a job without workers, files or bytes");
  return job;
}

Finding finding_of(const json& text) {
  const Finding finding{.seconds = text.at("seconds"),
                        .server_cpu_seconds = text.at("server_cpu_seconds"),
                        .worker_cpu_seconds = text.at("worker_cpu_seconds"),
                        .reaped_cpu_seconds = text.at("reaped_cpu_seconds"),
                        .useful_bytes = text.at("useful_bytes"),
                        .wire_bytes = text.at("wire_bytes"),
                        .memory_bytes = text.at("memory_bytes")};
  check(finding.seconds > 0 && finding.useful_bytes > 0, "a sample without time or bytes");
  check(finding.server_cpu_seconds >= 0 && finding.worker_cpu_seconds >= 0, "a sample with less than no CPU time");
  return finding;
}

}  // namespace

std::string word_of(Figure figure) {
  if (figure == Figure::transfer) return "transfer";
  return figure == Figure::fill ? "fill" : "merge";
}

std::string word_of(Tree tree) { return tree == Tree::numbers ? "numbers" : "higgs"; }

Figure figure_of(const std::string& word) {
  for (const Figure figure : {Figure::transfer, Figure::fill, Figure::merge}) {
    if (word_of(figure) == word) return figure;
  }
  throw std::invalid_argument("there is no figure '" + word + "'");
}

Tree tree_of(const std::string& word) {
  for (const Tree tree : {Tree::numbers, Tree::higgs}) {
    if (word_of(tree) == word) return tree;
  }
  throw std::invalid_argument("there is no tree '" + word + "'");
}

std::string to_line(const Job& job) {
  return json{
      {"figure", word_of(job.figure)}, {"system", job.system}, {"tree", word_of(job.tree)}, {"threads", job.threads},
      {"workers", job.workers},        {"files", job.files},   {"size", job.size}}
      .dump();
}

std::string to_line(const Finding& finding) {
  return json{{"seconds", finding.seconds},
              {"server_cpu_seconds", finding.server_cpu_seconds},
              {"worker_cpu_seconds", finding.worker_cpu_seconds},
              {"reaped_cpu_seconds", finding.reaped_cpu_seconds},
              {"useful_bytes", finding.useful_bytes},
              {"wire_bytes", finding.wire_bytes},
              {"memory_bytes", finding.memory_bytes}}
      .dump();
}

Job job_in(const std::string& line) {
  try {
    return job_of(read(line));
  } catch (const std::exception& error) {
    throw std::runtime_error("not a job: " + std::string(error.what()));
  }
}

Finding finding_in(const std::string& line) {
  try {
    return finding_of(read(line));
  } catch (const std::exception& error) {
    throw std::runtime_error("not a finding: " + std::string(error.what()));
  }
}

}  // namespace wherry::bench::root
