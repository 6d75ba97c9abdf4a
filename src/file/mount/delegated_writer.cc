// SPDX-License-Identifier: Apache-2.0
#include "file/mount/delegated_writer.hpp"

#include <algorithm>
#include <cerrno>

#include "file/client/host_writes.hpp"
#include "file/mount/writer.hpp"
#include "file/wire/status.hpp"

namespace wherry::file::mount {
namespace {

/// `parts` without the first `skip` bytes.
std::vector<iovec> parts_from(const std::vector<iovec>& parts, std::size_t skip) {
  std::vector<iovec> rest;
  for (const iovec& part : parts) {
    const std::size_t skipped = std::min(skip, part.iov_len);
    skip -= skipped;
    if (skipped == part.iov_len) continue;
    rest.push_back({static_cast<std::byte*>(part.iov_base) + skipped, part.iov_len - skipped});
  }
  return rest;
}

}  // namespace

std::uint64_t DelegatedWriter::ask(std::uint64_t client, layout::FileStatus& status) {
  std::uint64_t room = 0;
  const Hosts::Use host = file_.file().use();
  if (host->writes().delegate(file_.file().handle(), client, status, room) != 0) room = 0;
  is_delegated_ = room != 0;
  if (is_delegated_) note(status);
  return room;
}

int DelegatedWriter::write(const Write& write) {
  const Hosts::Use host = file_.file().use();
  const Host::Handle handle = file_.file().handle();
  std::size_t done = 0;
  while (done < write.bytes) {
    const std::vector<iovec> parts = parts_from(write.parts, done);
    HostWrites::Written written;
    if (is_delegated_)
      written = host->writes().write(handle, write.offset + done, parts, write.drops);
    else
      written.result = write_undelegated(write.offset + done, parts);
    if (is_delegated_ && written.result.error == ENOLCK) {
      if (const int error = check_unchanged(write, written.begun); error != 0) return error;
      is_delegated_ = false;
      lost_();
      continue;
    }
    done += written.result.bytes;
    if (written.result.bytes == 0) return written.result.failed() ? written.result.error : EIO;
    size_ = std::max(size_, write.offset + done);
    if (written.modified != 0) modified_ = written.modified;
  }
  if (!is_delegated_) note_status(write.drops);
  return 0;
}

void DelegatedWriter::give_back() {
  if (is_delegated_) file_.file().use()->writes().give_back(file_.file().handle());
  is_delegated_ = false;
}

/// Other processes may append meanwhile: kept appends go after their data, and do not replace it.
Result DelegatedWriter::write_undelegated(std::uint64_t offset, std::span<const iovec> parts) {
  const Hosts::Use host = file_.file().use();
  const Host::Handle handle = file_.file().handle();
  if (!file_.appends()) return host->write(handle, offset, parts);
  std::vector<std::byte> data;
  for (const iovec& part : parts) {
    const auto* const bytes = static_cast<const std::byte*>(part.iov_base);
    data.insert(data.end(), bytes, bytes + part.iov_len);
  }
  return host->append_again(handle, offset, data);
}

void DelegatedWriter::note(const layout::FileStatus& status) {
  size_ = status.size;
  modified_ = nanoseconds_of(status.modified);
}

/// For requests whose answers lack the modification time, and which leave set-user-ID bits. Without this the next
/// daemon would consider these writes to be changes by others. So it does if the server does not answer.
void DelegatedWriter::note_status(std::uint32_t drops) {
  layout::FileStatus now{};
  const Hosts::Use host = file_.file().use();
  if (host->status(file_.file().handle(), now) != 0) return;
  note(now);
  drop_set_id_bits(*host.operator->(), file_.file().handle(), now.mode, drops);
}

/// The server was restarted, and does not know of the delegation. Kept data is written only if the file is unchanged,
/// or has only the beginning of the request that was in progress.
int DelegatedWriter::check_unchanged(const Write& write, bool begun) {
  layout::FileStatus now{};
  if (const int error = file_.file().use()->status(file_.file().handle(), now); error != 0) return error;
  if (begun) return now.size >= size_ && now.size <= std::max(size_, write.offset + write.bytes) ? 0 : ESTALE;
  return now.size == size_ && nanoseconds_of(now.modified) == modified_ ? 0 : ESTALE;
}

}  // namespace wherry::file::mount
