// SPDX-License-Identifier: Apache-2.0
// The processes of a job: forked for it, or threads of one that is, they start together, and each goes over its file
// until its time is over.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "bench/systems/file/files.hpp"
#include "bench/systems/file/job.hpp"
#include "bench/systems/file/program/worker.hpp"

namespace wherry::bench::file {

/// What each process does.
struct Part {
  std::function<void()> pass;
  std::function<void()> check;
};

/// Called in each process, or thread, with its number; calls `go` once the process could start.
using Work = std::function<void(std::uint32_t number, const std::function<void(const Part&)>& go)>;

/// The CPU time of `servers` counts too. Throws std::runtime_error when a process fails, which says why on standard
/// error.
Finding run_processes(const Job& job, std::span<const pid_t> servers, const Work& work);

/// `open(path, writes)` returns a pointer to a file such as a Worker takes. If the file can be loaded, its pages are in
/// memory before the passes that are not the first.
template <class Open>
Finding run_job(const Job& job, std::span<const pid_t> servers, Open open) {
  return run_processes(job, servers, [&](std::uint32_t number, const std::function<void(const Part&)>& go) {
    const auto file = open(path_of(job, number), job.writes);
    if constexpr (requires { file->load(job.bytes); }) {
      if (!job.writes && job.warm_ups > 0) file->load(job.bytes);
    }
    Worker worker(job, *file, salt_of(job.salt, number));
    go({[&worker] { worker.pass(); }, [&worker] { worker.check(); }});
  });
}

}  // namespace wherry::bench::file
