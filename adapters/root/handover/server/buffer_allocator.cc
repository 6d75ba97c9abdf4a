// SPDX-License-Identifier: Apache-2.0
#include "buffer_allocator.hpp"

#include <algorithm>
#include <utility>

#include <wherry/error.hpp>

namespace wherry::root {

using State = Session::State;

PoolLimits BufferAllocator::limits_of(const ServerOptions& options) {
  return {.budget = options.budget,
          .least = std::min(options.least, options.unit),
          .unit = options.unit,
          .most = options.max_file + options.unit};
}

void BufferAllocator::join(std::uint64_t number, const std::shared_ptr<Session>& session) {
  const std::lock_guard lock(mutex_);
  sessions_[number] = session;
}

void BufferAllocator::on_message(Session& session, const ControlMessage& message) {
  // The program's callback is called without the lock, because it may take long.
  const bool already = message.kind() == RootKind::post && (message.record.flags & layout::kRootAgain) != 0 &&
                       options_.already && options_.already(session.worker->id, message.record.value);
  const std::lock_guard lock(mutex_);
  if (session.is_closing()) return;
  const bool greets = session.state == State::greeting;
  if (greets != (message.kind() == RootKind::hello)) return session.close("it did not begin with a greeting");
  if (!greets && session.state != State::idle && session.state != State::filling) {
    return session.close("it sent a message out of turn");
  }
  switch (message.kind()) {
    case RootKind::hello:
      return greet(session, message.record);
    case RootKind::need:
      return need(session, message.record.bytes);
    case RootKind::post:
      return post(session, message, already);
    case RootKind::leave:
      leave_lease(session);
      return serve();
    case RootKind::listen:
      session.listens = true;
      return report_all_done(session);
    case RootKind::finished:
      return finish(session);
    default:
      return session.close("it sent a message of an unknown kind");
  }
}

void BufferAllocator::greet(Session& session, const RootRecord& hello) {
  if (hello.value != layout::kRootVersion) {
    return session.close("it speaks another version; use the same release of Wherry on both sides");
  }
  session.state = State::idle;
  std::copy(std::begin(hello.id), std::end(hello.id), session.worker->id.begin());
  session.worker->returns = (hello.flags & layout::kRootReturns) != 0;
  RootRecord welcome = record_of(RootKind::welcome, options_.max_file, options_.unit);
  welcome.place = options_.files_per_worker;
  welcome.flags = static_cast<std::uint32_t>(session.worker->number - 1);
  const bool fits = options_.output.size() <= layout::kRootMaxOutput;
  if (!session.send(welcome, fits ? options_.output : "")) return;
  events_->push({.kind = Event::Kind::joined, .worker = session.worker, .file = {}, .reason = {}});
}

void BufferAllocator::need(Session& session, std::uint64_t bytes) {
  if (bytes == 0 || bytes > pool_.limits().most) return session.close("it asked for more than the largest file");
  if (session.lease != nullptr && bytes > session.lease->range->backed() && !pool_.may_grow(*session.lease->range)) {
    return session.close("it asked for more of a lease that does not grow");
  }
  session.wanted = bytes;
  session.state = session.lease == nullptr ? State::waiting : State::growing;
  queue_.push_back(&session);
  serve();
}

/// Returns why a posted file is invalid, or null.
const char* BufferAllocator::fault_in(const Session& session, const ControlMessage& post) const {
  const auto& [record, name] = post;
  if (session.lease == nullptr) return "it posted a file that it has no memory for";
  const GrantedLease& granted = *session.lease;
  const std::size_t backed = granted.range->backed();
  if (record.place % layout::kRootPlace != 0 || record.place >= options_.unit || record.place >= backed) {
    return "it posted a file where none may begin";
  }
  if (record.bytes == 0 || record.bytes > options_.max_file || record.bytes > backed - record.place) {
    return "it posted a file that it has no memory for";
  }
  if (!granted.files.is_free(record.place, record.place + record.bytes)) return "it posted overlapping files";
  if (session.posted == options_.files_per_worker) return "it posted more files than files_per_worker allows";
  if (record.value <= session.last_sequence) return "it posted files out of order";
  if (name.empty() || name.size() > layout::kRootMaxName || name.find('\0') != std::string::npos) {
    return "it posted a file without a proper name";
  }
  return nullptr;
}

void BufferAllocator::post(Session& session, const ControlMessage& message, bool already) {
  const auto& [record, name] = message;
  if (const char* fault = fault_in(session, message); fault != nullptr) return session.close(fault);
  session.last_sequence = record.value;
  session.lease->over_budget = false;
  session.listens = false;
  ++session.posted;
  session.lease->files.take(record.place, record.place + record.bytes);
  auto file = std::make_unique<PostedFile::Impl>();
  file->allocator = shared_from_this();
  file->worker = session.worker;
  file->lease = session.lease;
  file->name = name;
  file->place = record.place;
  file->bytes = record.bytes;
  file->sequence = record.value;
  ++session.lease->posted;
  if ((record.flags & layout::kRootLeaves) != 0) leave_lease(session);
  if (put_off_ && session.lease != nullptr && session.lease->posted >= kTurn) recall(session);
  if (already) {
    free(*file);
    report_done(session, record.value);
    return serve();
  }
  events_->push(
      {.kind = Event::Kind::posted, .worker = session.worker, .file = PostedFile(std::move(file)), .reason = {}});
}

/// Ends the session's use of its lease, which becomes free when its files are done.
void BufferAllocator::leave_lease(Session& session) {
  const auto granted = std::exchange(session.lease, nullptr);
  if (granted == nullptr) return;
  if (session.state == State::filling) session.state = State::idle;
  // Several files that are not done: the worker writes faster than the server reads, and gets large leases. Only one
  // file posted in the lease: it does not.
  if (granted->files.count() > 1) session.large = true;
  if (granted->posted < 2) session.large = false;
  granted->left = true;
  if (granted->files.empty()) return release(*granted, &session);
  ++leaving_;
}

/// Returns a lease to the pool, or retires it if its holder may still write there.
/// @param session  the session that it was granted to; null if that is gone
void BufferAllocator::release(GrantedLease& granted, Session* session) {
  if (granted.untrustworthy) {
    pool_.retire(std::move(granted.range));
  } else {
    pool_.give_back(std::move(granted.range));
  }
  if (session != nullptr) --session->leases;
  moved_ = freed_ = Clock::now();
}

void BufferAllocator::finish(Session& session) {
  if (session.lease != nullptr || session.posted != 0) return session.close("it finished before its files were done");
  session.state = State::finished;
  session.send(record_of(RootKind::farewell));
  events_->push({.kind = Event::Kind::finished, .worker = session.worker, .file = {}, .reason = {}});
}

void BufferAllocator::leave(Session& session, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  const std::size_t lost = session.lease == nullptr ? 0 : session.lease->range->backed();
  if (session.is_closing()) session.send(record_of(RootKind::refuse), reason.substr(0, layout::kRootMaxReason));
  // The worker may keep writing there. The lease is retired when its files are done, so no other file uses its pages.
  if (session.lease != nullptr) session.lease->untrustworthy = true;
  leave_lease(session);
  sessions_.erase(session.worker->number);
  std::erase(queue_, &session);
  if (session.takes_part()) {
    events_->push({.kind = Event::Kind::gone, .worker = session.worker, .file = {}, .reason = reason, .lost = lost});
  }
  serve();
}

std::shared_ptr<Session> BufferAllocator::closing() {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, session] : sessions_) {
    if (session->is_closing()) return session;
  }
  return nullptr;
}

void BufferAllocator::on_news(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

void BufferAllocator::close() {
  const std::lock_guard lock(mutex_);
  wake_ = nullptr;
  events_ = nullptr;
  queue_.clear();
  sessions_.clear();
}

void BufferAllocator::done(PostedFile::Impl& file) {
  const std::lock_guard lock(mutex_);
  Session* const session = free(file);
  if (session != nullptr) report_done(*session, file.sequence);
  serve();
  // Wakes the server's thread only if it may have to grant over the budget, or to remove the session.
  if (wake_ && ((!queue_.empty() && leaving_ == 0) || (session != nullptr && session->is_closing()))) wake_();
}

void BufferAllocator::refuse(PostedFile::Impl& file, std::string_view reason) {
  const std::lock_guard lock(mutex_);
  if (Session* const session = free(file)) session->close(reason);
  serve();
  if (wake_) wake_();
}

/// Frees the place of a posted file. Returns the session that posted it; null if that is gone.
Session* BufferAllocator::free(PostedFile::Impl& file) {
  Session* const session = find(file.worker->number);
  if (session != nullptr) --session->posted;
  GrantedLease& granted = *file.lease;
  granted.files.free(file.place);
  if (granted.left && granted.files.empty()) {
    --leaving_;
    release(granted, session);
  }
  return session;
}

/// Reports done files in batches, because each message wakes the worker.
void BufferAllocator::report_done(Session& session, std::uint64_t sequence) {
  session.unreported.push_back(sequence);
  if (session.listens || session.unreported.size() >= session.posted) report_all_done(session);
}

void BufferAllocator::report_all_done(Session& session) {
  session.frames.hold();
  for (const std::uint64_t sequence : session.unreported) session.send(record_of(RootKind::done, sequence));
  (void)session.frames.flush();  // ignored: the next receive reports a broken connection
  session.unreported.clear();
}

void BufferAllocator::drop(std::uint64_t number, std::string_view reason) {
  const std::lock_guard lock(mutex_);
  if (Session* const session = find(number)) session->close(reason);
  if (wake_) wake_();
}

Session* BufferAllocator::find(std::uint64_t number) {
  const auto found = sessions_.find(number);
  return found == sessions_.end() ? nullptr : found->second.get();
}

ServerStatistics BufferAllocator::statistics() {
  const std::lock_guard lock(mutex_);
  return {.workers = sessions_.size(),
          .leases = pool_.leases(),
          .held = pool_.used() - pool_.warm(),
          .warm = pool_.warm(),
          .waiting = queue_.size(),
          .over_budget_grants = over_budget_grants_};
}

}  // namespace wherry::root
