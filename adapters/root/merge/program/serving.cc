// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/program/serving.hpp"

#include <TROOT.h>
#include <TSystem.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <wherry/error.hpp>

#include "adapters/root/handover/server/server.hpp"
#include "adapters/root/merge/commit/journal.hpp"
#include "adapters/root/merge/commit/shard_names.hpp"
#include "adapters/root/merge/program/missing_workers.hpp"
#include "adapters/root/merge/program/output_queue.hpp"
#include "adapters/root/merge/program/sharded_output.hpp"
#include "adapters/root/merge/program/stop_signals.hpp"
#include "adapters/root/merge/program/stuck_watch.hpp"
#include "adapters/root/merge/program/worker_names.hpp"
#include "base/printable.hpp"
#include "base/readable.hpp"

namespace wherry::merge {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using root::Event;

// How long to retry while the sockets of a dead process still occupy the address.
constexpr auto kAddressTimeout = 20s;
// Bytes of an output's name. With the suffixes of shards and journals it does not exceed the limit of file systems.
constexpr std::size_t kLongestName = 220;

// Limits the memory of this process: an array in a damaged file may claim two billion elements. Then reading it fails
// instead of exhausting the machine. Memory of windows does not count. Each shard needs memory for its trees and for
// the stacks of its threads.
void limit_memory(unsigned shards) {
  constexpr rlim_t kOfShard = rlim_t{256} << 20;
  const rlim_t most = (rlim_t{4} << 30) + (shards - 1) * kOfShard;
  rlimit limit{};
  ::getrlimit(RLIMIT_DATA, &limit);
  limit.rlim_cur = std::min(limit.rlim_cur, most);
  ::setrlimit(RLIMIT_DATA, &limit);
}

// Resets the signal handlers: those of ROOT print the stack with a debugger, which takes seconds. The supervisor needs
// the process to die at once.
void set_up_root(unsigned shards, State& state) {
  limit_memory(shards);
  ROOT::EnableThreadSafety();
  gROOT->SetBatch();
  gSystem->ResetSignals();
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) std::signal(signal, SIG_DFL);
  // Exceeding `ulimit -f` is then an error of the output, like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  stop_on_signals(state);
}

class Serving {
 public:
  Serving(const ProgramOptions& options, State& state)
      : options_(options),
        state_(state),
        missing_(state),
        server_(listen(options, state)),
        drawn_(!options.quiet && ::isatty(STDERR_FILENO) == 1) {
    server_->local().to_string().copy(state.address.data(), state.address.size() - 1);
    // Outputs are opened first, so that one that cannot be written is reported before a worker sends.
    if (options_.by_name) {
      go_on_with_unfinished();
    } else if (!is_complete(options_.output)) {
      output_for(options_.output);
    }
    note_if_ended();
    if (options_.quiet) return;
    message(state_.end_resumed ? "an earlier run was interrupted after its workers were done: completing its output"
                               : "listening on " + server_->local().to_string());
  }

  int run() {
    const StuckWatch watch(state_, std::chrono::seconds(options_.file_time),
                           [this](const std::string& line) { message(line); });
    while (!state_.stopped && !state_.failed && !state_.end_resumed && !all_done()) {
      auto event = server_->next(100ms);
      if (event) take(*event);
      look_for_missing();
      draw();
    }
    if (state_.stopped && !state_.failed && !state_.end_resumed) take_what_was_said();
    state_.present = connected_.size() + state_.missing.size();
    state_.closing = true;
    bool good = true;
    for (auto& [path, output] : outputs_) good = output->close() && good;
    if (drawn_) std::fputs("\r\x1b[K", stderr);
    return good && !state_.failed ? 0 : 1;
  }

 private:
  // Listens. After a restart, uses the address of the previous process, whose sockets may outlive it for a moment.
  static std::unique_ptr<root::WindowServer> listen(const ProgramOptions& options, const State& state) {
    if (state.address[0] == 0) return std::make_unique<root::WindowServer>(options.listen, server_options(options));
    for (const auto end = Clock::now() + kAddressTimeout;;) {
      try {
        return std::make_unique<root::WindowServer>(state.address.data(), server_options(options));
      } catch (const Error& error) {
        if (error.code().value() != EADDRINUSE || Clock::now() > end) throw;
        std::this_thread::sleep_for(50ms);
      }
    }
  }

  static root::ServerOptions server_options(const ProgramOptions& options) {
    root::ServerOptions server;
    server.budget = options.pool;
    server.max_file = options.max_file;
    if (!is_sharded(options)) {
      server.output = std::filesystem::absolute(options.output).string() + (options.by_name ? "/" : "");
    }
    return server;
  }

  // Whether outputs have shards. Then workers are not told where the output is: they would find only the files of
  // shard 0.
  static bool is_sharded(const ProgramOptions& options) {
    if (options.shards > 1) return true;
    if (!options.by_name) return !shards_beside(options.output).empty();
    const std::filesystem::directory_iterator entries(options.output);
    return std::any_of(begin(entries), end(entries),
                       [](const auto& entry) { return output_of_shard(entry.path().string()).has_value(); });
  }

  // Finds out whether an earlier run was interrupted at its end. Then this run only completes the output.
  void note_if_ended() {
    for (const auto& [path, output] : outputs_) {
      if (!output->ended()) continue;
      state_.end_resumed = true;
      if (!output->ended_whole()) state_.end_was_incomplete = true;
    }
  }

  [[nodiscard]] bool all_done() const {
    const std::size_t over = state_.finished + state_.lost;
    if (options_.workers > 0) return over >= options_.workers;
    return over > 0 && connected_.empty() && missing_.size() == 0;
  }

  // Receives everything that workers have sent before the signal: a worker does not keep the files that it handed over.
  void take_what_was_said() {
    for (std::size_t left = server_->settle(); left > 0; --left) {
      if (auto event = server_->next(0ms)) take(*event);
    }
  }

  void take(Event& event) {
    const root::Worker& worker = *event.worker;
    switch (event.kind) {
      case Event::Kind::joined:
        join(worker);
        break;
      case Event::Kind::posted:
        if (!state_.banned.contains(name_of(worker.id))) {
          queue(event.file);
        }
        break;
      case Event::Kind::finished:
        ++state_.finished;
        for (auto& [path, output] : outputs_) output->forget(worker.id);
        leave(worker);
        break;
      case Event::Kind::gone:
        if (connected_.contains(worker.number)) {
          const WorkerEntry entry = state_.connected.erase(name_of(worker.id)).value_or(entry_of(worker));
          state_.lose(entry);
          state_.lost_bytes += event.lost;
          message(fmt::format("worker {}, {}, is gone without finishing, {} of an unfinished file lost: {}",
                              worker.number, describe(entry), human_bytes(event.lost), event.reason));
        }
        leave(worker);
        break;
    }
  }

  void queue(root::PostedFile& file) {
    const std::string path = path_for(file.name());
    std::string reason = outputs_.contains(path) ? "" : objection(path);
    if (reason.empty() && output_for(path).ended()) reason = path + " is complete but for its end";
    note_output_of(file.worker(), path);
    if (!reason.empty()) {
      ++state_.refused;
      {
        const std::lock_guard lock(name_lists());
        state_.refused_of.insert(path);
      }
      message(fmt::format("a file of worker {} is refused, and the worker dropped: {}", file.worker().number, reason));
      file.refuse(reason);
    } else {
      output_for(path).push(std::move(file));
    }
  }

  // Remembers the output of a worker's files, for the report if the worker is lost.
  void note_output_of(const root::Worker& worker, const std::string& path) {
    auto entry = state_.connected.erase(name_of(worker.id));
    if (!entry) return;
    entry->output = {};
    path.copy(entry->output.data(), entry->output.size() - 1);
    state_.connected.insert(*entry);
  }

  static WorkerEntry entry_of(const root::Worker& worker) {
    const auto process = static_cast<pid_t>(worker.peer.pid);
    WorkerEntry entry{.process = process, .returns = worker.returns, .command = command_of(process)};
    name_of(worker.id).copy(entry.name.data(), kWorkerName);
    return entry;
  }

  void join(const root::Worker& worker) {
    if (state_.banned.contains(name_of(worker.id))) {
      server_->drop(worker.number, "an earlier file of this worker killed the merging process");
      return;
    }
    const WorkerEntry entry = entry_of(worker);
    state_.missing.erase(name_of(entry));
    if (state_.gone.erase(name_of(entry))) --state_.lost;
    state_.connected.insert(entry);
    connected_.insert(worker.number);
    tell_outputs();
  }

  void leave(const root::Worker& worker) {
    if (connected_.erase(worker.number) > 0) state_.connected.erase(name_of(worker.id));
    tell_outputs();
  }

  void look_for_missing() {
    if (missing_.size() == 0 || Clock::now() < next_look_) return;
    next_look_ = Clock::now() + 100ms;
    const std::size_t gone = missing_.give_up();
    if (gone > 0) message(counted(gone, "worker") + " will not come back after the merging process died");
    if (missing_.size() == 0 || !missing_.is_late() || std::exchange(told_of_missing_, true)) return;
    message(fmt::format("waiting for {} to come back; by process: {}", counted(missing_.size(), "worker"),
                        fmt::join(missing_.processes(), ", ")));
  }

  void tell_outputs() {
    for (auto& [path, output] : outputs_) output->set_workers(connected_.size());
  }

  // Maps a worker's name to a file in the directory. Only the last component of the name is used, so that it cannot
  // refer to a file elsewhere.
  std::string path_for(const std::string& name) const {
    if (!options_.by_name) return options_.output;
    std::string file = std::filesystem::path(name).filename().string();
    if (file.empty() || file == "." || file == "..") file = "merged.root";
    return (std::filesystem::path(options_.output) / file).string();
  }

  // Returns why a file of this name cannot be begun; empty if it can.
  [[nodiscard]] std::string objection(const std::string& path) const {
    const std::string name = std::filesystem::path(path).filename().string();
    if (name.size() > kLongestName) return "its name is longer than " + std::to_string(kLongestName) + " bytes";
    for (const std::string_view own : {".journal", ".journal.new", "~"}) {
      if (name.ends_with(own)) return "names that end with " + std::string(own) + " are reserved";
    }
    if (output_of_shard(name)) return "its name is reserved for a shard of another output";
    if (std::filesystem::is_directory(path)) return path + " is a directory";
    if (is_complete(path)) return path + " is complete";
    return objection_to(options_, path);
  }

  // Whether a previous process, which died later, has completed this output. --force must not replace it.
  [[nodiscard]] bool is_complete(const std::string& path) const {
    return state_.closing && std::filesystem::exists(path) && !std::filesystem::exists(Journal::path_of(path));
  }

  ShardedOutput& output_for(const std::string& path) {
    auto& output = outputs_[path];
    if (!output) {
      state_.outputs.insert(path);
      const auto print = [this](const std::string& line) { message(line); };
      output = std::make_unique<ShardedOutput>(path, options_, state_, print);
      output->set_workers(connected_.size());
    }
    return *output;
  }

  // Opens the outputs that an earlier run or process has begun, because perhaps no worker posts under their names
  // again.
  void go_on_with_unfinished() {
    for (const std::string& path : unfinished_outputs(options_.output)) {
      const std::string reason = why_not_to_go_on_with(path);
      if (reason.empty()) {
        output_for(path);
      } else {
        message(fmt::format("{} is not complete, and is left alone: {}", path, reason));
      }
    }
  }

  // Returns why an unfinished output must not be continued; empty if it may. A file that only has the name of a journal
  // belongs to another program, and so does the file beside it.
  [[nodiscard]] std::string why_not_to_go_on_with(const std::string& path) const {
    if (Journal::is_in_use(path)) return "another process is merging it";
    try {
      const bool begun = Journal::recover(path).has_value() || !shards_beside(path).empty();
      return begun ? objection(path) : Journal::path_of(path) + " contains no merged files";
    } catch (const std::exception& problem) {
      return problem.what();
    }
  }

  void message(const std::string& line) {
    const std::lock_guard lock(mutex_);
    std::fprintf(stderr, "%swherry-merge: %s\n", drawn_ ? "\r\x1b[K" : "", printable(line).c_str());
  }

  void draw() {
    if (!drawn_ || Clock::now() < next_drawing_) return;
    next_drawing_ = Clock::now() + 200ms;
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    const std::lock_guard lock(mutex_);
    fmt::print(stderr, "\r\x1b[K{}, {} finished | {}, {}, {}", counted(connected_.size(), "worker"),
               state_.finished.load(), counted(state_.files, "file"), human_bytes(state_.bytes),
               human_rate(state_.bytes, seconds));
    std::fflush(stderr);
  }

  const ProgramOptions& options_;
  State& state_;
  MissingWorkers missing_;  // before server_: it observes the processes while listen() waits for the address
  std::unique_ptr<root::WindowServer> server_;
  bool told_of_missing_ = false;
  bool drawn_;
  std::mutex mutex_;  // guards standard error
  std::set<std::uint64_t> connected_;
  std::map<std::string, std::unique_ptr<ShardedOutput>> outputs_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point next_drawing_ = begin_;
  Clock::time_point next_look_ = begin_;
};

}  // namespace

int serve(const ProgramOptions& options, State& state) {
  set_up_root(options.shards, state);
  return Serving(options, state).run();
}

}  // namespace wherry::merge
