// SPDX-License-Identifier: Apache-2.0
#include "collect/collector.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <ctime>
#include <utility>

#include "base/clock.hpp"
#include "base/readable.hpp"
#include "base/service_process.hpp"
#include "collect/session.hpp"

namespace wherry::tools {
namespace {

constexpr int kAcceptPauseMs = 100;

double seconds_between(std::uint64_t from_ns, std::uint64_t to_ns) {
  return from_ns == 0 || to_ns < from_ns ? 0 : static_cast<double>(to_ns - from_ns) / 1e9;
}

}  // namespace

Collector::Collector(CollectOptions options)
    : options_(std::move(options)),
      signals_(prepare_service_process({SIGINT, SIGTERM})),
      session_done_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      destination_(options_.into, !options_.no_sync) {
  if (!signals_.valid() || !session_done_.valid())
    throw Error(errno, "start", "", "raise the limit of open files (ulimit -n)");
  listener_ = listen_channel(options_.listen);
  report_.listen = listener_->address();
  report_.into = destination_.path();
  report_.durable = destination_.durable();
  const auto show = options_.quiet ? Progress::Show::never : Progress::Show::if_terminal;
  progress_ = std::make_unique<Progress>(show, [this] { return progress_text(); });
}

CollectReport Collector::run() {
  if (!options_.quiet) log("listening on " + report_.listen);
  while (!finished()) {
    if (!wait()) {
      interrupt();
      break;
    }
    reap();
    if (wants_more()) accept_waiting();
    // A late shipper is refused at once.
    if (options_.expect != 0 && came_ >= options_.expect) listener_.reset();
  }
  reap();
  progress_->stop();
  report_.interrupted = options_.expect != 0 && gone_ < options_.expect;
  report_.seconds = seconds_between(first_came_ns_, last_gone_ns_);
  return std::move(report_);
}

bool Collector::wants_more() const {
  return listener_ && running_.size() < options_.at_once && (options_.expect == 0 || came_ < options_.expect);
}

bool Collector::finished() const { return options_.expect != 0 && gone_ >= options_.expect; }

// Returns false after SIGINT or SIGTERM.
bool Collector::wait() {
  std::array<pollfd, 3> wanted{{{signals_.get(), POLLIN, 0},
                                {session_done_.get(), POLLIN, 0},
                                {wants_more() ? listener_->descriptor() : -1, POLLIN, 0}}};
  if (::poll(wanted.data(), wanted.size(), -1) < 0 && errno != EINTR) throw Error(errno, "wait", report_.listen, "");
  std::uint64_t count = 0;
  if (wanted[1].revents != 0 && ::read(session_done_.get(), &count, sizeof count) < 0 && errno != EAGAIN) {
    throw Error(errno, "wait", report_.listen, "");
  }
  return wanted[0].revents == 0;
}

void Collector::accept_waiting() {
  try {
    while (wants_more()) {
      std::unique_ptr<Channel> channel = listener_->try_accept();
      if (!channel) return;
      start(std::move(channel));
    }
  } catch (const std::exception& error) {
    // A failed accept does not end the other sessions. If descriptors or threads are scarce, the connection stays
    // pending and the accept fails again at once, so this pauses.
    if (error.what() != last_accept_error_) log(error.what());
    last_accept_error_ = error.what();
    ::poll(nullptr, 0, kAcceptPauseMs);
  }
}

void Collector::start(std::unique_ptr<Channel> channel) {
  Running& session = running_.emplace_back();
  session.channel = std::move(channel);
  const auto warn = [this](const std::string& text) { log(text); };
  try {
    session.thread = std::thread([this, &session, warn] {
      session.report = Session(*session.channel, destination_, totals_, warn).run();
      session.done = true;
      const std::uint64_t one = 1;
      if (::write(session_done_.get(), &one, sizeof one) < 0) return;  // the counter is full, so it will be read
    });
  } catch (...) {
    running_.pop_back();
    throw;
  }
  if (came_++ == 0) first_came_ns_ = monotonic_ns();
}

void Collector::reap() {
  for (auto session = running_.begin(); session != running_.end();) {
    if (!session->done) {
      ++session;
      continue;
    }
    if (session->thread.joinable()) session->thread.join();
    if (!options_.quiet || session->report.end != SessionEnd::complete) log(session->report.to_text());
    report_.add(std::move(session->report));
    session = running_.erase(session);
    last_gone_ns_ = monotonic_ns();
    ++gone_;
  }
}

// Prints a message with the time, because a collector may run for days and log to a file. May be called from any
// thread.
void Collector::log(const std::string& text) {
  const auto now = std::time(nullptr);
  progress_->message(fmt::format("wherry collect: {:%FT%T%z} {}", fmt::localtime(now), text));
}

void Collector::interrupt() {
  listener_.reset();
  for (Running& session : running_) {
    if (!session.done) session.channel->cancel();
  }
  for (Running& session : running_) session.thread.join();
}

std::string Collector::progress_text() const {
  const std::uint64_t bytes = totals_.bytes;
  const double seconds = seconds_between(first_came_ns_, monotonic_ns());
  const std::uint64_t rate =
      seconds > 0 ? static_cast<std::uint64_t>(std::llround(static_cast<double>(bytes) / seconds)) : 0;
  return fmt::format("collect: {} files, {}, {}/s, {} of {} shippers done {}", totals_.files.load(), human_bytes(bytes),
                     human_bytes(rate), gone_.load(), options_.expect != 0 ? options_.expect : came_.load(),
                     Progress::bar(bytes, totals_.announced_bytes));
}

}  // namespace wherry::tools
