// SPDX-License-Identifier: Apache-2.0
#include "file/card.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <utility>

#include <wherry/error.hpp>

#include "arch/barrier.hpp"
#include "base/refused_call.hpp"
#include "file/cache.hpp"
#include "file/process_start.hpp"
#include "file/segment_file.hpp"

namespace wherry::file {
namespace {

// Events: the number of a client, or one of these.
constexpr std::uint64_t kStop = UINT64_MAX;
constexpr std::uint64_t kNews = UINT64_MAX - 1;

[[noreturn]] void fail(int error, const std::string& path, const std::string& advice) {
  throw Error(error, "be the card of", path, advice);
}

int open_pidfd(std::uint64_t pid) {
  if (pid == 0 || pid > INT_MAX) {
    errno = ESRCH;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0));
}

bool is_named(int file) {
  struct ::stat status{};
  return ::fstat(file, &status) == 0 && status.st_nlink != 0;
}

}  // namespace

Card::Card(CardOptions options) : options_(std::move(options)), events_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!events_.valid()) fail(errno, options_.path, advice_on(errno, "epoll_create1"));
  do {
    if (!revocations_) revocations_.emplace(options_.path);
  } while (!take());
  watch();
  look();
}

Card::~Card() {
  if (segment_) ::munmap(segment_.base(), segment_.bytes());
}

std::uint64_t Card::cache_bytes() const { return segment_.sets() * layout::kFileWays * layout::kFileBlock; }

/// False: the file has just come or gone, look again.
bool Card::take() {
  UniqueFd found(::open(options_.path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!found.valid() && errno == ENOENT) {
    UniqueFd made = make_segment(options_.path, options_.cache);
    if (!made.valid()) return false;
    adopt(std::move(made));
    return true;
  }
  if (!found.valid()) fail(errno, options_.path, "remove it if it is another's, or use another WHERRY_JOB");
  if (::flock(found.get(), LOCK_EX | LOCK_NB) != 0) {
    fail(EBUSY, options_.path, "another wherry card serves it; one is enough for all programs of a node and job");
  }
  if (!is_named(found.get())) return false;
  adopt(std::move(found));
  // A segment without clients may be damaged; a new one is not.
  return !end();
}

/// Checks and maps it, as every client does.
void Card::adopt(UniqueFd file) {
  const Refusal refusal = map_segment(file.get(), segment_);
  if (refusal) fail(refusal.error, options_.path, std::string(refusal.reason) + ": " + refusal.advice);
  file_ = std::move(file);
}

void Card::watch() {
  news_ = UniqueFd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  const std::string self = "/proc/self/fd/" + std::to_string(file_.get());
  if (!news_.valid() || ::inotify_add_watch(news_.get(), self.c_str(), IN_CLOSE | IN_ATTRIB) < 0) {
    fail(errno, options_.path, "raise fs.inotify.max_user_instances and max_user_watches (sysctl)");
  }
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kNews}};
  ::epoll_ctl(events_.get(), EPOLL_CTL_ADD, news_.get(), &event);
}

/// Clients that came, and that left in order. The card itself may be one (CardServer), and is not waited for.
void Card::look() {
  const std::size_t used = Segment::used(segment_.header().clients_used, layout::kFileMostClients);
  for (std::uint64_t number = 1; number <= used; ++number) look_at(number);
  const bool alone = clients_.empty();
  if (alone && !alone_since_) alone_since_ = Clock::now();
  if (!alone) alone_since_.reset();
}

void Card::look_at(std::uint64_t number) {
  // FILE-CLIENT acquire: what the client did before it left
  const std::uint64_t pid = segment_.client(number).pid.load(std::memory_order_acquire);
  const auto known = clients_.find(number);
  if (known != clients_.end() && known->second.pid == pid) return;
  if (known != clients_.end()) clients_.erase(known);  // its descriptor leaves epoll with it
  if (pid == static_cast<std::uint64_t>(::getpid())) {
    look_at_self(number);
  } else if (pid != 0) {
    welcome(number, pid);
  }
}

/// The card as a client; or a dead process that had the same number, such as the card of a container that was started
/// again.
void Card::look_at_self(std::uint64_t number) {
  Word& start = segment_.client(number).start;
  const std::uint64_t started = process_start(::getpid());
  const std::uint64_t noted = start.load(std::memory_order_relaxed);
  if (noted == 0 || started == 0 || noted == started) return start.store(started, std::memory_order_relaxed);
  Client& dead = clients_[number];
  dead.pid = static_cast<std::uint64_t>(::getpid());
  bury(number, dead);
}

void Card::welcome(std::uint64_t number, std::uint64_t pid) {
  Client client{.pid = pid, .process = UniqueFd(open_pidfd(pid)), .dead = {}};
  const int error = client.process.valid() ? 0 : errno;
  Word& start = segment_.client(number).start;
  const std::uint64_t started = error == 0 ? process_start(static_cast<pid_t>(pid)) : 0;
  const std::uint64_t noted = start.load(std::memory_order_relaxed);
  const bool another = noted != 0 && started != 0 && noted != started;  // a process of the same number
  start.store(started, std::memory_order_relaxed);
  Client& here = clients_[number] = std::move(client);
  if (error == ESRCH || another) return bury(number, here);
  // Without a descriptor (EMFILE) it counts as alive until the next look.
  epoll_event event{.events = EPOLLIN, .data = {.u64 = number}};
  if (error == 0) ::epoll_ctl(events_.get(), EPOLL_CTL_ADD, here.process.get(), &event);
}

/// No thread of it is left. Its marks stay for a while.
void Card::bury(std::uint64_t number, Client& client) {
  client.process.reset();
  client.dead = Clock::now();
  repair(segment_, number, true);
}

void Card::forget_marks() {
  const auto now = Clock::now();
  for (auto client = clients_.begin(); client != clients_.end();) {
    const bool over = client->second.dead && now - *client->second.dead >= options_.marks_stay;
    if (over) repair(segment_, client->first, false);
    client = over ? clients_.erase(client) : std::next(client);
  }
}

/// Ends the segment and removes its name, unless it has a client or gets one at this moment.
bool Card::end() {
  segment_.header().ended.store(1, std::memory_order_relaxed);
  arch::publish_then_look();  // FILE-ENDED: a client that is not seen here sees the end
  look();
  const bool alone = std::ranges::all_of(clients_, [](const auto& client) { return client.second.dead.has_value(); });
  if (alone) {
    if (is_named(file_.get())) ::unlink(options_.path.c_str());
    ::munmap(segment_.base(), segment_.bytes());
    segment_ = {};
    clients_.clear();
    file_.reset();
    revocations_.reset();
    return true;
  }
  segment_.header().ended.store(0, std::memory_order_relaxed);
  return false;
}

/// Until when nothing is to be done unless something happens, in ms; -1: for ever.
int Card::sleep_for() const {
  std::optional<Clock::time_point> next;
  const auto at_latest = [&](Clock::time_point time) { next = next ? std::min(*next, time) : time; };
  for (const auto& [number, client] : clients_) {
    if (client.dead) at_latest(*client.dead + options_.marks_stay);
  }
  if (const auto time = large_pages_.next()) at_latest(*time);
  if (options_.until_last_client && alone_since_) at_latest(*alone_since_ + options_.linger);
  if (!next) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

void Card::handle(std::uint64_t what, bool& over) {
  if (what == kStop) {
    over = true;
  } else if (what == kNews) {
    std::array<char, 4096> unread;
    while (::read(news_.get(), unread.data(), unread.size()) > 0) continue;
    over = over || !is_named(file_.get());
  } else if (const auto client = clients_.find(what); client != clients_.end() && !client->second.dead) {
    bury(what, client->second);
  }
}

void Card::run(int stop) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kStop}};
  if (::epoll_ctl(events_.get(), EPOLL_CTL_ADD, stop, &event) != 0) {
    fail(errno, options_.path, "the descriptor that ends it cannot be waited for");
  }
  for (bool over = false; !over;) {
    std::array<epoll_event, 16> events{};
    const int count = ::epoll_wait(events_.get(), events.data(), static_cast<int>(events.size()), sleep_for());
    for (int i = 0; i < count; ++i) handle(events[static_cast<std::size_t>(i)].data.u64, over);
    forget_marks();
    look();
    large_pages_.look(segment_, Clock::now());
    large_pages_.gather(segment_, Clock::now());
    const bool enough = options_.until_last_client && alone_since_ && Clock::now() - *alone_since_ >= options_.linger;
    if ((enough || over) && end()) return;
  }
  // A segment that lost its name is turned off: the next client makes another.
  if (!is_named(file_.get())) turn_off(segment_);
}

}  // namespace wherry::file
