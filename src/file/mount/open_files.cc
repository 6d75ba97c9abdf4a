// SPDX-License-Identifier: Apache-2.0
#include "file/mount/open_files.hpp"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "file/mount/attributes.hpp"
#include "file/wire/open_again.hpp"

namespace wherry::file::mount {
namespace {

/// Limit of one copy request: other calls on the connection wait for it.
constexpr std::uint64_t kMostCopiedAtOnce = std::uint64_t{16} << 20;

/// The kernel opens the server's file with the program's flags, and returns EIO if that fails. For a file system
/// without O_DIRECT the error must be EINVAL, as on the host.
bool is_refused(const OpenFile& file, int flags) {
  if ((flags & O_DIRECT) == 0 || file.backing() == nullptr || file.lent() == nullptr) return false;
  const UniqueFd direct = open_again(file.lent()->descriptor(), O_RDONLY | O_DIRECT | O_CLOEXEC | O_NONBLOCK);
  return !direct.valid() && errno == EINVAL;
}

}  // namespace

/// Files with the same backing share the object that unregisters it.
void OpenFiles::restore(const KeptSnapshot& left) {
  std::map<int, std::shared_ptr<const Passthrough::Backing>> backings;
  for (const auto& [number, open] : left.open) {
    if ((open.flags & layout::kFileOpenDirectory) != 0) continue;
    const bool kept = tree_.kept_descriptors()->has({.kind = KeptKind::file, .id = number});
    const bool lost = Locks::were_lost(left, *tree_.kept_descriptors(), number);
    const auto noted = left.boots.find(number);
    const auto seen = noted == left.boots.end() ? std::nullopt : std::optional(noted->second);
    const auto file =
        std::make_shared<OpenFile>(tree_.resume(open.node, number, open.flags, lost, seen), open.flags, open.mode);
    file->set_pages(tree_.nodes().pages(open.node));
    file->set_number(number);
    tree_.keep_boots(file->file(), number);
    file->errors().keep_in(tree_.kept(), number, open.errors);
    std::shared_ptr<const Passthrough::Backing> backing;
    if (open.backing != 0) {
      auto& shared = backings[open.backing];
      if (shared == nullptr) shared = passthrough_.resume(open.backing, static_cast<long>(open.file_system));
      backing = shared;
    }
    file->set_backing(std::move(backing), nullptr);
    file->set_attributes_dropped();
    if (kept) file->set_kept();
    numbered_.add(number, file);
    tree_.nodes().add_open(open.node, file);
    answered_[open.request] = number;
  }
}

OpenFile* OpenFiles::opened_before() const {
  const auto found = served_request().repeated ? answered_.find(served_request().number) : answered_.end();
  return found == answered_.end() ? nullptr : numbered_.find(found->second);
}

/// For a repeated exclusive create, the first attempt may have made the file.
Host::Opened OpenFiles::make(const std::string& path, std::uint32_t wanted, std::uint32_t mode,
                             std::unique_ptr<Hosts::File>& file) {
  if ((wanted & layout::kFileOpenExclusive) == 0) return tree_.hosts().open(path, wanted, mode, file);
  const auto first = tree_.attempts().begin(Attempts::now());
  Host::Opened opened = tree_.hosts().open(path, wanted, mode, file);
  const int error = opened.error;
  if (error == 0) return opened;
  opened.error = tree_.made_before(first, error, path);
  return opened.error != 0 ? opened : tree_.hosts().open(path, wanted & ~layout::kFileOpenExclusive, mode, file);
}

int OpenFiles::create(NodeId parent, std::string_view name, std::uint32_t mode, int flags, Entry& entry,
                      OpenFile*& file) {
  const OwnChanges::Change under_way(tree_.own_changes());
  const ServedTree::KeptNames kept = tree_.keep_names();
  const auto path = tree_.nodes().path(parent, name);
  if (!path) return ENOENT;
  file = opened_before();
  if (file != nullptr) {
    layout::FileStatus status{};
    const int error = file->file().use()->status(file->file().handle(), status);
    if (error == 0) entry = tree_.refer(parent, name, status);
    return error;
  }
  std::unique_ptr<Hosts::File> made;
  const bool cuts = (flags & O_TRUNC) != 0 && (flags & O_ACCMODE) == O_RDONLY;
  const std::uint32_t wanted = open_flags_of((cuts ? flags & ~O_TRUNC : flags) | O_CREAT);
  const Host::Opened opened = make(*path, wanted, mode & 07777U, made);
  if (opened.error != 0) return opened.error;
  // Another client has made the file meanwhile.
  if (const int error = cuts && opened.status.size != 0 ? tree_.hosts().any()->names().set_size(*path, 0) : 0;
      error != 0)
    return error;
  entry = tree_.refer(parent, name, opened.status);
  const auto shared = std::make_shared<OpenFile>(std::move(made), wanted, opened.status.mode);
  shared->set_attributes_dropped();
  add(entry.node, shared);
  if (const int error = is_refused(*shared, flags) ? EINVAL : end_other_write_tickets(entry.node, *shared);
      error != 0) {
    close(entry.node, shared.get());
    tree_.nodes().forget(entry.node, 1);
    return error;
  }
  file = shared.get();
  return 0;
}

int OpenFiles::open(NodeId node, int flags, OpenFile*& file) {
  file = opened_before();
  if (file != nullptr) return (flags & O_TRUNC) != 0 ? attributes_.set_size(node, 0, file) : 0;
  const std::shared_ptr<CachedPages> pages = tree_.nodes().pages(node);
  const std::uint64_t writes = pages->writes();
  // Otherwise the server would have to recall the file.
  tree_.write_behind().give_back(node);
  std::unique_ptr<Hosts::File> opened;
  layout::FileStatus status{};
  const std::uint32_t wanted = open_flags_of(flags & ~(O_CREAT | O_EXCL | O_TRUNC));
  const std::uint32_t told = passes_through() ? 0 : layout::kFileOpenTellStable;
  if (const int error = tree_.open(node, wanted | told, opened, status); error != 0) return error;
  const auto shared = std::make_shared<OpenFile>(std::move(opened), wanted, status.mode);
  if ((flags & O_TRUNC) == 0) {
    const CachedPages::State state = CachedPages::state_of(status);
    if (pages->hold(state)) {
      shared->set_keeps_pages();
    } else if (shared->file().is_stable()) {
      shared->record_at_read({.state = state, .writes = writes});
    }
  }
  add(node, shared);
  int error = is_refused(*shared, flags) ? EINVAL : end_other_write_tickets(node, *shared);
  // Only now is it certain to be this file.
  if (error == 0 && (flags & O_TRUNC) != 0) error = attributes_.set_size(node, 0, shared.get());
  if (error != 0) close(node, shared.get());
  file = error == 0 ? shared.get() : nullptr;
  return error;
}

/// Files of one node that are open at the same time must all be served alike: the kernel requires it.
void OpenFiles::add(NodeId node, const std::shared_ptr<OpenFile>& file) {
  const std::shared_ptr<const LentFile> lent =
      passes_through() ? file->file().use()->lend(file->file().handle()) : nullptr;
  const std::lock_guard lock(adding_);
  const auto others = tree_.nodes().open_files(node);
  for (const auto& other : others) file->errors().note_other(other->errors().pending());
  if (!others.empty())
    file->set_backing(others.front()->backing(), lent != nullptr ? lent : others.front()->lent());
  else if (lent != nullptr)
    file->set_backing(passthrough_.add(*lent), lent);
  file->set_pages(tree_.nodes().pages(node));
  file->set_number(tree_.next_number());
  const std::uint32_t unreported = file->errors().unreported();
  file->errors().keep_in(tree_.kept(), file->number(), unreported);
  const auto& backing = file->backing();
  KeptState::Batch(tree_.kept())
      .add_open({.head = {},
                 .number = file->number(),
                 .node = node,
                 .request = served_request().number,
                 .device = 0,
                 .file_system = backing == nullptr ? 0 : backing->file_system(),
                 .flags = file->flags(),
                 .mode = file->mode(),
                 .backing = backing == nullptr ? 0 : backing->number(),
                 .errors = unreported});
  tree_.keep_boots(file->file(), file->number());
  numbered_.add(file->number(), file);
  tree_.nodes().add_open(node, file);
  // Drops the attributes that came with a list: from now on a read asks for the size. No list made after add_open has
  // any. Only once per node, since it also discards answers that are under way to other readers.
  const auto is_dropped = [](const auto& other) { return other->are_attributes_dropped(); };
  if (!file->are_attributes_dropped() && std::ranges::none_of(others, is_dropped)) tree_.drop(node, Kept::attributes);
  file->set_attributes_dropped();
}

void OpenFiles::close(NodeId node, OpenFile* file) {
  tree_.write_behind().close(node, *file);
  tree_.write_behind().log_errors(node, *file);
  locks_.release(node, *file);
  // Before the kernel may reuse the backing's number for another file.
  KeptState::Batch(tree_.kept()).add(layout::KeptWord::closed, file->number());
  if (file->is_kept()) tree_.kept_descriptors()->drop({.kind = KeptKind::file, .id = file->number()});
  const auto closed = numbered_.remove(file->number());
  tree_.nodes().remove_open(node, file).reset();
}

Result OpenFiles::read(NodeId node, OpenFile& file, std::uint64_t offset, std::span<std::byte> into) {
  file.note_read();
  tree_.write_behind().settle_for_pages(node);
  return file.file().use()->read(file.file().handle(), offset, into);
}

Result OpenFiles::write(NodeId node, OpenFile& file, std::uint64_t offset, std::span<const std::byte> from, Write how,
                        const Writer& by) {
  file.pages().note_write();
  if (how != Write::page) {
    if (const int error = file.errors().take_for_write(); error != 0) return Result::failure(error);
  }
  // Under the server's kernel its descriptors are used, without requests.
  const bool keeps = !file.synchronises() && !tree_.hosts().lends();
  const bool is_append = how == Write::at_the_end || how == Write::kept_at_the_end;
  if (keeps && how == Write::kept_at_the_end && keep_append(node, file, from, by)) return Result::moved(from.size());
  const bool keeps_at = keeps && how == Write::kept && !file.appends();
  const std::size_t kept = keeps_at ? tree_.write_behind().write(node, file, offset, from, by) : 0;
  if (kept == from.size()) return Result::moved(kept);
  tree_.write_behind().give_back(node);
  const Result result = put(node, file, offset + kept, from.subspan(kept), is_append);
  // The kept part is written; the next call returns the error.
  return kept == 0 ? result : Result::moved(kept + result.bytes);
}

/// A server's handle either appends or writes at offsets. The other way needs another handle. It occurs for pages of a
/// shared mapping, and if a program has changed O_APPEND after the open.
Result OpenFiles::put(NodeId node, OpenFile& file, std::uint64_t offset, std::span<const std::byte> from, bool append) {
  const auto by_handle = [&](const Hosts::File& by) {
    return append ? this->append(by, from) : by.use()->write(by.handle(), offset, from);
  };
  if (file.appends() == append) return by_handle(file.file());
  for (const auto& other : tree_.nodes().open_files(node)) {
    if (other->writes() && other->appends() == append) return by_handle(other->file());
  }
  tree_.write_behind().give_back(node);
  std::unique_ptr<Hosts::File> opened;
  layout::FileStatus status{};
  const std::uint32_t flags = layout::kFileOpenWrite | layout::kFileOpenNoFollow;
  const int error = tree_.open_again(node, append ? flags | layout::kFileOpenAppend : flags, opened, status);
  return error != 0 ? Result::failure(error) : by_handle(*opened);
}

/// False: the caller makes the append. A repeated one must first be compared with the file.
bool OpenFiles::keep_append(NodeId node, OpenFile& file, std::span<const std::byte> from, const Writer& by) {
  if (!file.appends() || served_request().repeated) return false;
  return tree_.write_behind().append(node, file, from, by,
                                     [this](std::uint64_t end) { (void)tree_.attempts().begin(end); });
}

/// A repeated append is compared with the data after the end that the first attempt saw.
Result OpenFiles::append(const Hosts::File& file, std::span<const std::byte> from) {
  if (tree_.kept() == nullptr) return file.use()->append(file.handle(), from);
  // Asks for the current end: others may have appended since, or an earlier daemon's writes were replayed.
  const auto first = tree_.attempts().begin(file.use()->end(file.handle()));
  if (first) return file.use()->append_again(file.handle(), *first, from);
  return file.use()->append(file.handle(), from);
}

/// One request names both files, so both must be on one connection. If necessary, opens the source file again there.
Result OpenFiles::copy(const Position& from, const Position& to, std::uint64_t length,
                       const std::function<bool()>& is_interrupted) {
  tree_.write_behind().give_back(from.node);
  tree_.write_behind().give_back(to.node);
  const Hosts::File& target = to.file.file();
  std::unique_ptr<Hosts::File> opened;
  const bool shares_connection = from.file.file().shares_connection_with(target);
  layout::FileStatus status{};
  const std::uint32_t flags = layout::kFileOpenRead | layout::kFileOpenNoFollow;
  // Fails if the file has no name, and is open only on other connections.
  if (to.file.appends() || (!shares_connection && tree_.open_again(from.node, flags, opened, status, &target) != 0))
    return Result::failure(EOPNOTSUPP);
  const Host::Handle source = shares_connection ? from.file.file().handle() : opened->handle();
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

/// Ends write tickets and waits for writes: a killed process closes its files before it is gone, so no write of it may
/// follow.
int OpenFiles::flush(NodeId node, OpenFile& file) {
  if (!file.writes()) return 0;
  const int ended = end_write_tickets(file);
  tree_.write_behind().settle(node);
  const int error = file.errors().take_for_close();
  const int lost = error != 0 ? error : file.file().use()->check_loss(file.file().handle());
  return lost != 0 ? lost : ended;
}

int OpenFiles::sync(NodeId node, OpenFile& file, bool data_only) {
  tree_.write_behind().settle(node);
  const int error = file.errors().take_for_sync();
  return error != 0 ? error : sync(file.file(), data_only);
}

int OpenFiles::sync(const Hosts::File& file, bool data_only) { return file.use()->flush(file.handle(), data_only); }

int OpenFiles::allocate(NodeId node, OpenFile& file, int mode, std::uint64_t offset, std::uint64_t length) {
  tree_.write_behind().give_back(node);
  std::uint32_t flags = 0;
  if ((mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0) return EOPNOTSUPP;
  if ((mode & FALLOC_FL_KEEP_SIZE) != 0) flags |= layout::kFileAllocateKeepSize;
  if ((mode & FALLOC_FL_PUNCH_HOLE) != 0) flags |= layout::kFileAllocatePunch;
  if ((mode & FALLOC_FL_ZERO_RANGE) != 0) flags |= layout::kFileAllocateZero;
  return file.file().use()->allocate(file.file().handle(), flags, offset, length);
}

int OpenFiles::seek(NodeId node, OpenFile& file, std::uint64_t offset, bool data, std::uint64_t& found) {
  tree_.write_behind().settle(node);
  return file.file().use()->seek(file.file().handle(), offset, data ? layout::FileSeek::data : layout::FileSeek::hole,
                                 found);
}

/// Writing back a whole page would undo what a ticket has written to it since the page was read. So there are either
/// tickets for writing, or open files that can be mapped for writing, but not both.
int OpenFiles::make_ticket(NodeId node, OpenFile& file, bool writes, layout::FileTicket& ticket) {
  if (file.backing() != nullptr) return EOPNOTSUPP;
  // The server opens the file again for a ticket.
  tree_.write_behind().give_back(node);
  if (!writes)
    return !file.reads() ? EACCES
                         : file.file().use()->tickets().make(file.file().handle(), layout::kFileOpenRead, ticket);
  if (!file.writes() || file.appends()) return EACCES;
  const std::lock_guard lock(file.ticket_mutex());
  const auto others = tree_.nodes().open_files(node);
  if (std::ranges::any_of(others, [](const auto& other) { return other->may_be_mapped_to_write(); })) return EBUSY;
  file.has_write_tickets() = true;
  return file.file().use()->tickets().make(file.file().handle(), layout::kFileOpenWrite, ticket);
}

/// Ends write tickets for a file that is already open, so that no more are made. The kernel drops its pages once this
/// open is answered.
int OpenFiles::end_other_write_tickets(NodeId node, const OpenFile& opened) {
  if (!opened.may_be_mapped_to_write()) return 0;
  for (const auto& other : tree_.nodes().open_files(node)) {
    if (const int error = end_write_tickets(*other); error != 0) return error;
  }
  return 0;
}

int OpenFiles::end_write_tickets(OpenFile& file) {
  const std::lock_guard lock(file.ticket_mutex());
  if (!file.has_write_tickets()) return 0;
  const int error = file.file().use()->tickets().end(file.file().handle());
  if (error == 0) file.has_write_tickets() = false;
  return error;
}

int OpenFiles::note_written(const OpenFile& file, const BootId& boot) {
  if (!file.writes()) return EBADF;
  return file.file().use()->tickets().note_written(file.file().handle(), boot);
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
