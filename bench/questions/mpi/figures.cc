// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iterator>
#include <set>

#include "bench/harness/table.hpp"
#include "bench/questions/mpi/question.hpp"

namespace wherry::bench::mpi {
namespace {

struct Heading {
  const char* figure;
  const char* metric;
  const char* text;
  double unit = 1;
  bool high = false;
};

const Heading kHeadings[] = {
    {"latency", "ns_p50", "half a round trip between ranks 0 and 1, median, us", 1e3},
    {"bandwidth", "GB/s", "GB/s from rank 0 to rank 1", 1, true},
    {"halo-1", "ns_mean", "halo exchange on a ring, us, by size of a border", 1e3},
    {"halo-2", "ns_mean", "halo exchange in 2 dimensions, us, by size of a border", 1e3},
    {"halo-3", "ns_mean", "halo exchange in 3 dimensions, us, by size of a border", 1e3},
    {"allreduce", "ns_mean", "MPI_Allreduce, us", 1e3},
    {"heat", "ns_mean", "heat equation, us a step, by size of the whole field", 1e3},
    {"fft", "ns_mean", "2-D Fourier transform, us, by size of the whole field", 1e3},
    {"memory", "shared_bytes", "shared memory of all ranks together, MB", 1e6},
    {"memory", "memory_bytes", "memory of all ranks together since MPI_Init, MB", 1e6},
};

/// What a figure came to, of all launches.
std::vector<double> values_of(std::span<const Finding> findings, std::size_t job, std::size_t measure) {
  std::vector<double> values;
  for (const Finding& one : findings) values.push_back(one.measures.at(job).at(measure).second);
  return values;
}

/// Those over one MPI.
std::vector<Row> rows_over(std::span<const Row> rows, const std::string& mpi) {
  std::vector<Row> some;
  for (const Row& row : rows) {
    if (row.system.find(mpi) != std::string::npos) some.push_back(row);
  }
  return some;
}

}  // namespace

void append_rows(std::vector<Row>& rows, const System& system, std::uint32_t ranks, std::span<const Job> jobs,
                 std::span<const Finding> findings) {
  if (findings.empty()) return;
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    const Measures& first = findings[0].measures.at(job);
    for (std::size_t i = 0; i < first.size(); ++i) {
      Row row{.bench = "mpi",
              .system = system.name(),
              .version = system.version(),
              .mode = jobs[job].figure,
              .senders = ranks,
              .size = jobs[job].bytes,
              .metric = first[i].first};
      summarise(row, values_of(findings, job, i));
      rows.push_back(std::move(row));
    }
  }
}

std::string tables(std::span<const Row> rows, const Options& options) {
  std::string text;
  for (const std::uint32_t ranks : options.senders) {
    for (const Heading& heading : kHeadings) {
      for (const char* mpi : {"mpich", "ompi"}) {
        text += table(rows_over(rows, mpi), {.title = fmt::format("{}, {} ranks", heading.text, ranks),
                                             .bench = "mpi",
                                             .mode = heading.figure,
                                             .senders = ranks,
                                             .metric = heading.metric,
                                             .unit = heading.unit,
                                             .highest_is_best = heading.high,
                                             .reference = mpi,
                                             .spread = true});
      }
    }
  }
  return text;
}

}  // namespace wherry::bench::mpi
