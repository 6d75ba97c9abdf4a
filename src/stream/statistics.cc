// SPDX-License-Identifier: Apache-2.0
#include "stream/statistics.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "base/clock.hpp"
#include "base/config.hpp"
#include "base/fork_generation.hpp"
#include "base/log.hpp"
#include "base/resize.hpp"

namespace wherry::statistics {
namespace {

using layout::kStatisticsBytes;
using layout::kStatisticsRecords;
using layout::StatisticsHeader;
using layout::StatisticsRecord;

// The records in use. Kept outside the page: reading a record that was never used would allocate its memory.
class RecordSet {
 public:
  std::optional<std::uint32_t> take() {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const auto bit = static_cast<std::uint32_t>(std::countr_one(words_[i]));
      const auto record = static_cast<std::uint32_t>(i * 64) + bit;
      if (bit == 64) continue;
      if (record >= kStatisticsRecords) return std::nullopt;
      words_[i] |= std::uint64_t{1} << bit;
      return record;
    }
    return std::nullopt;
  }
  void give_back(std::uint32_t record) { words_[record / 64] &= ~(std::uint64_t{1} << (record % 64)); }

 private:
  std::array<std::uint64_t, (kStatisticsRecords + 63) / 64> words_{};
};

void copy_text(std::span<char> field, std::string_view text) {
  text = text.substr(0, field.size() - 1);
  std::fill(std::copy(text.begin(), text.end(), field.begin()), field.end(), '\0');
}

std::uint16_t port_or_none(const Address& address) { return address.port.value_or(layout::kNoPort); }

void describe(StatisticsRecord& record, const Endpoint& endpoint) {
  record.kind = static_cast<std::uint32_t>(endpoint.kind);
  record.peer_pid = static_cast<std::uint32_t>(endpoint.peer_pid);
  record.local_node = endpoint.local.node.value_or(0);
  record.local_port = port_or_none(endpoint.local);
  record.peer_node = endpoint.peer.node.value_or(0);
  record.peer_port = port_or_none(endpoint.peer);
  record.send_capacity = endpoint.send_capacity;
  record.receive_capacity = endpoint.receive_capacity;
  record.opened_ns = monotonic_ns();
  copy_text(record.fabric, endpoint.fabric);
  copy_text(record.peer_host, endpoint.peer_host);
  for (layout::Counter* counter :
       {&record.bytes_sent, &record.sends, &record.send_sleeps, &record.send_fill, &record.data_wakes,
        &record.bytes_sent_split, &record.bytes_received_split, &record.bytes_received, &record.receives,
        &record.receive_sleeps, &record.receive_fill, &record.space_wakes, &record.asleep_sending,
        &record.asleep_receiving}) {
    set(*counter, 0);
  }
}

}  // namespace

// The statistics page of this process. Never destroyed: endpoints of static objects may outlive everything else.
class Page {
 public:
  // Null if no memfd can be made.
  static Page* create();

  // Null when all records are in use.
  StatisticsRecord* open(const Endpoint& endpoint) {
    const auto index = used_.take();
    if (!index) return nullptr;
    StatisticsRecord& record = records_[*index];
    // STATISTICS-RECORD: the fence keeps the writes below after the even generation of the record's last use. A reader
    // that sees one of them also sees that the generation has changed. The release store then publishes them with the
    // odd generation.
    std::atomic_thread_fence(std::memory_order_release);
    describe(record, endpoint);
    // STATISTICS-RECORD release: the description.
    record.generation.store(record.generation.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    return &record;
  }

  void close(StatisticsRecord& record) {
    // STATISTICS-RECORD release: the last values of the counters.
    record.generation.store(record.generation.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    used_.give_back(static_cast<std::uint32_t>(&record - records_));
  }

  [[nodiscard]] layout::TransferClass* transfer_classes() const {
    return reinterpret_cast<layout::TransferClass*>(reinterpret_cast<std::byte*>(header_) +
                                                    layout::kTransferClassesOffset);
  }

  void count_not_shown(std::uint64_t change) { bump(header_->endpoints_not_shown, change); }

  // For a forked child: the page is the parent's. Closes the descriptor, so that the child does not look like the
  // parent.
  void forget_descriptor() const {
    struct stat now{};
    // A program that closes all descriptors may have reused this number.
    if (fstat(descriptor_, &now) == 0 && now.st_ino == inode_ && now.st_dev == device_) ::close(descriptor_);
  }

 private:
  Page(int descriptor, const struct stat& file, void* mapped)
      : descriptor_(descriptor),
        inode_(file.st_ino),
        device_(file.st_dev),
        header_(static_cast<StatisticsHeader*>(mapped)),
        records_(
            reinterpret_cast<StatisticsRecord*>(static_cast<std::byte*>(mapped) + layout::kStatisticsRecordsOffset)) {}

  void write_header() {
    header_->records = kStatisticsRecords;
    header_->pid = static_cast<std::uint64_t>(getpid());
    header_->started_ns = monotonic_ns();
    header_->node = own_node();
    copy_text(header_->program, program_invocation_short_name);
    copy_text(header_->job, config::word(config::Key::job));
    header_->version = layout::kStatisticsVersion;
  }

  int descriptor_;
  ino_t inode_;
  dev_t device_;
  StatisticsHeader* header_;
  StatisticsRecord* records_;
  RecordSet used_;
};

Page* Page::create() {
  const int descriptor = memfd_create(layout::kStatisticsMemfdName, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return nullptr;
  struct stat file{};
  void* mapped = MAP_FAILED;
  if (resize(descriptor, kStatisticsBytes) == 0 && fstat(descriptor, &file) == 0) {
    mapped = mmap(nullptr, kStatisticsBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  }
  if (mapped == MAP_FAILED) {
    ::close(descriptor);
    return nullptr;
  }
  auto* page = new Page(descriptor, file, mapped);
  page->write_header();
  // The seals are for others. They keep readers safe (the file cannot shrink under their mapping) and the counters true
  // (no other process can write them). Kernels before 5.1 do not know the second seal.
  fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  fcntl(descriptor, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
  fcntl(descriptor, F_ADD_SEALS, F_SEAL_SEAL);
  return page;
}

namespace {

struct State {
  std::mutex mutex;
  std::optional<Origin> origin;  // the process that decided whether there is a page
  Page* page = nullptr;
};

void before_fork();
void after_fork_in_parent();
void after_fork_in_child();

State& state() {
  // fork_generation() may register a handler, too, which then runs before those below. It is called outside the guard
  // of the static: a child forked meanwhile would wait for the guard for ever.
  (void)fork_generation();
  static State* const made = [] {
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    return new State;
  }();
  return *made;
}

// Call it with the lock held. Forgets a page that a parent made.
State& state_of_this_process() {
  State& mine = state();
  if (!mine.origin || !mine.origin->inherited()) return mine;
  if (mine.page != nullptr) mine.page->forget_descriptor();
  mine.page = nullptr;
  mine.origin.reset();
  return mine;
}

// The lock is held across fork, so that the child does not inherit it from a thread that it does not have. The child
// closes the page's descriptor at once. A child of clone, which runs no handlers, does so when it first opens or closes
// an endpoint.
void before_fork() { state().mutex.lock(); }
void after_fork_in_parent() { state().mutex.unlock(); }
void after_fork_in_child() { state_of_this_process().mutex.unlock(); }

// Call it with the lock held. Makes the page at the first call, if statistics are on.
Page* page_of_this_process() {
  State& mine = state_of_this_process();
  if (mine.origin) return mine.page;
  if (config::flag(config::Key::statistics)) {
    config::check(config::Key::node);
    mine.page = Page::create();
    if (mine.page == nullptr) {
      log::write(log::Level::info, "no memory file for statistics: this process is not shown by wherry top");
    }
  }
  mine.origin.emplace();
  return mine.page;
}

}  // namespace

Record open_endpoint(const Endpoint& endpoint) {
  const std::lock_guard lock(state().mutex);
  Record opened;
  opened.page_ = page_of_this_process();
  if (opened.page_ != nullptr) opened.record_ = opened.page_->open(endpoint);
  opened.shown_ = opened.record_ != nullptr;
  if (opened.shown_) return opened;
  auto own = std::make_unique<StatisticsRecord>();
  describe(*own, endpoint);
  if (opened.page_ != nullptr) opened.page_->count_not_shown(1);
  opened.record_ = own.release();
  return opened;
}

layout::TransferClass* transfer_classes() {
  const std::lock_guard lock(state().mutex);
  const Page* const page = page_of_this_process();
  return page == nullptr ? nullptr : page->transfer_classes();
}

Record::~Record() {
  if (record_ == nullptr) return;
  if (page_ != nullptr) {
    const std::lock_guard lock(state().mutex);
    const bool opened_by_this_process = page_ == state_of_this_process().page;
    if (opened_by_this_process && shown_) page_->close(*record_);
    if (opened_by_this_process && !shown_) page_->count_not_shown(~std::uint64_t{0});  // one less
  }
  if (!shown_) delete record_;
}

}  // namespace wherry::statistics
