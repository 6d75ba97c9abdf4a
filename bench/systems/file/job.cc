// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/file/job.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

namespace wherry::bench::file {
namespace {

using nlohmann::json;

void check(bool sensible, const char* what) {
  if (!sensible) throw std::runtime_error(what);
}

Job job_of(const json& text) {
  Job job{.files = text.at("files"),
          .writes = text.at("writes"),
          .random = text.at("random"),
          .used = text.at("used"),
          .synced = text.at("synced"),
          .unit = text.at("unit"),
          .bytes = text.at("bytes"),
          .processes = text.at("processes"),
          .threads = text.at("threads"),
          .warm_ups = text.at("warm_ups"),
          .seconds = text.at("seconds"),
          .salt = text.at("salt"),
          .check = text.at("check")};
  check(job.unit > 0 && job.bytes > 0 && job.processes > 0, "a job without calls, bytes or processes");
  check(job.unit % sizeof(std::uint64_t) == 0 && job.bytes % job.unit == 0, "a file is not a number of units of words");
  return job;
}

json json_of(const ChosenWay& one) {
  const auto way = [](const ChosenWay::Way& of) { return json{of.calls, of.bytes, of.estimate_ns, of.explored}; };
  return {{"place", one.place}, {"host", way(one.host)}, {"kernel", way(one.kernel)}};
}

ChosenWay way_of(const json& text) {
  const auto way = [&](const char* name) -> ChosenWay::Way {
    const json& of = text.at(name);
    return {.calls = of.at(0), .bytes = of.at(1), .estimate_ns = of.at(2), .explored = of.at(3)};
  };
  ChosenWay one{.place = text.at("place"), .host = way("host"), .kernel = way("kernel")};
  check(one.place < layout::kTransferClasses, "a class of transfers that there is not");
  return one;
}

Finding finding_of(const json& text) {
  Finding finding{.seconds = text.at("seconds"),
                  .cpu_seconds = text.at("cpu_seconds"),
                  .reaped_cpu_seconds = text.at("reaped_cpu_seconds"),
                  .useful_bytes = text.at("useful_bytes")};
  check(finding.useful_bytes > 0, "a sample without bytes");
  for (const json& one : text.at("ways")) finding.ways.push_back(way_of(one));
  check(finding.seconds >= 0 && finding.cpu_seconds >= 0, "a sample that took less than no time");
  return finding;
}

template <class Read>
auto read(const char* what, const std::string& line, Read read_one) {
  try {
    return read_one(json::parse(line));
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string("not a ") + what + ": " + error.what());
  }
}

}  // namespace

std::string to_line(const Job& job) {
  return json{{"files", job.files},         {"writes", job.writes},     {"random", job.random},   {"used", job.used},
              {"synced", job.synced},       {"unit", job.unit},         {"bytes", job.bytes},     {"check", job.check},
              {"processes", job.processes}, {"warm_ups", job.warm_ups}, {"seconds", job.seconds}, {"salt", job.salt},
              {"threads", job.threads}}
      .dump();
}

std::string to_line(const Finding& finding) {
  json ways = json::array();
  for (const ChosenWay& one : finding.ways) ways.push_back(json_of(one));
  return json{{"seconds", finding.seconds},
              {"cpu_seconds", finding.cpu_seconds},
              {"reaped_cpu_seconds", finding.reaped_cpu_seconds},
              {"useful_bytes", finding.useful_bytes},
              {"ways", std::move(ways)}}
      .dump();
}

Job job_in(const std::string& line) { return read("job", line, job_of); }
Finding finding_in(const std::string& line) { return read("finding", line, finding_of); }

}  // namespace wherry::bench::file
