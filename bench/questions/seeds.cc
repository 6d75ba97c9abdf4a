// SPDX-License-Identifier: Apache-2.0
#include "bench/questions/seeds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "base/config.hpp"
#include "bench/harness/table.hpp"
#include "bench/questions/file/crossing.hpp"
#include "bench/questions/file/question.hpp"
#include "bench/questions/questions.hpp"

namespace wherry::bench::seeds {
namespace {

constexpr std::uint64_t kKiB = 1 << 10;
constexpr std::uint64_t kMiB = 1 << 20;
/// The published file was 16 MB, read by units of 512 B to all of it.
constexpr const char* kFileBytes = "16M";

/// A figure as it was published.
struct Published {
  const char* what;
  const char* value;
};

struct Seed {
  const char* name;     ///< of --seeds
  const char* title;    ///< what was published, where and when
  const char* machine;  ///< that of the publication
  std::vector<Published> published;
  const char* question;              ///< the one that is asked here
  std::vector<std::string> systems;  ///< of which systems
  std::vector<std::uint64_t> sizes;
  std::vector<std::uint32_t> senders{1};
  double seconds = 0.2;
  const char* bytes = "1G";
  void (*narrow)(Options& options) = nullptr;  ///< sets options that only the question has
  std::vector<TableOf> tables{};
};

void transfer_from_threads(Options& options) {
  options.root.figures = {"transfer"};
  options.root.threads = true;
}

void published_file_figures(Options& options) {
  options.file.figures = {"hit", "first", "write-synced"};
  options.file.threads.clear();
}

void neighbours_alone(Options& options) { options.mailbox.connected = {2}; }

Seed trans4scif() {
  return {.name = "trans4scif",
          .title = "Trans4SCIF, streams over SCIF (2016, 2017)",
          .machine = "host and Xeon Phi, PCIe",
          .published = {{"messages of 1 to 128 MB, ring of 16 MB each way", "up to 3 GB/s (4x), at the cost of 32 MB"}},
          .question = "stream",
          .systems = {"wherry", "tcp", "zmq-tcp", "nanomsg-tcp"},
          .sizes = {kMiB, 16 * kMiB, 128 * kMiB},
          .tables = {{.title = "GB/s, one stream, by size of a message",
                      .bench = "stream",
                      .mode = "handover",
                      .metric = "GB/s",
                      .ratios = true}}};
}

Seed tscif() {
  return {.name = "tscif",
          .title = "TSCIF: ROOT files from 60 threads, 100 each (thesis, 2015)",
          .machine = "host and Xeon Phi, PCIe",
          .published = {{"64 KB, 2 MB, 8 MB: TSCIF", "0.780, 5.263, 6.200 GB/s"},
                        {"64 KB, 2 MB, 8 MB: TSocket", "0.107, 0.250, 0.262 GB/s"},
                        {"TSCIF to TSocket", "7, 21, 24"}},
          .question = "root",
          .systems = {"wherry", "wherry-tscif", "tsocket-tcp"},
          .sizes = {64 * kKiB, 2 * kMiB, 8 * kMiB},
          .senders = {60},
          .bytes = "2G",
          .narrow = transfer_from_threads,
          .tables = {{.title = "GB/s from threads, transfer only, by size of a file",
                      .bench = "root",
                      .mode = "threads",
                      .metric = "GB/s",
                      .compared = "wherry-tscif",
                      .compared_to = {"tsocket-tcp"}}}};
}

Seed zmq() {
  return {.name = "zmq",
          .title = "SCIF against ZeroMQ and nanomsg (CHEP 2015)",
          .machine = "host and Xeon Phi, PCIe; ZeroMQ and nanomsg over its virtual Ethernet",
          .published = {{"1 GB in messages of the best size: SCIF, ZeroMQ, nanomsg", "6.300, 0.410, 0.216 GB/s"},
                        {"SCIF to ZeroMQ, messages of 1 to 100 MB", "at least 10"}},
          .question = "scif",
          .systems = {"scif", "scif-writeto", "zmq-tcp", "nanomsg-tcp"},
          .sizes = {64 * kKiB, kMiB, 16 * kMiB, 128 * kMiB},
          .tables = {{.title = "GB/s, by size of a message",
                      .bench = "scif",
                      .mode = "handover",
                      .metric = "GB/s",
                      .compared = "scif-writeto",
                      .compared_to = {"zmq-tcp", "nanomsg-tcp"}}}};
}

Seed rckmpi() {
  return {.name = "rckmpi",
          .title = "RCKMPI with a topology-aware message-passing buffer (HIPS 2012)",
          .machine = "Intel SCC, 48 cores, 8 KB of message-passing buffer each",
          .published = {{"two processes, nothing else started", "plot that ends at 90 MB/s"},
                        {"two of 2 to 48 processes started, buffer divided equally", "plot that ends at 70 MB/s"},
                        {"two of 48 processes started, ring topology declared", "plot that ends at 30 MB/s"}},
          .question = "mailbox",
          .systems = {"mailbox-equal", "mailbox-topology-2", "mailbox-topology-3", "mailbox-adaptive"},
          .sizes = {4 * kKiB, 64 * kKiB, kMiB},
          .senders = {2, 12, 24, 48},
          .seconds = 0.1,
          .narrow = neighbours_alone,
          .tables = {{.title = "GB/s between two neighbours, messages of 64 KiB, by number of processes started",
                      .bench = "mailbox",
                      .mode = "handover",
                      .metric = "GB/s",
                      .columns = Columns::senders,
                      .compared = "mailbox-topology-2",
                      .compared_to = {"mailbox-equal"}}}};
}

Seed files() {
  return {
      .name = "files",
      .title = "Three paths of file I/O for a many-core card (ROSS 2012)",
      .machine = "host and 32-core card, PCIe; one file of 16 MB, read and written in order",
      .published = {{"small units", "the card's cache is fastest"},
                    {"large units", "the host's path is fastest"},
                    {"one pass over a file; several passes", "best through the host; best through the card's cache"}},
      .question = "file",
      .systems = {"native", "wherry-mount-run", "wherry-mount-cache", "wherry-mount-card", "wherry-mount-host",
                  "wherry-mount-auto"},
      .sizes = {512, 4 * kKiB, 64 * kKiB, kMiB, 16 * kMiB},
      .seconds = 0.05,
      .bytes = kFileBytes,
      .narrow = published_file_figures,
      .tables = {{.title = "GB/s read again, by unit", .bench = "file", .mode = "hit", .metric = "GB/s"},
                 {.title = "GB/s read for the first time, by unit", .bench = "file", .mode = "first", .metric = "GB/s"},
                 {.title = "GB/s written with one fsync at the end, by unit",
                  .bench = "file",
                  .mode = "write-synced",
                  .metric = "GB/s"}}};
}

const std::vector<Seed>& all_seeds() {
  static const std::vector<Seed> all{trans4scif(), tscif(), zmq(), rckmpi(), files()};
  return all;
}

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<const Seed*> asked_for(const Options& options) {
  std::vector<const Seed*> found;
  for (const Seed& seed : all_seeds()) {
    if (options.seeds.empty() || has(options.seeds, seed.name)) found.push_back(&seed);
  }
  return found;
}

const Asked& question_of(const Seed& seed) {
  const std::span<const Asked> all = questions();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Asked& one) { return one.name == seed.question; });
  if (found == all.end()) throw std::logic_error(fmt::format("there is no question {}", seed.question));
  return *found;
}

/// A system made for another question has the same name as one of these at times.
bool is_part(const Seed& seed, const std::string& system, const std::string& question) {
  return (question.empty() || question == seed.question) && has(seed.systems, system);
}

/// The seed's own system comes before one of that name that answers any question.
std::vector<System*> systems_of(const Seed& seed, std::span<System* const> systems) {
  std::vector<System*> found;
  for (const std::string& name : seed.systems) {
    System* best = nullptr;
    for (System* one : systems) {
      if (one->name() != name || !is_part(seed, name, one->question())) continue;
      if (best == nullptr || !one->question().empty()) best = one;
    }
    if (best != nullptr) found.push_back(best);
  }
  return found;
}

Options options_of(const Seed& seed, const Options& asked) {
  const Asked& question = question_of(seed);
  Options options = asked;
  options.sizes = asked.smoke ? question.smoke : seed.sizes;
  options.senders = asked.smoke ? question.smoke_senders : seed.senders;
  options.modes = {"handover"};
  options.seconds = asked.smoke ? asked.seconds : seed.seconds;
  options.bytes = asked.smoke ? asked.bytes : config::parse_bytes("bytes", seed.bytes);
  if (!has_option(question, "--cores")) options.cores.clear();
  if (!has_option(question, "--seconds")) options.seconds = 0;
  if (seed.narrow != nullptr) seed.narrow(options);
  return options;
}

void add(Circumstances& sum, const Circumstances& part) {
  sum.failures.insert(sum.failures.end(), part.failures.begin(), part.failures.end());
  sum.worst.busy = std::max(sum.worst.busy, part.worst.busy);
  sum.worst.steal = std::max(sum.worst.steal, part.worst.steal);
  sum.retaken += part.retaken;
}

std::string published_text(const Seed& seed) {
  std::string text = fmt::format("\n{}\n  published ({}):\n", seed.title, seed.machine);
  for (const Published& one : seed.published) text += fmt::format("    {}: {}\n", one.what, one.value);
  return text;
}

/// Where columns are numbers of processes, the rows of one size.
std::vector<Row> rows_of(std::span<const Row> rows, const TableOf& what) {
  std::vector<Row> found;
  for (const Row& row : rows) {
    const bool fits = what.columns == Columns::sizes || row.size == 64 * kKiB;
    if (row.bench == what.bench && fits) found.push_back(row);
  }
  return found;
}

}  // namespace

void add_options(CLI::App& command, Options& options) {
  std::vector<std::string> names;
  for (const Seed& seed : all_seeds()) names.emplace_back(seed.name);
  command.add_option("--seeds", options.seeds, fmt::format("Of {}; default: all", fmt::join(names, ", ")))
      ->delimiter(',')
      ->check(CLI::IsMember(names));
  file::add_directory_option(command, options);
}

bool chooses(const std::string& system, const std::string& question) {
  const std::vector<Seed>& all = all_seeds();
  return std::any_of(all.begin(), all.end(), [&](const Seed& seed) { return is_part(seed, system, question); });
}

std::vector<Row> measure(const Options& options, std::span<System* const> systems, Circumstances& circumstances) {
  std::vector<Row> rows;
  for (const Seed* seed : asked_for(options)) {
    const std::vector<System*> own = systems_of(*seed, systems);
    if (own.empty()) continue;
    Circumstances part;
    const std::vector<Row> found = bench::measure(question_of(*seed), options_of(*seed, options), own, part);
    rows.insert(rows.end(), found.begin(), found.end());
    add(circumstances, part);
  }
  circumstances.placement.not_probed = "several questions are asked, one after the other";
  return rows;
}

std::string tables(std::span<const Row> rows, const Options& options) {
  std::string text;
  for (const Seed* seed : asked_for(options)) {
    text += published_text(*seed);
    std::string measured;
    for (TableOf what : seed->tables) {
      what.senders = options_of(*seed, options).senders.at(0);
      measured += table(rows_of(rows, what), what);
      if (std::string_view(what.bench) == "file") measured += file::crossings(rows, what.mode, what.senders);
    }
    text += measured.empty() ? "  none of it could be measured here\n" : measured;
  }
  return text;
}

}  // namespace wherry::bench::seeds
