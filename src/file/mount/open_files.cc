// SPDX-License-Identifier: Apache-2.0
#include "file/mount/open_files.hpp"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "file/mount/attributes.hpp"
#include "file/wire/open_again.hpp"

namespace wherry::file::mount {
namespace {

/// Of one request for a copy: other calls of the connection wait for it.
constexpr std::uint64_t kMostCopiedAtOnce = std::uint64_t{16} << 20;

/// The kernel opens the server's file with the program's flags, and says EIO where it cannot. Without O_DIRECT there it
/// is EINVAL, as on the host.
bool is_refused(const OpenFile& file, int flags) {
  if ((flags & O_DIRECT) == 0 || file.backing() == nullptr || file.lent() == nullptr) return false;
  const UniqueFd direct = open_again(file.lent()->descriptor(), O_RDONLY | O_DIRECT | O_CLOEXEC | O_NONBLOCK);
  return !direct.valid() && errno == EINVAL;
}

}  // namespace

int OpenFiles::create(NodeId parent, std::string_view name, std::uint32_t mode, int flags, Entry& entry,
                      OpenFile*& file) {
  const OwnChanges::Change under_way(tree_.own_changes());
  const ServedTree::KeptNames kept = tree_.keep_names();
  const auto path = tree_.nodes().path(parent, name);
  if (!path) return ENOENT;
  std::unique_ptr<Hosts::File> made;
  const bool cuts = (flags & O_TRUNC) != 0 && (flags & O_ACCMODE) == O_RDONLY;
  const std::uint32_t wanted = open_flags_of((cuts ? flags & ~O_TRUNC : flags) | O_CREAT);
  const Host::Opened opened = tree_.hosts().open(*path, wanted, mode & 07777U, made);
  if (opened.error != 0) return opened.error;
  // Another client has made it meanwhile.
  if (const int error = cuts && opened.status.size != 0 ? tree_.hosts().any()->names().set_size(*path, 0) : 0;
      error != 0)
    return error;
  entry = tree_.refer(parent, name, opened.status);
  const auto shared = std::make_shared<OpenFile>(std::move(made), wanted, opened.status.mode);
  shared->settle();
  add(entry.node, shared);
  if (is_refused(*shared, flags)) {
    close(entry.node, shared.get());
    tree_.nodes().forget(entry.node, 1);
    return EINVAL;
  }
  file = shared.get();
  return 0;
}

int OpenFiles::open(NodeId node, int flags, OpenFile*& file) {
  std::unique_ptr<Hosts::File> opened;
  layout::FileStatus status{};
  const std::uint32_t wanted = open_flags_of(flags & ~(O_CREAT | O_EXCL | O_TRUNC));
  if (const int error = tree_.open(node, wanted, opened, status); error != 0) return error;
  const auto shared = std::make_shared<OpenFile>(std::move(opened), wanted, status.mode);
  add(node, shared);
  int error = is_refused(*shared, flags) ? EINVAL : 0;
  // Only now is it known to be this file.
  if (error == 0 && (flags & O_TRUNC) != 0) error = attributes_.set_size(node, 0, shared.get());
  if (error != 0) close(node, shared.get());
  file = error == 0 ? shared.get() : nullptr;
  return error;
}

/// Files of one node that are open at the same time are all served alike: the kernel demands it.
void OpenFiles::add(NodeId node, const std::shared_ptr<OpenFile>& file) {
  const std::shared_ptr<const LentFile> lent =
      passes_through() ? file->file().use()->lend(file->file().handle()) : nullptr;
  const std::lock_guard lock(adding_);
  const auto others = tree_.nodes().open_files(node);
  if (!others.empty())
    file->set_backing(others.front()->backing(), lent != nullptr ? lent : others.front()->lent());
  else if (lent != nullptr)
    file->set_backing(passthrough_.add(*lent), lent);
  // What a list has told of it is kept no longer: a read asks for the size from now on. Once is enough: answers that
  // are on their way to other readers would be dropped, too.
  const auto is_settled = [](const auto& other) { return other->is_settled(); };
  if (!file->is_settled() && std::ranges::none_of(others, is_settled)) tree_.drop(node, Kept::attributes);
  file->settle();
  tree_.nodes().add_open(node, file);
}

void OpenFiles::close(NodeId node, const OpenFile* file) {
  locks_.release(node, *file);
  tree_.nodes().remove_open(node, file).reset();
}

Result OpenFiles::read(OpenFile& file, std::uint64_t offset, std::span<std::byte> into) {
  return file.file().use()->read(file.file().handle(), offset, into);
}

/// A handle of the server's either appends or writes at offsets. The other way is asked for by pages of a shared
/// mapping, and where a program has changed O_APPEND since it opened the file: by another handle.
Result OpenFiles::write(NodeId node, OpenFile& file, std::uint64_t offset, std::span<const std::byte> from,
                        bool append) {
  const auto put = [&](const Hosts::File& by) {
    return append ? by.use()->append(by.handle(), from) : by.use()->write(by.handle(), offset, from);
  };
  if (file.appends() == append) return put(file.file());
  for (const auto& other : tree_.nodes().open_files(node)) {
    if (other->writes() && other->appends() == append) return put(other->file());
  }
  std::unique_ptr<Hosts::File> opened;
  layout::FileStatus status{};
  const std::uint32_t flags = layout::kFileOpenWrite | layout::kFileOpenNoFollow;
  const int error = tree_.open_again(node, append ? flags | layout::kFileOpenAppend : flags, opened, status);
  return error != 0 ? Result::failure(error) : put(*opened);
}

/// One request names both files, which are of one connection therefore: the first one is opened once more if need be.
Result OpenFiles::copy(const Position& from, const Position& to, std::uint64_t length,
                       const std::function<bool()>& is_interrupted) {
  const Hosts::File& target = to.file.file();
  std::unique_ptr<Hosts::File> opened;
  const bool is_beside = from.file.file().is_beside(target);
  layout::FileStatus status{};
  const std::uint32_t flags = layout::kFileOpenRead | layout::kFileOpenNoFollow;
  // Not where its name is gone, and it is open on other connections only.
  if (to.file.appends() || (!is_beside && tree_.open_again(from.node, flags, opened, status, &target) != 0))
    return Result::failure(EOPNOTSUPP);
  const Host::Handle source = is_beside ? from.file.file().handle() : opened->handle();
  std::uint64_t done = 0;
  while (done < length) {
    const std::uint64_t wanted = std::min(length - done, kMostCopiedAtOnce);
    const Result copied = target.use()->copy(source, from.offset + done, target.handle(), to.offset + done, wanted);
    if (copied.failed() && done == 0) {
      const bool is_refused = copied.error == EXDEV || copied.error == ENOSYS;
      return Result::failure(is_refused ? EOPNOTSUPP : copied.error);
    }
    if (copied.failed()) break;
    done += copied.bytes;
    if (copied.bytes < wanted || is_interrupted()) break;
  }
  return Result::moved(done);
}

int OpenFiles::flush(OpenFile& file) { return file.writes() ? file.file().use()->check_loss(file.file().handle()) : 0; }

int OpenFiles::sync(const Hosts::File& file, bool data_only) { return file.use()->flush(file.handle(), data_only); }

int OpenFiles::allocate(OpenFile& file, int mode, std::uint64_t offset, std::uint64_t length) {
  std::uint32_t flags = 0;
  if ((mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0) return EOPNOTSUPP;
  if ((mode & FALLOC_FL_KEEP_SIZE) != 0) flags |= layout::kFileAllocateKeepSize;
  if ((mode & FALLOC_FL_PUNCH_HOLE) != 0) flags |= layout::kFileAllocatePunch;
  if ((mode & FALLOC_FL_ZERO_RANGE) != 0) flags |= layout::kFileAllocateZero;
  return file.file().use()->allocate(file.file().handle(), flags, offset, length);
}

int OpenFiles::seek(OpenFile& file, std::uint64_t offset, bool data, std::uint64_t& found) {
  return file.file().use()->seek(file.file().handle(), offset, data ? layout::FileSeek::data : layout::FileSeek::hole,
                                 found);
}

long OpenFiles::passed_through(NodeId node) {
  if (const auto open = tree_.nodes().open_files(node); !open.empty())
    return open.front()->backing() ? open.front()->backing()->file_system() : 0;
  const auto identity = tree_.nodes().identity(node);
  if (!identity || !S_ISDIR(identity->type) || !passes_through()) return 0;
  layout::FileSystemStatus status{};
  const int error = tree_.by_name(
      node, [&](const std::string& path) { return tree_.hosts().any()->names().file_system(path, status); });
  return error == 0 ? static_cast<long>(status.type) : 0;
}

}  // namespace wherry::file::mount
