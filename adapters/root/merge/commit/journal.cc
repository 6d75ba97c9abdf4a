// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/commit/journal.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "base/unique_fd.hpp"

namespace wherry::merge {

namespace {

// A record: magic, size of the body, checksum of the body, body. Numbers have this machine's byte order, because the
// journal is read by the program that wrote it.
constexpr std::uint32_t kMagic = 0x314c4d57;  // "WML1"
// A journal longer than this is rewritten with one record.
constexpr std::size_t kLongestJournal = std::size_t{4} << 20;
constexpr std::size_t kLargestBody = std::size_t{1} << 30;

[[noreturn]] void fail(const std::string& path) { throw std::system_error(errno, std::system_category(), path); }

std::uint64_t checksum_of(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const std::byte byte : bytes) sum = (sum ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3;
  return sum;
}

class Writer {
 public:
  template <typename Number>
  void number(Number value) {
    bytes(&value, sizeof value);
  }
  void bytes(const void* data, std::size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    out_.insert(out_.end(), first, first + size);
  }
  std::vector<std::byte>& result() { return out_; }

 private:
  std::vector<std::byte> out_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> in) : in_(in) {}
  template <typename Number>
  bool number(Number& value) {
    if (in_.size() < sizeof value) return false;
    std::memcpy(&value, in_.data(), sizeof value);
    in_ = in_.subspan(sizeof value);
    return true;
  }
  bool bytes(std::size_t size, std::span<const std::byte>& out) {
    if (in_.size() < size) return false;
    out = in_.first(size);
    in_ = in_.subspan(size);
    return true;
  }

 private:
  std::span<const std::byte> in_;
};

std::vector<std::byte> body_of(const Commit& commit) {
  Writer writer;
  writer.number(commit.end);
  writer.number(static_cast<std::uint64_t>(commit.patches.size()));
  for (const Patch& patch : commit.patches) {
    writer.number(patch.offset);
    writer.number(static_cast<std::uint64_t>(patch.bytes.size()));
    writer.bytes(patch.bytes.data(), patch.bytes.size());
  }
  writer.number(static_cast<std::uint64_t>(commit.sequences.size()));
  for (const auto& [worker, sequence] : commit.sequences) {
    writer.number(static_cast<std::uint64_t>(worker.size()));
    writer.bytes(worker.data(), worker.size());
    writer.number(sequence);
  }
  writer.number(static_cast<std::uint32_t>(commit.anew));
  return std::move(writer.result());
}

std::optional<Commit> parse_body(std::span<const std::byte> body) {
  Reader reader(body);
  Commit commit;
  std::uint64_t count = 0;
  if (!reader.number(commit.end) || !reader.number(count)) return {};
  for (; count > 0; --count) {
    Patch patch;
    std::uint64_t size = 0;
    std::span<const std::byte> bytes;
    if (!reader.number(patch.offset) || !reader.number(size) || !reader.bytes(size, bytes)) return {};
    patch.bytes.assign(bytes.begin(), bytes.end());
    commit.patches.push_back(std::move(patch));
  }
  if (!reader.number(count)) return {};
  for (; count > 0; --count) {
    std::uint64_t size = 0;
    std::uint64_t sequence = 0;
    std::span<const std::byte> name;
    if (!reader.number(size) || !reader.bytes(size, name) || !reader.number(sequence)) return {};
    commit.sequences[std::string(reinterpret_cast<const char*>(name.data()), name.size())] = sequence;
  }
  std::uint32_t anew = 0;  // the last word; records of older versions do not have it
  commit.anew = reader.number(anew) && anew != 0;
  return commit;
}

std::vector<std::byte> read_all(int descriptor, const std::string& path) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) fail(path);
  std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
  std::size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t n = ::pread(descriptor, bytes.data() + got, bytes.size() - got, static_cast<off_t>(got));
    if (n < 0 && errno != EINTR) fail(path);
    if (n == 0) bytes.resize(got);
    if (n > 0) got += static_cast<std::size_t>(n);
  }
  return bytes;
}

void write_all(int descriptor, std::span<const std::byte> bytes, std::uint64_t offset, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno != EINTR) fail(path);
    if (n < 0) continue;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

/// Returns the last complete record, with the sequences of all records up to it.
std::optional<Commit> last_commit(std::span<const std::byte> journal) {
  std::optional<Commit> last;
  Sequences sequences;
  Reader reader(journal);
  for (;;) {
    std::uint32_t magic = 0;
    std::uint32_t size = 0;
    std::uint64_t sum = 0;
    std::span<const std::byte> body;
    if (!reader.number(magic) || !reader.number(size) || !reader.number(sum)) break;
    if (magic != kMagic || !reader.bytes(size, body) || checksum_of(body) != sum) break;
    auto commit = parse_body(body);
    if (!commit) break;
    for (const auto& [worker, sequence] : commit->sequences) sequences[worker] = sequence;
    last = std::move(commit);
  }
  if (last) last->sequences = std::move(sequences);
  return last;
}

/// The lock of a journal. It is needed because the previous process may still be ending when a restart considers it
/// dead. fcntl lock: released on exit, not inherited by fork, ineffective on file systems without locks.
struct flock whole_file() {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

/// Returns the other process that has locked the journal, if there is one.
std::optional<pid_t> user_of(int journal) {
  struct flock lock = whole_file();
  if (::fcntl(journal, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return {};
  return lock.l_pid;
}

void refuse_if_in_use(int journal, const std::string& output) {
  const auto user = user_of(journal);
  if (!user) return;
  errno = EBUSY;
  fail(output + " is being merged by process " + std::to_string(*user));
}

/// Opens and locks a file, and empties it. Throws EBUSY if another process has locked it.
int open_locked(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) fail(path);
  struct flock lock = whole_file();
  const bool in_use = ::fcntl(descriptor, F_SETLK, &lock) != 0 && (errno == EAGAIN || errno == EACCES);
  if (in_use || ::ftruncate(descriptor, 0) != 0) {
    const int error = in_use ? EBUSY : errno;
    ::close(descriptor);
    errno = error;
    fail(path);
  }
  return descriptor;
}

/// An open descriptor, closed by the destructor.
class Open {
 public:
  Open(const std::string& path, int flags) : descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;
  ~Open() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_;
};

/// Renames the file with the hidden name to the output. False if there is none.
bool take_place_of(const std::string& output) {
  if (std::rename(Journal::hidden(output).c_str(), output.c_str()) == 0) return true;
  if (errno != ENOENT) fail(output);
  return false;
}

void synchronize(const std::string& path, int flags) {
  const Open file(path, flags);
  if (file.get() < 0 || ::fsync(file.get()) != 0) fail(path);
}

}  // namespace

std::string Journal::hidden(std::string output) {
  output.back() = output.back() == '~' ? '_' : '~';
  return output;
}

bool Journal::is_in_use(const std::string& output) {
  const Open journal(path_of(output), O_RDONLY);
  return journal.get() >= 0 && user_of(journal.get()).has_value();
}

std::optional<Sequences> Journal::recover(const std::string& output) {
  const std::string path = path_of(output);
  const Open journal(path, O_RDONLY);
  if (journal.get() < 0 && errno == ENOENT) return {};
  if (journal.get() < 0) fail(path);
  refuse_if_in_use(journal.get(), output);
  const auto commit = last_commit(read_all(journal.get(), path));
  if (!commit) return {};
  if (commit->anew) take_place_of(output);  // the file may have been renamed already
  const Open file(output, O_RDWR);
  // The process was killed before it renamed the new output.
  if (file.get() < 0 && errno == ENOENT) return {};
  if (file.get() < 0) fail(output);
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) fail(output);
  if (static_cast<std::uint64_t>(status.st_size) < commit->end) {
    errno = EINVAL;
    fail(output + " is shorter than its journal requires");
  }
  for (const Patch& patch : commit->patches) write_all(file.get(), patch.bytes, patch.offset, output);
  if (::ftruncate(file.get(), static_cast<off_t>(commit->end)) != 0) fail(output);
  return commit->sequences;
}

Journal::Journal(const std::string& output, const Commit& first, bool durable)
    : output_(output), path_(path_of(output)), durable_(durable) {
  rewrite(first);
}

Journal::~Journal() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Journal::append(const Commit& commit) {
  for (const auto& [worker, sequence] : commit.sequences) sequences_[worker] = sequence;
  if (bytes_ > kLongestJournal) {
    rewrite(commit);
  } else {
    write_record(commit);
  }
}

// The second record revokes the first: a file that later gets the hidden name must not replace the output.
void Journal::replace_output(std::uint64_t end) {
  if (durable_) synchronize(hidden(output_), O_RDWR);
  append({end, {}, {}, true});
  if (!take_place_of(output_)) fail(hidden(output_));
  if (durable_) synchronize(std::filesystem::absolute(output_).parent_path(), O_RDONLY | O_DIRECTORY);
  append({end, {}, {}, false});
}

void Journal::write_record(const Commit& commit) {
  const auto body = body_of(commit);
  if (body.size() > kLargestBody) {
    errno = EFBIG;
    fail(path_);
  }
  Writer writer;
  writer.number(kMagic);
  writer.number(static_cast<std::uint32_t>(body.size()));
  writer.number(checksum_of(body));
  writer.bytes(body.data(), body.size());
  write_all(descriptor_, writer.result(), bytes_, path_);
  bytes_ += writer.result().size();
  if (durable_ && ::fdatasync(descriptor_) != 0) fail(path_);
}

// Writes the journal under another name and renames it, so that there is a complete journal at every moment.
void Journal::rewrite(const Commit& commit) {
  const std::string fresh = path_ + ".new";
  const UniqueFd before(std::exchange(descriptor_, open_locked(fresh)));  // keeps its lock until the rename
  bytes_ = 0;
  Commit whole = commit;
  for (const auto& [worker, sequence] : commit.sequences) sequences_[worker] = sequence;
  whole.sequences = sequences_;
  write_record(whole);
  if (std::rename(fresh.c_str(), path_.c_str()) != 0) fail(path_);
}

void Journal::remove() {
  if (::unlink(path_.c_str()) != 0 && errno != ENOENT) fail(path_);
}

}  // namespace wherry::merge
