// SPDX-License-Identifier: Apache-2.0
#include "ship/shipment.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <wherry/address.hpp>

namespace wherry::tools {
namespace {

using layout::ShipKind;
using layout::ShipRecord;

constexpr std::uint64_t kBlock = 512;      // the unit of st_blocks on all filesystems
constexpr std::size_t kPiece = 64 * 1024;  // read size for a file of unknown size, as cp uses for small files

ShipRecord record_of(ShipKind kind, std::uint64_t id, const struct stat& status) {
  ShipRecord record{};
  record.kind = static_cast<std::uint32_t>(kind);
  record.id = id;
  record.mode = status.st_mode & 07777;
  record.mtime_seconds = status.st_mtim.tv_sec;
  record.mtime_nanoseconds = static_cast<std::uint32_t>(status.st_mtim.tv_nsec);
  return record;
}

ShipRecord record_of(ShipKind kind, std::uint64_t id) {
  ShipRecord record{};
  record.kind = static_cast<std::uint32_t>(kind);
  record.id = id;
  return record;
}

bool same_content(const struct stat& before, const struct stat& after) {
  return before.st_size == after.st_size && before.st_mtim.tv_sec == after.st_mtim.tv_sec &&
         before.st_mtim.tv_nsec == after.st_mtim.tv_nsec;
}

// Whether st_size is the real size. Files of /proc report 0 and files of /sys 4096, because the kernel makes their
// content on read. Such files have no blocks; but neither has an empty file, or one that is a single hole.
bool has_real_size(int descriptor, const struct stat& status) {
  if (status.st_size == 0) return false;
  if (status.st_blocks != 0) return true;
  const bool hole = ::lseek(descriptor, 0, SEEK_DATA) < 0 && errno == ENXIO;
  ::lseek(descriptor, 0, SEEK_SET);
  return hole;
}

}  // namespace

void Shipment::hello(std::string_view label, std::uint64_t total_files, std::uint64_t total_bytes) {
  label = label.substr(0, layout::kShipMaxLabel);
  layout::ShipHello hello{};
  hello.version = layout::kShipVersion;
  hello.magic = layout::kShipMagic;
  hello.pid = ::getpid();
  hello.node = own_node();
  hello.label_bytes = static_cast<std::uint32_t>(label.size());
  hello.total_files = total_files;
  hello.total_bytes = total_bytes;
  channel_.write(std::as_bytes(std::span(&hello, 1)));
  channel_.write(std::as_bytes(std::span(label)));
  channel_.flush();
}

void Shipment::directory(std::string_view path, const struct stat& status) {
  send(record_of(ShipKind::directory, ++last_id_, status), path);
  ++counts_.directories;
}

void Shipment::symlink(std::string_view path, std::string_view target, const struct stat& status) {
  send(record_of(ShipKind::symlink, ++last_id_, status), path, target);
  ++counts_.symlinks;
}

std::string Shipment::file(std::string_view path, int descriptor, const struct stat& status) {
  ShipRecord begin = record_of(ShipKind::file, ++last_id_, status);
  const bool size_known = has_real_size(descriptor, status);
  length_ = static_cast<std::uint64_t>(status.st_size);
  begin.length = size_known ? length_ : layout::kShipUnknownLength;
  send(begin, path);
  hash_.restart();

  Content result = size_known ? content(descriptor, status) : to_the_end(descriptor);
  // A file that changes during the read may arrive half old and half new, with a matching hash.
  struct stat now{};
  if (result == Content::whole && (::fstat(descriptor, &now) != 0 || !same_content(status, now))) {
    result = Content::unreadable;
    error_ = 0;
  }
  if (result == Content::whole) {
    ShipRecord end = record_of(ShipKind::file_end, last_id_);
    end.length = length_;
    end.hash = hash_.value();
    send(end);
    ++counts_.files;
    return {};
  }
  send(record_of(ShipKind::abandon, last_id_));
  if (result == Content::refused) return {};
  return error_ != 0 ? std::system_category().message(error_)
                     : "it changed during the read; ship it again when no program writes it";
}

void Shipment::goodbye(std::uint64_t failures) {
  ShipRecord record = record_of(ShipKind::goodbye, last_id_);
  record.length = failures;
  send(record);
  channel_.finish_sending();
}

Shipment::Content Shipment::content(int descriptor, const struct stat& status) {
  const auto size = static_cast<std::uint64_t>(status.st_size);
  // Only a file with fewer blocks than its length needs can have holes.
  if (static_cast<std::uint64_t>(status.st_blocks) * kBlock >= size) return extent(descriptor, 0, size);
  for (std::uint64_t position = 0; position < size;) {
    const off_t data = ::lseek(descriptor, static_cast<off_t>(position), SEEK_DATA);
    if (data < 0 && errno == EINVAL) return extent(descriptor, position, size);  // a filesystem without SEEK_DATA
    // ENXIO: no data behind the position. (If the file is truncated now, its changed length shows it.)
    const std::uint64_t from = data < 0 ? size : std::min(static_cast<std::uint64_t>(data), size);
    if (from > position) hash_.hole(position, from - position);
    if (from == size) break;
    const off_t hole = ::lseek(descriptor, data, SEEK_HOLE);
    const std::uint64_t end = hole < 0 ? size : std::min(static_cast<std::uint64_t>(hole), size);
    if (const Content result = extent(descriptor, from, end); result != Content::whole) return result;
    position = end;
  }
  return Content::whole;
}

// Each data record announces its length, so each piece is read before its record is sent.
Shipment::Content Shipment::to_the_end(int descriptor) {
  std::array<std::byte, kPiece> piece;
  for (length_ = 0;;) {
    if (results_.refused(last_id_)) return Content::refused;
    const ssize_t n = ::read(descriptor, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      error_ = errno;
      return Content::unreadable;
    }
    if (n == 0) return Content::whole;
    const auto bytes = std::span(piece).first(static_cast<std::size_t>(n));
    ShipRecord record = record_of(ShipKind::data, last_id_);
    record.offset = length_;
    record.length = bytes.size();
    send(record);
    channel_.write(bytes);
    hash_.data(bytes);
    counts_.bytes += bytes.size();
    length_ += bytes.size();
  }
}

Shipment::Content Shipment::extent(int descriptor, std::uint64_t offset, std::uint64_t end) {
  while (offset < end) {
    if (results_.refused(last_id_)) return Content::refused;
    const std::uint64_t length = std::min(end - offset, layout::kShipMaxData);
    if (!data(descriptor, offset, length)) return Content::unreadable;
    offset += length;
  }
  return Content::whole;
}

// Sends one data record. The announced number of bytes must follow even if the file ends early: then zeros are sent,
// and false is returned.
bool Shipment::data(int descriptor, std::uint64_t offset, std::uint64_t length) {
  ShipRecord record = record_of(ShipKind::data, last_id_);
  record.offset = offset;
  record.length = length;
  send(record);
  bool readable = true;
  for (std::uint64_t done = 0; done < length;) {
    std::span<std::byte> space = channel_.space();
    space = space.first(static_cast<std::size_t>(std::min<std::uint64_t>(space.size(), length - done)));
    ssize_t n = readable ? ::pread(descriptor, space.data(), space.size(), static_cast<off_t>(offset + done)) : 0;
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      if (readable) error_ = n < 0 ? errno : 0;
      readable = false;
      std::memset(space.data(), 0, space.size());
      n = static_cast<ssize_t>(space.size());
    }
    const auto bytes = static_cast<std::size_t>(n);
    hash_.data(space.first(bytes));
    channel_.wrote(bytes);
    counts_.bytes += bytes;
    done += bytes;
  }
  return readable;
}

void Shipment::send(const ShipRecord& record, std::string_view path, std::string_view target) {
  ShipRecord full = record;
  full.path_bytes = static_cast<std::uint32_t>(path.size());
  full.target_bytes = static_cast<std::uint32_t>(target.size());
  channel_.write(std::as_bytes(std::span(&full, 1)));
  channel_.write(std::as_bytes(std::span(path)));
  channel_.write(std::as_bytes(std::span(target)));
}

}  // namespace wherry::tools
