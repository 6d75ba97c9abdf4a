// SPDX-License-Identifier: Apache-2.0
#include "collect/session.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/printable.hpp"
#include "base/readable.hpp"
#include "collect/symlink.hpp"

namespace wherry::tools {
namespace {

using layout::ShipKind;
using layout::ShipRecord;

constexpr long kNanosecondsPerSecond = 1'000'000'000;

// The shipper broke the protocol: its further records cannot be understood.
struct ProtocolError : std::runtime_error {
  using runtime_error::runtime_error;
};

// The shipper ended without a goodbye.
struct ShipperDied : std::runtime_error {
  using runtime_error::runtime_error;
};

timespec mtime_of(const ShipRecord& record) {
  if (record.mtime_nanoseconds >= kNanosecondsPerSecond) throw ProtocolError("a time with more than 1e9 nanoseconds");
  return {record.mtime_seconds, static_cast<long>(record.mtime_nanoseconds)};
}

// The path of the parent directory of `path`; empty: the destination itself.
std::string_view parent_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

}  // namespace

Session::Session(Channel& channel, Destination& destination, LiveTotals& totals,
                 std::function<void(const std::string&)> warn)
    : channel_(channel),
      destination_(destination),
      totals_(totals),
      warn_(std::move(warn)),
      answers_(channel),
      batch_(destination) {
  report_.address = channel.peer().address;
  report_.pid = channel.peer().pid;
  report_.node = channel.peer().node;
}

ShipperReport Session::run() noexcept {
  destination_.shipper_came();
  try {
    greet();
    serve();
  } catch (const ProtocolError& error) {
    report_.end = SessionEnd::broken;
    report_.error = error.what();
  } catch (const ShipperDied& error) {
    report_.end = SessionEnd::died;
    report_.error = error.what();
  } catch (const Error& error) {
    report_.end = error.code().value() == ECANCELED ? SessionEnd::interrupted : SessionEnd::died;
    report_.error = error.what();
  } catch (const std::exception& error) {
    report_.end = SessionEnd::broken;
    report_.error = error.what();
  }
  if (file_) report_.incomplete_file = file_->path;
  file_.reset();
  settle_what_arrived();
  leave();
  report_.begun_paths = last_id_;
  return std::move(report_);
}

void Session::greet() {
  layout::ShipHello hello;
  read(std::as_writable_bytes(std::span(&hello, 1)));
  if (hello.magic != layout::kShipMagic) throw ProtocolError("the peer is not 'wherry ship'");
  if (hello.version != layout::kShipVersion) {
    throw ProtocolError(
        fmt::format("it speaks version {} of the protocol and this collector version {}; use the same "
                    "release on both sides",
                    hello.version, layout::kShipVersion));
  }
  report_.label = read_text(hello.label_bytes, layout::kShipMaxLabel, "label");
  report_.stated_pid = hello.pid;
  if (!report_.node) report_.node = hello.node;
  totals_.announced_files += hello.total_files;
  totals_.announced_bytes += hello.total_bytes;
}

void Session::serve() {
  while (!report_.said_goodbye) {
    ShipRecord record;
    read(std::as_writable_bytes(std::span(&record, 1)));
    take(record);
    if (file_) continue;
    done_id_ = last_id_;
    report_stored();
  }
}

void Session::take(const ShipRecord& record) {
  switch (static_cast<ShipKind>(record.kind)) {
    case ShipKind::directory:
    case ShipKind::symlink:
      return take_entry(record);
    case ShipKind::file:
      return begin_file(record);
    case ShipKind::data:
      return take_data(record);
    case ShipKind::file_end:
      return end_file(record);
    case ShipKind::abandon:
      return abandon(record);
    case ShipKind::goodbye:
      return goodbye(record);
  }
  throw ProtocolError(fmt::format("a record of the unknown kind {}", record.kind));
}

// Tries again after a settle if descriptors are scarce, because the batch may hold them.
template <class Open>
auto Session::open_or_settle(Open open) {
  try {
    return open();
  } catch (const Refusal& refusal) {
    if (batch_.empty() || (refusal.error() != EMFILE && refusal.error() != ENFILE)) throw;
  }
  settle();
  return open();
}

// Stores a directory or a symbolic link, which consist of one record.
void Session::take_entry(const ShipRecord& record) {
  const std::uint64_t id = next_id(record);
  const std::string path = read_path(record);
  const bool is_link = static_cast<ShipKind>(record.kind) == ShipKind::symlink;
  const std::string target = is_link ? read_text(record.target_bytes, layout::kShipMaxPath, "symlink target") : "";
  const timespec mtime = mtime_of(record);
  try {
    is_link ? make_symlink(path, target, mtime) : make_directory(path, record.mode, mtime);
  } catch (const Refusal& refusal) {
    refuse(id, path, refusal);
  }
}

void Session::make_directory(const std::string& path, std::uint32_t mode, const timespec& mtime) {
  const auto parent = open_or_settle([&] { return destination_.make_directory(path, mode, mtime); });
  touch(parent->file_system, path);
  ++report_.stored.directories;
}

void Session::make_symlink(const std::string& path, const std::string& target, const timespec& mtime) {
  const Place place = open_or_settle([&] { return destination_.place(path); });
  store_symlink(place, target, mtime);
  touch(place.directory->file_system, parent_of(path));
  ++report_.stored.symlinks;
}

void Session::begin_file(const ShipRecord& record) {
  const std::uint64_t id = next_id(record);
  const std::string path = read_path(record);
  const bool length_known = record.length != layout::kShipUnknownLength;
  const std::uint64_t length = length_known ? record.length : layout::kShipMaxFile;
  if (length > layout::kShipMaxFile) throw ProtocolError("a file of impossible length");
  file_.emplace(Incoming{id, path, record.mode, mtime_of(record), length, length_known, 0, 0, nullptr});
  hash_.restart();
  try {
    file_->content = open_or_settle([&] {
      Place place = destination_.place(path);
      touch(place.directory->file_system, parent_of(path));
      return std::make_unique<PendingFile>(destination_, std::move(place));
    });
  } catch (const Refusal& refusal) {
    refuse_incoming(refusal);
  }
}

void Session::take_data(const ShipRecord& record) {
  Incoming& file = incoming(record);
  if (record.length == 0 || record.length > layout::kShipMaxData) throw ProtocolError("a data record of wrong length");
  // Written so that no sum can overflow.
  if (record.offset < file.position || record.offset > file.length || record.length > file.length - record.offset) {
    throw ProtocolError("data outside the file, or out of order");
  }
  if (record.offset > file.position) hash_.hole(file.position, record.offset - file.position);
  store_data(record.length, record.offset);
  file.position = record.offset + record.length;
}

void Session::store_data(std::uint64_t length, std::uint64_t offset) {
  while (length > 0) {
    settle_while_idle();
    const std::span<const std::byte> arrived = channel_.peek(Channel::kForever);
    if (arrived.empty()) throw ShipperDied("the connection ended in the middle of a file");
    const auto piece = arrived.first(static_cast<std::size_t>(std::min<std::uint64_t>(arrived.size(), length)));
    if (file_->content) {
      try {
        hash_.data(piece);
        file_->content->write(piece, offset);
        totals_.bytes += piece.size();
        file_->bytes += piece.size();
      } catch (const Refusal& refusal) {
        refuse_incoming(refusal);
      }
    }
    channel_.took(piece.size());
    offset += piece.size();
    length -= piece.size();
  }
}

void Session::end_file(const ShipRecord& record) {
  Incoming& file = incoming(record);
  if (!file.length_known) file.length = file.position;
  if (file.content) {
    try {
      verify(record);
      file.content->complete(file.length, file.mode, file.mtime);
      batch_.add({file.id, std::move(file.path), file.bytes, std::move(file.content)});
    } catch (const Refusal& refusal) {
      refuse_incoming(refusal);
    }
  }
  file_.reset();
  if (batch_.full()) settle();
}

void Session::verify(const ShipRecord& record) {
  if (file_->position < file_->length) hash_.hole(file_->position, file_->length - file_->position);
  if (record.length != file_->length) throw Refusal(EBADMSG, "its length changed on the way; ship it again");
  if (record.hash != hash_.value()) throw Refusal(EBADMSG, "its content changed on the way; ship it again");
}

// Settles arrived files while no bytes arrive, so that they do not wait for records that may never come.
void Session::settle_while_idle() {
  if (!batch_.empty() && channel_.peek(idle_).empty()) settle();
}

void Session::settle() {
  const auto begun = std::chrono::steady_clock::now();
  const auto named = [this](const Batch::Arrived& file) {
    ++report_.stored.files;
    report_.stored.bytes += file.bytes;
    ++totals_.files;
  };
  const auto refused = [this](const Batch::Arrived& file, const Refusal& refusal) {
    refuse(file.id, file.path, refusal);
  };
  batch_.settle(named, refused);
  const auto took = std::chrono::ceil<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begun);
  idle_ = std::clamp(took, kLeastIdle, kMostIdle);
  report_stored();
}

void Session::abandon(const ShipRecord& record) {
  incoming(record);
  file_.reset();
}

void Session::goodbye(const ShipRecord& record) {
  if (file_) throw ProtocolError("a goodbye in the middle of a file");
  if (record.id != last_id_) throw ProtocolError("a goodbye that does not count what was shipped");
  settle();
  report_.shipper_failures = record.length;
  report_.said_goodbye = true;
  report_.end = report_.failure_count + report_.shipper_failures == 0 ? SessionEnd::complete : SessionEnd::refused;
}

// Copies the bytes before any check, because the shipper can still write where they arrived.
void Session::read(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    settle_while_idle();
    const std::size_t piece = channel_.read_some(bytes);
    if (piece == 0) throw ShipperDied("the connection ended before its goodbye");
    bytes = bytes.subspan(piece);
  }
}

std::string Session::read_text(std::size_t bytes, std::size_t limit, const char* what) {
  if (bytes > limit) throw ProtocolError(fmt::format("a {} of {} bytes; at most {} are allowed", what, bytes, limit));
  std::string text(bytes, '\0');
  read(std::as_writable_bytes(std::span(text)));
  return text;
}

std::string Session::read_path(const ShipRecord& record) {
  std::string path = read_text(record.path_bytes, layout::kShipMaxPath, "path");
  if (batch_.holds(path)) settle();  // the later of two paths with one name replaces the earlier
  return path;
}

std::uint64_t Session::next_id(const ShipRecord& record) {
  if (file_) throw ProtocolError("a new path in the middle of a file");
  if (record.id != last_id_ + 1) throw ProtocolError("a record out of order");
  return ++last_id_;
}

Session::Incoming& Session::incoming(const ShipRecord& record) {
  if (!file_ || record.id != file_->id) throw ProtocolError("a record of a file that was not begun");
  return *file_;
}

// Records that a name is made in `directory`, and perhaps in the directories above it.
void Session::touch(const std::shared_ptr<FileSystem>& file_system, std::string_view directory) {
  if (std::find(touched_.begin(), touched_.end(), file_system) == touched_.end()) touched_.push_back(file_system);
  if (!file_system->each_file_flushed()) return;
  while (!named_in_.contains(directory)) {
    named_in_.emplace(directory);
    directory = parent_of(directory);
  }
}

void Session::report_stored() {
  if (batch_.empty()) answers_.stored(done_id_);
}

// Refuses the current file. Frees its disk space first, because other files may need it.
void Session::refuse_incoming(const Refusal& refusal) {
  file_->content.reset();
  refuse(file_->id, file_->path, refusal);
}

void Session::refuse(std::uint64_t id, const std::string& path, const Refusal& refusal) {
  ++report_.refused_paths;
  report_failure(id, path, refusal);
}

// Reports a failure; also one of a path that is stored, or of all paths.
void Session::report_failure(std::uint64_t id, const std::string& path, const Refusal& refusal) {
  warn_(fmt::format("refused {} of {}: {}", printable(path), report_.name(), printable(refusal.what())));
  report_.add_failure({path, refusal.what()});
  try {
    answers_.refused(id, refusal.error(), path, refusal.what());
  } catch (const Error&) {
    // The shipper is gone; the next receive reports it.
  }
}

// Keeps files that were complete when the session broke off.
void Session::settle_what_arrived() noexcept {
  try {
    settle();
  } catch (const std::exception&) {
    // Refusals cannot be sent to the shipper any more; the report has the end of the session.
  }
}

// Settles the directories and makes names durable before the summary is sent. A settled directory may be closed to this
// process.
void Session::leave() noexcept {
  try {
    flush_directories();
    for (const Failure& failure : destination_.shipper_left()) {
      report_failure(last_id_, failure.path, Refusal(EIO, failure.error));
      if (report_.end == SessionEnd::complete) report_.end = SessionEnd::refused;
    }
    flush_file_systems();
    answers_.summary(done_id_, report_.error.empty() ? 0 : EPROTO, report_.error);
  } catch (const std::exception&) {
    // The shipper that would read the summary is gone; the report has the end of the session.
  }
}

void Session::flush_directories() {
  if (!destination_.durable()) return;
  for (const std::string& directory : named_in_) {
    if (const int error = destination_.flush_directory(directory); error != 0) return not_durable(error);
  }
}

// Flushes again after an error, which may concern another program's file and is then returned once. An error that
// concerns all files, such as that of an aborted journal, returns again.
void Session::flush_file_systems() {
  if (!destination_.durable()) return;
  for (const std::shared_ptr<FileSystem>& file_system : touched_) {
    if (file_system->flush() == 0 || file_system->each_file_flushed()) continue;
    if (const int error = file_system->flush(); error != 0) not_durable(error);
  }
}

void Session::not_durable(int error) {
  report_failure(last_id_, destination_.path(),
                 Refusal(error, "a power failure may undo this session: flushing it failed"));
  if (report_.end == SessionEnd::complete) report_.end = SessionEnd::refused;
}

}  // namespace wherry::tools
