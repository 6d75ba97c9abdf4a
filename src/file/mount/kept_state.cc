// SPDX-License-Identifier: Apache-2.0
#include "file/mount/kept_state.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <tuple>
#include <utility>
#include <vector>

#include <wherry/error.hpp>

#include "file/mount/fault_points.hpp"

namespace wherry::file::mount {
namespace {

using layout::KeptBoot;
using layout::KeptHead;
using layout::KeptLock;
using layout::KeptLocker;
using layout::KeptName;
using layout::KeptNode;
using layout::KeptNumber;
using layout::KeptOpen;
using layout::KeptStart;
using layout::KeptWord;

constexpr std::size_t kBytes = layout::kKeptPage + 2 * layout::kKeptHalf;
/// A log is rewritten when it has doubled since the last time, but not below this size.
constexpr std::uint64_t kLeastLog = std::uint64_t{1} << 20;
/// Bytes of records that a forgotten node leaves in the log, at least: the log is rewritten that much earlier.
constexpr std::uint64_t kForgottenBytes = 200;

constexpr std::size_t rounded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

template <class Record>
bool read_record(std::span<const std::byte> bytes, Record& record) {
  if (bytes.size() < sizeof record) return false;
  std::memcpy(&record, bytes.data(), sizeof record);
  return true;
}

std::string text_behind(std::span<const std::byte> record, std::size_t head) {
  const auto text = record.subspan(std::min(head, record.size()));
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

bool is_text(KeptWord word) {
  return word == KeptWord::directory || word == KeptWord::first_request || word == KeptWord::server ||
         word == KeptWord::root;
}

constexpr const char* kMountAgain = "unmount it, and mount it again";

}  // namespace

std::uint64_t KeptSnapshot::number(KeptWord word) const {
  const auto found = numbers.find(word);
  return found == numbers.end() ? 0 : found->second;
}

std::string KeptSnapshot::text(KeptWord word) const {
  const auto found = texts.find(word);
  return found == texts.end() ? std::string() : found->second;
}

void KeptSnapshot::for_each_name(
    const std::function<void(NodeId parent, const std::string& text, NodeId node)>& call) const {
  std::vector<std::tuple<std::uint64_t, NodeId, const std::string*, NodeId>> all;
  for (const auto& [parent, below] : names) {
    for (const auto& [text, name] : below) all.emplace_back(name.order, parent, &text, name.node);
  }
  std::ranges::sort(all);
  for (const auto& [order, parent, text, node] : all) call(parent, *text, node);
}

void KeptSnapshot::apply(std::span<const std::byte> record) {
  KeptHead head{};
  KeptNode node{};
  KeptNumber number{};
  KeptName name{};
  KeptOpen opened{};
  KeptLocker locker{};
  KeptLock lock{};
  if (!read_record(record, head)) return;
  const auto word = static_cast<KeptWord>(head.word);
  if (is_text(word)) {
    texts[word] = text_behind(record, sizeof head);
  } else if (word == KeptWord::node && read_record(record, node)) {
    nodes[node.node].identity = {.device = node.device,
                                 .inode = node.inode,
                                 .born_seconds = node.born_seconds,
                                 .born_nanoseconds = node.born_nanoseconds,
                                 .type = node.type};
    numbers[KeptWord::last_node] = std::max(numbers[KeptWord::last_node], node.node);
  } else if (word == KeptWord::named && read_record(record, name)) {
    names[name.parent][text_behind(record, sizeof name)] = {.node = name.node, .order = ++last_order_};
  } else if (word == KeptWord::unnamed && read_record(record, name)) {
    const auto below = names.find(name.parent);
    if (below != names.end() && below->second.erase(text_behind(record, sizeof name)) != 0 && below->second.empty())
      names.erase(below);
  } else if (word == KeptWord::opened && read_record(record, opened)) {
    open[opened.number] = opened;
    numbers[KeptWord::last_open] = std::max(numbers[KeptWord::last_open], opened.number);
  } else if (KeptBoot seen{}; word == KeptWord::boot && read_record(record, seen)) {
    HostBoot& noted = boots[seen.number];
    std::ranges::copy(seen.boot, noted.boot.begin());
    noted.lost = seen.lost != 0;
  } else if (word == KeptWord::locker && read_record(record, locker)) {
    lockers[locker.number].locker = locker;
    lockers[locker.number].open.push_back(locker.open);
  } else if (word == KeptWord::locked && read_record(record, lock)) {
    const auto found = lockers.find(lock.number);
    if (found == lockers.end()) return;
    found->second.held->set({.offset = lock.offset, .length = lock.length, .type = lock.type, .reserved = 0});
  } else if (word == KeptWord::renaming && read_record(record, number)) {
    const std::string both = text_behind(record, sizeof number);
    const std::size_t end = std::min(both.find('\0'), both.size());
    renaming[number.number] = {
        .flags = number.value, .from = both.substr(0, end), .to = both.substr(std::min(end + 1, both.size()))};
  } else if (read_record(record, number)) {
    apply(word, number.number, number.value);
  }
}

void KeptSnapshot::apply(KeptWord word, std::uint64_t number, std::uint64_t value) {
  switch (word) {
    case KeptWord::references:
      nodes[number].references = value;
      break;
    case KeptWord::forgotten:
      nodes.erase(number);
      break;
    case KeptWord::unlocker:
      lockers.erase(number);
      break;
    case KeptWord::closed:
      open.erase(number);
      boots.erase(number);
      break;
    case KeptWord::failed:
      if (const auto found = open.find(number); found != open.end())
        found->second.errors = static_cast<std::uint32_t>(value);
      break;
    case KeptWord::begun:
      begun[number] = value;
      break;
    case KeptWord::ended:
      begun.erase(number);
      renaming.erase(number);
      break;
    default:
      numbers[word] = number;
      break;
  }
}

UniqueFd KeptState::make_memory() {
  UniqueFd memory(::memfd_create("wherry-mount-state", MFD_CLOEXEC));
  if (!memory.valid()) throw Error(errno, "keep the state of", "a mount", "raise the limit of open files (ulimit -n)");
  if (::ftruncate(memory.get(), static_cast<off_t>(kBytes)) != 0)
    throw Error(errno, "keep the state of", "a mount", "raise the limit of file sizes (ulimit -f)");
  return memory;
}

KeptState::KeptState(const UniqueFd& memory) : memory_(memory.get()) {
  void* const mapped = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memory.get(), 0);
  if (mapped == MAP_FAILED)
    throw Error(errno, "map the state of", "a mount", "raise the limit of address space (ulimit -v)");
  start_ = static_cast<KeptStart*>(mapped);
  if (start_->version == 0) start_->version = layout::kKeptVersion;
  if (start_->version != layout::kKeptVersion) {
    const bool full = start_->version == layout::kKeptFull;
    ::munmap(start_, kBytes);
    if (!full) throw Error(EPROTO, "take over", "a mount of another version of Wherry", kMountAgain);
    throw Error(ENOSPC, "take over", "a mount whose state log is full", kMountAgain);
  }
  // KEPT acquire: the whole half.
  half_ = std::atomic_ref(start_->half).load(std::memory_order_acquire) & 1U;
  // KEPT acquire: the records below it.
  used_ = std::min(std::atomic_ref(start_->used[half_]).load(std::memory_order_acquire), layout::kKeptHalf);
  rewrite_at_ = std::max(2 * used_, kLeastLog);
}

KeptState::~KeptState() { ::munmap(start_, kBytes); }

std::byte* KeptState::half(std::uint32_t which) const {
  return reinterpret_cast<std::byte*>(start_) + layout::kKeptPage + which * layout::kKeptHalf;
}

KeptSnapshot KeptState::load() const {
  KeptSnapshot snapshot;
  std::span<const std::byte> rest(half(half_), used_);
  KeptHead head{};
  while (read_record(rest, head) && head.bytes >= sizeof head && head.bytes <= rest.size()) {
    snapshot.apply(rest.first(head.bytes));
    rest = rest.subspan(std::min(rounded(head.bytes), rest.size()));
  }
  return snapshot;
}

/// Returns the place for a record of `bytes`. Null: nothing is kept any more.
std::byte* KeptState::make_room(std::size_t bytes) {
  if (rounded(bytes) > layout::kKeptHalf - used_) start_->version = layout::kKeptFull;
  if (start_->version == layout::kKeptFull) return nullptr;
  std::byte* const place = half(half_) + used_;
  used_ += rounded(bytes);
  return place;
}

void KeptState::commit() {
  pass(FaultPoint::state_written);
  // KEPT release: the records below it.
  std::atomic_ref(start_->used[half_]).store(used_, std::memory_order_release);
  pass(FaultPoint::state_committed);
}

/// If memory is short, the old log continues.
void KeptState::rewrite() noexcept {
  const std::uint32_t half_before = half_;
  const std::uint64_t used_before = used_;
  try {
    const KeptSnapshot snapshot = load();
    half_ = 1 - half_before;
    used_ = 0;
    write(snapshot);
  } catch (const std::bad_alloc&) {
    half_ = half_before;
    used_ = used_before;
    rewrite_at_ = 2 * used_;
    return;
  }
  commit();
  pass(FaultPoint::state_rewritten);
  // KEPT release: the whole half.
  std::atomic_ref(start_->half).store(half_, std::memory_order_release);
  pass(FaultPoint::state_switched);
  ::fallocate(memory_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(layout::kKeptPage + half_before * layout::kKeptHalf), layout::kKeptHalf);
  rewrite_at_ = std::max(2 * used_, kLeastLog);
  // The snapshot has left the heap of this thread with room that other threads cannot use, and so have forgotten nodes.
  ::malloc_trim(0);
}

template <class Record>
void KeptState::put(KeptWord word, Record record, std::string_view text) {
  record.head = {.word = static_cast<std::uint32_t>(word),
                 .bytes = static_cast<std::uint32_t>(sizeof record + text.size())};
  std::byte* const place = make_room(record.head.bytes);
  if (place == nullptr) return;
  std::memcpy(place, &record, sizeof record);
  if (!text.empty()) std::memcpy(place + sizeof record, text.data(), text.size());
}

void KeptState::write(const KeptSnapshot& snapshot) {
  for (const auto& [word, number] : snapshot.numbers) put(word, KeptNumber{.head = {}, .number = number, .value = 0});
  for (const auto& [word, text] : snapshot.texts) put_text(word, text);
  for (const auto& [node, known] : snapshot.nodes) {
    put_node(node, known.identity);
    put(KeptWord::references, KeptNumber{.head = {}, .number = node, .value = known.references});
  }
  snapshot.for_each_name([this](NodeId parent, const std::string& text, NodeId node) {
    put(KeptWord::named, KeptName{.head = {}, .parent = parent, .node = node}, text);
  });
  for (const auto& [number, opened] : snapshot.open) put(KeptWord::opened, opened);
  for (const auto& [number, seen] : snapshot.boots) put_boot(number, seen);
  for (const auto& [number, known] : snapshot.lockers) {
    KeptLocker locker = known.locker;
    for (const std::uint64_t open : known.open) {
      locker.open = open;
      put(KeptWord::locker, locker);
    }
    for (const layout::FileLock& lock : known.held->all()) put_lock(number, lock);
  }
  for (const auto& [request, value] : snapshot.begun)
    put(KeptWord::begun, KeptNumber{.head = {}, .number = request, .value = value});
  for (const auto& [request, renaming] : snapshot.renaming) put_renaming(request, renaming);
}

void KeptState::put_boot(std::uint64_t open, const HostBoot& seen) {
  KeptBoot record{.head = {}, .number = open, .boot = {}, .lost = seen.lost ? 1U : 0U, .reserved = 0};
  std::ranges::copy(seen.boot, record.boot);
  put(KeptWord::boot, record);
}

void KeptState::put_node(NodeId node, const Identity& identity) {
  put(KeptWord::node, KeptNode{.head = {},
                               .node = node,
                               .device = identity.device,
                               .inode = identity.inode,
                               .born_seconds = identity.born_seconds,
                               .born_nanoseconds = identity.born_nanoseconds,
                               .type = identity.type});
}

void KeptState::put_renaming(std::uint64_t request, const KeptSnapshot::Renaming& renaming) {
  put(KeptWord::renaming, KeptNumber{.head = {}, .number = request, .value = renaming.flags},
      renaming.from + '\0' + renaming.to);
}

void KeptState::put_lock(std::uint64_t locker, const layout::FileLock& lock) {
  put(KeptWord::locked, KeptLock{.head = {},
                                 .number = locker,
                                 .offset = lock.offset,
                                 .length = lock.length,
                                 .type = lock.type,
                                 .reserved = 0});
}

void KeptState::put_text(KeptWord word, std::string_view text) {
  struct Text {
    KeptHead head;
  };
  put(word, Text{}, text);
}

KeptState::Batch::Batch(KeptState* state) : state_(state) {
  if (state == nullptr) return;
  lock_ = std::unique_lock(state->mutex_);
  if (state->used_ >= state->rewrite_at_) state->rewrite();
}

KeptState::Batch::~Batch() {
  if (state_ != nullptr) state_->commit();
}

void KeptState::Batch::add_node(NodeId node, const Identity& identity) {
  if (state_ != nullptr) state_->put_node(node, identity);
}

void KeptState::Batch::add(KeptWord word, std::uint64_t number, std::uint64_t value) {
  if (state_ == nullptr) return;
  state_->put(word, KeptNumber{.head = {}, .number = number, .value = value});
  if (word == KeptWord::forgotten) state_->rewrite_at_ = std::max(state_->rewrite_at_ - kForgottenBytes, kLeastLog);
}

void KeptState::Batch::add_name(KeptWord word, NodeId parent, std::string_view name, NodeId node) {
  if (state_ != nullptr) state_->put(word, KeptName{.head = {}, .parent = parent, .node = node}, name);
}

void KeptState::Batch::add_open(const KeptOpen& open) {
  if (state_ != nullptr) state_->put(KeptWord::opened, open);
}

void KeptState::Batch::add_renaming(std::uint64_t request, const KeptSnapshot::Renaming& renaming) {
  if (state_ != nullptr) state_->put_renaming(request, renaming);
}

void KeptState::Batch::add_locker(const KeptLocker& locker) {
  if (state_ != nullptr) state_->put(KeptWord::locker, locker);
}

void KeptState::Batch::add_lock(std::uint64_t locker, const layout::FileLock& lock) {
  if (state_ != nullptr) state_->put_lock(locker, lock);
}

void KeptState::Batch::add_boot(std::uint64_t open, const HostBoot& seen) {
  if (state_ != nullptr) state_->put_boot(open, seen);
}

void KeptState::Batch::add_text(KeptWord word, std::string_view text) {
  if (state_ != nullptr) state_->put_text(word, text);
}

}  // namespace wherry::file::mount
