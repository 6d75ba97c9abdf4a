// SPDX-License-Identifier: Apache-2.0
#include "file/mount/write_behind.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <string>
#include <system_error>
#include <utility>

#include "base/log.hpp"
#include "base/printable.hpp"
#include "file/mount/fault_points.hpp"

namespace wherry::file::mount {

WriteBehind::WriteBehind(Nodes& nodes, UniqueFd memory, KeptDescriptors* descriptors)
    : nodes_(nodes), buffer_(std::move(memory)), descriptors_(descriptors) {
  if (descriptors == nullptr) return;
  for (WriteBuffer::FileNumber number = 0; number < layout::kWriteBufferFiles; ++number) {
    const KeptKey key{.kind = KeptKind::ring, .id = number};
    UniqueFd left = descriptors->take(key);
    auto ring = left.valid() ? WriteRing::resume(std::move(left)) : nullptr;
    if (ring == nullptr) continue;
    ring->set_ended([descriptors, key] { descriptors->drop(key); });
    left_rings_[number] = std::move(ring);
  }
}

void WriteBehind::replay(Host& host) {
  const auto for_each_node = [this](const Identity& identity, auto call) {
    for (const NodeId node : nodes_.open_nodes()) {
      if (is_same_file(nodes_.identity(node).value_or(Identity()), identity)) call(node);
    }
  };
  const auto tell = [&](const Replayed& one) {
    if (one.error == 0) return;
    log::write(log::Level::error, "wherry mount: writes to " + printable(one.name) +
                                      " that an earlier daemon had held back" +
                                      " are lost: " + std::system_category().message(one.error));
    for_each_node(one.identity, [&](NodeId node) {
      for (const auto& file : nodes_.open_files(node)) file->errors().note(one.error);
    });
  };
  const auto names = [&](const Identity& identity) {
    std::vector<std::string> known;
    for_each_node(identity, [&](NodeId node) {
      if (auto path = nodes_.path(node)) known.push_back(*std::move(path));
    });
    return known;
  };
  mount::replay(buffer_, host, tell, names, left_rings_);
  left_rings_.clear();
}

void WriteBehind::start(std::function<std::uint64_t()> client) {
  client_ = std::move(client);
  if (buffer_.bytes() == 0) return;
  const std::lock_guard lock(mutex_);
  thread_ = std::thread([this] { run(); });
  runs_ = true;
}

void WriteBehind::stop() {
  {
    const std::lock_guard lock(mutex_);
    runs_ = false;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (const NodeId node : kept()) give_back(node);
  for (const NodeId node : nodes_.open_nodes()) {
    for (const auto& file : nodes_.open_files(node)) log_errors(node, *file);
  }
}

void WriteBehind::log_errors(NodeId node, OpenFile& file) {
  const int error = file.errors().take_last();
  if (error == 0) return;
  log::write(log::Level::error, "wherry mount: writes to " + printable(nodes_.path(node).value_or("a removed file")) +
                                    " are lost: " + std::system_category().message(error));
}

WriteBehind::Kept WriteBehind::find(NodeId node) const {
  // KEPT acquire: a write that was acknowledged is found.
  if (count_.load(std::memory_order_acquire) == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(files_, [node](const Kept& one) { return one->node() == node; });
  return found == files_.end() ? nullptr : *found;
}

bool WriteBehind::keeps(NodeId node) const {
  const Kept kept = find(node);
  return kept != nullptr && kept->is_held();
}

std::vector<NodeId> WriteBehind::kept() const {
  if (count_.load(std::memory_order_acquire) == 0) return {};  // KEPT acquire
  std::vector<NodeId> nodes;
  const std::lock_guard lock(mutex_);
  for (const Kept& one : files_) nodes.push_back(one->node());
  return nodes;
}

void WriteBehind::rename() {
  for (const NodeId node : kept()) {
    const Kept kept = find(node);
    const auto path = nodes_.path(node);
    if (kept != nullptr && path) kept->rename(*path);
  }
}

/// Null: writes to the file are not held back.
WriteBehind::Kept WriteBehind::ask(NodeId node, OpenFile& file) {
  const std::uint64_t client = client_ ? client_() : 0;
  if (client == 0 || !file.writing().is_due()) return nullptr;
  // After a restart the server knows only what was used since. So it may delegate a file that is open twice.
  if (nodes_.open_files(node).size() != 1) return nullptr;
  const auto path = nodes_.path(node);
  const auto identity = nodes_.identity(node);
  if (!path || !identity) return nullptr;
  auto made = std::make_shared<KeptFile>(buffer_, nodes_, node, file, buffer_.bytes() / kShares);
  {
    const std::lock_guard lock(mutex_);
    const bool is_there = std::ranges::any_of(files_, [node](const Kept& one) { return one->node() == node; });
    if (!runs_ || is_there) return nullptr;
    files_.push_back(made);
    count_.store(files_.size(), std::memory_order_release);  // KEPT release: before the first write is acknowledged
  }
  // If the connection for recalls broke meanwhile, recall_all() marks the file, or `client_()` differs here.
  const bool granted = client_() == client && made->ask(client, *identity, *path);
  file.writing().note(granted);
  if (granted) pass(FaultPoint::delegated);
  if (granted) return made;
  end(made, false);
  return nullptr;
}

std::size_t WriteBehind::write(NodeId node, OpenFile& file, std::uint64_t offset, std::span<const std::byte> from,
                               const Writer& by) {
  Kept kept = find(node);
  if (kept == nullptr) kept = ask(node, file);
  if (kept == nullptr) return 0;
  std::size_t done = 0;
  while (&kept->file() == &file && done < from.size()) {
    const KeptFile::Kept now = kept->keep(offset + done, from.subspan(done), by);
    done += now.bytes;
    if (now.wakes) wake();
    if (now.why == KeptFile::Why::over) break;
    if (now.why == KeptFile::Why::no_room) kept->renew(client_(), 1);
    if (now.why == KeptFile::Why::sending) kept->empty_ring();
    // The memory may be full of other files' writes.
    if (now.why == KeptFile::Why::full && !kept->write_some() && now.bytes == 0) break;
  }
  if (done < from.size()) end(kept, false);
  return done;
}

bool WriteBehind::append(NodeId node, OpenFile& file, std::span<const std::byte> from, const Writer& by,
                         const std::function<void(std::uint64_t)>& begin) {
  if (from.size() > KeptFile::kMostAppended) return false;
  Kept kept = find(node);
  if (kept == nullptr) kept = ask(node, file);
  if (kept == nullptr) return false;
  bool is_renewed = false;
  while (&kept->file() == &file) {
    const KeptFile::Kept now = kept->append(from, by, begin);
    if (now.wakes) wake();
    if (now.why == KeptFile::Why::done) return true;
    if (now.why == KeptFile::Why::over) break;
    if (now.why == KeptFile::Why::no_room && std::exchange(is_renewed, true)) break;
    if (now.why == KeptFile::Why::no_room) kept->renew(client_(), from.size());
    if (now.why == KeptFile::Why::sending) kept->empty_ring();
    // The memory may be full of other files' writes.
    if (now.why == KeptFile::Why::full && !kept->write_some()) break;
  }
  end(kept, false);
  return false;
}

int WriteBehind::attach(NodeId node, const OpenFile& file, std::unique_ptr<WriteRing> ring, const Writer& by) {
  const Kept kept = find(node);
  if (kept == nullptr || &kept->file() != &file) return EAGAIN;
  const int error = kept->attach(std::move(ring), by, [this](WriteRing& made, WriteBuffer::FileNumber number) {
    const KeptKey key{.kind = KeptKind::ring, .id = number};
    if (descriptors_ == nullptr || !descriptors_->keep(key, made.descriptor())) return;
    made.set_ended([descriptors = descriptors_, key] { descriptors->drop(key); });
  });
  if (error == 0) wake();
  return error;
}

void WriteBehind::take_ring(NodeId node) {
  const Kept kept = find(node);
  if (kept == nullptr) return;
  // Otherwise the program would end the ring: the server may be slower than the program.
  kept->empty_ring();
  if (kept->look_at_ring(true)) kept->renew(client_(), KeptFile::kRoomForRing);
  wake();
}

void WriteBehind::settle(NodeId node) {
  if (const Kept kept = find(node)) kept->write_all();
}

void WriteBehind::settle_for_pages(NodeId node) {
  const Kept kept = find(node);
  if (kept == nullptr) return;
  kept->end_ring();
  kept->write_all();
}

void WriteBehind::settle_all() {
  for (const NodeId node : kept()) settle(node);
}

void WriteBehind::give_back(NodeId node) {
  if (const Kept kept = find(node)) end(kept, false);
}

void WriteBehind::close(NodeId node, const OpenFile& file) {
  const Kept kept = find(node);
  if (kept != nullptr && &kept->file() == &file) end(kept, true);
}

/// The file stays in the list until it is over, so that no other call asks the server meanwhile.
void WriteBehind::end(const Kept& kept, bool closes) {
  kept->give_back(closes);
  const std::lock_guard lock(mutex_);
  std::erase(files_, kept);
  count_.store(files_.size(), std::memory_order_release);  // KEPT release
}

std::vector<WriteBehind::FileIdentity> WriteBehind::recall(const std::vector<FileIdentity>& files) {
  std::vector<FileIdentity> others;
  {
    const std::lock_guard lock(mutex_);
    for (const FileIdentity& file : files) {
      if (std::ranges::none_of(files_, [&](const Kept& one) { return one->recall(file); })) others.push_back(file);
    }
  }
  pass(FaultPoint::recalled);
  changed_.notify_all();
  return others;
}

void WriteBehind::recall_all() {
  {
    const std::lock_guard lock(mutex_);
    for (const Kept& one : files_) one->recall();
  }
  changed_.notify_all();
}

/// Takes the lock: otherwise the thread could check just before, and then sleep.
void WriteBehind::wake() {
  {
    const std::lock_guard lock(mutex_);
  }
  changed_.notify_all();
}

/// False: no memory at the moment.
bool WriteBehind::attend_to(const Kept& kept) {
  try {
    const bool needs_room = kept->look_at_ring(false);
    if (!kept->is_recalled()) kept->write_due();
    if (needs_room) kept->renew(client_(), KeptFile::kRoomForRing);
    if (kept->is_recalled() || !kept->is_held()) end(kept, false);
    return true;
  } catch (const std::exception& error) {
    log::write(log::Level::error,
               std::string("wherry mount: cannot send held-back writes now, will retry: ") + error.what());
    return false;
  }
}

/// Sends one request at a time, so that a recall waits for at most one.
void WriteBehind::run() {
  std::unique_lock lock(mutex_);
  while (runs_) {
    auto first = KeptFile::Clock::time_point::max();
    Kept next;
    for (const Kept& one : files_) {
      const auto due = one->due();
      if (due >= first) continue;
      first = due;
      next = one;
    }
    if (next == nullptr) {
      changed_.wait(lock);
      continue;
    }
    if (first > KeptFile::Clock::now()) {
      changed_.wait_until(lock, first);
      continue;
    }
    lock.unlock();
    const bool is_done = attend_to(next);
    next.reset();
    lock.lock();
    if (!is_done) changed_.wait_for(lock, KeptFile::kKeptFor);
  }
}

}  // namespace wherry::file::mount
