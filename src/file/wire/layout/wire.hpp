// SPDX-License-Identifier: Apache-2.0
// What a card's processes and the host's file server (`wherry serve`) say to each other over one stream. Little-endian;
// no record is aligned in the stream, so both sides copy a record out before they look at it.
//
//   client to server                                   server to client
//   +-----------+                                      +-----------+
//   | FileHello |  once                                | FileHello |  once
//   +-----------+                                      +-----------+
//   +-------------+------+--------+------+             +------------+---------+
//   | FileRequest | name | second | data |  any number | FileAnswer | payload |  one per request, or more (read)
//   +-------------+------+--------+------+             +------------+---------+
//
// Data follows a write, an append and a set_xattr. A call that opens a file and meets a lease has done nothing: it is
// answered at once (kFileLeased), and the client asks again. Were it to wait here, what ends the lease could wait
// behind it. Requests are served one after the other, and answered in that order. A read is answered in pieces, so that
// one piece is copied out of the stream while the next is read from the file. `FileAnswer::last` marks the last piece.
//
// A client that keeps what it knows of files has one more connection, which names it: its `await_recalls` is answered
// when files that are delegated to it are to be given back. All its connections ask for delegations by that number.
// A delegation for writing belongs to the handle by which it was asked for, ends with it, and is given back by it; its
// recall is repeated until then.
//
// A handle of open_locks is one owner of locks, an open file description at the server. Its locks end with it, and it
// ends with the connection: a lock is never moved to another one.
//
// A handle of open_ticket is of a file that another client has open, whose user trusts this one with its data: it gets
// no more than that client's access, and as long as that client leaves it.
//
// Names are paths relative to the directory that is served, "." is that directory. No path leads out of it.
#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace wherry::layout {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian; this machine needs byte swaps");

inline constexpr std::uint32_t kFileVersion = 7;
inline constexpr std::uint32_t kFileMagic = 0x454C4946;  ///< "FILE" as bytes

// Limits: the server ends the connection of a client that passes one.
inline constexpr std::uint32_t kFileMaxName = 4095;                      ///< of a name, and of a symbolic link's target
inline constexpr std::uint64_t kFileMaxLength = std::uint64_t{1} << 30;  ///< of one read, write or copy
inline constexpr std::uint64_t kFileMaxAppend = std::uint64_t{1} << 24;  ///< of one append: it is gathered first
inline constexpr std::uint64_t kFileMaxList = std::uint64_t{1} << 16;    ///< of one piece of a directory's list
inline constexpr std::uint64_t kFileMaxXattr = std::uint64_t{1} << 16;  ///< of a value, and of a list of names; Linux's

/// The same from both sides. Where both run under one kernel (`boot` says so) a client of the same user may take the
/// server's descriptor of a file that it has opened, and use that by itself.
struct FileHello {
  std::uint32_t version;     // W: sender; kFileVersion
  std::uint32_t magic;       // W: sender; kFileMagic
  std::uint32_t read_only;   // W: server; 1 if it serves no changes; 0 from the client
  std::uint32_t lends;       // W: server; 1 if it lends descriptors; 0 from the client
  std::uint8_t boot[16];     // W: server; names one run of its kernel: data that was not flushed is lost with it
  std::uint64_t root;        // W: server; 1 and the number of the directory's descriptor in its process; 0: not lent
  std::uint64_t client;      // W: client; names it through all its processes, each in place of an earlier one; 0: none
  std::uint64_t process;     // W: client; among those, the later the higher: answered once none of an earlier is served
  std::uint8_t reserved[8];  // W: sender; 0
};
static_assert(sizeof(FileHello) == 64 && std::is_trivially_copyable_v<FileHello>);
static_assert(offsetof(FileHello, version) == 0);
static_assert(offsetof(FileHello, magic) == 4);
static_assert(offsetof(FileHello, read_only) == 8);
static_assert(offsetof(FileHello, lends) == 12);
static_assert(offsetof(FileHello, boot) == 16);
static_assert(offsetof(FileHello, root) == 32);
static_assert(offsetof(FileHello, client) == 40);
static_assert(offsetof(FileHello, process) == 48);
static_assert(offsetof(FileHello, reserved) == 56);

enum class FileCall : std::uint32_t {
  open = 1,          ///< name, flags (kFileOpen...), mode; or handle, flags: its file once more; answer: value is the
                     ///< handle, position: 1 and the number of its descriptor in the server's process, 0: not lent;
                     ///< FileStatus
  close = 2,         ///< handle
  read = 3,          ///< handle, offset, length; answers: pieces of data
  write = 4,         ///< handle, offset, length, flags (kFileWrite...), data; answer: value is the bytes written, also
                     ///< beside an error
  append = 5,        ///< the same at the end of the file; offset: its size as last heard; answer: position is the end
  status = 6,        ///< handle or name, flags (kFileLook...); answer: FileStatus
  set_size = 7,      ///< handle or name, offset
  set_mode = 8,      ///< handle or name, mode
  set_times = 9,     ///< handle or name, flags (kFileLook...), second: FileTimes
  file_system = 10,  ///< handle or name; answer: FileSystemStatus
  flush = 11,        ///< handle, flags (kFileFlush...); answered when all of it is durable
  allocate = 12,     ///< handle, flags (kFileAllocate...), offset, length
  seek = 13,         ///< handle, offset, flags (FileSeek); answer: position
  list = 14,  ///< handle, offset: 0 or a cookie, length: room, flags (kFileList...); answer: FileEntry, any number
  make_directory = 15,  ///< name, mode
  remove = 16,          ///< name, flags (kFileRemove...)
  rename = 17,          ///< name, second: the new name, flags (kFileRename...)
  link = 18,            ///< name, second: the new name
  symlink = 19,         ///< name, second: what it is to hold
  read_link = 20,       ///< name; answer: what it holds
  set_owner = 22,  ///< handle or name, flags (kFileLook...), offset: user, length: group; each may be kFileOwnerKept
  // Extended attributes, all four: handle or name, flags (kFileLookNoFollow). Only those of kFileXattrNamespace.
  get_xattr = 23,     ///< second: the attribute; answer: its value
  list_xattrs = 24,   ///< answer: the attributes' names, each with a zero behind it
  set_xattr = 25,     ///< second: the attribute, flags (kFileXattr... too), length, data: the value
  remove_xattr = 26,  ///< second: the attribute
  make_node = 27,     ///< name, mode, flags (FileNode)
  copy = 28,          ///< handle, offset: from there; length, second: FileCopy; answer: value is the bytes copied
  open_locks =
      29,         ///< handle, flags (kFileLockWhole); answer: value is a handle for `set_lock`, `get_lock` and `close`
  set_lock = 30,  ///< handle of open_locks, offset, length, mode: FileLockType, flags (kFileLockWhole); never waits
  get_lock = 31,  ///< handle of open_locks or open, offset, length, mode: FileLockType; answer: FileLock
  await_recalls = 32,  ///< offset: 0 at first, later the client's number; answer: value is that number, FileIdentity,
                       ///< any number; none at first
  delegate = 33,       ///< handle, offset: the client's number; answer: value is how long in ms, 0: not; FileStatus
  give_back = 34,      ///< offset: the client's number, second: FileIdentity, any number
  heed_recalls =
      35,  ///< the same; answer: FileIdentity, those that are still delegated, and are so for a time from now on
  make_ticket = 36,     ///< handle, flags (kFileOpenRead, kFileOpenWrite); answer: FileTicket
  open_ticket = 37,     ///< second: FileTicket; answer: as open's, a handle for read, write, flush, status and close
  end_tickets = 38,     ///< handle; answered when no write by its tickets is under way, and none follows
  delegate_write = 39,  ///< handle, offset: the client's number; answer: value is how many bytes the client may keep
                        ///< that are not written yet, 0: none, the file is not delegated to it; FileStatus. Asked again
                        ///< for room for more
  return_write = 40,    ///< handle
};
inline constexpr std::uint32_t kFileCalls = 41;  ///< one more than the last

// The clock is that which stamps files, coarse, in ns since 1970, as it was before the server looked at the file.

/// `handle` of a request that has none, and means `name`.
inline constexpr std::uint64_t kFileNoHandle = 0;

/// One size for every call; a field that the call does not use is 0. W: client, every field.
struct FileRequest {
  std::uint32_t call;  ///< FileCall
  std::uint32_t id;    ///< comes back in the answers
  std::uint64_t handle;
  std::uint64_t offset;
  std::uint64_t length;
  std::uint32_t flags;
  std::uint32_t mode;          ///< permission bits, as the file is to have them
  std::uint32_t name_bytes;    ///< bytes of the name behind this
  std::uint32_t second_bytes;  ///< bytes behind the name
  std::uint32_t repeated;      ///< 1: sent once before over a connection that broke without an answer; 0 otherwise
  std::uint32_t reserved[3];
};
static_assert(sizeof(FileRequest) == 64 && std::is_trivially_copyable_v<FileRequest>);
static_assert(offsetof(FileRequest, call) == 0);
static_assert(offsetof(FileRequest, id) == 4);
static_assert(offsetof(FileRequest, handle) == 8);
static_assert(offsetof(FileRequest, offset) == 16);
static_assert(offsetof(FileRequest, length) == 24);
static_assert(offsetof(FileRequest, flags) == 32);
static_assert(offsetof(FileRequest, mode) == 36);
static_assert(offsetof(FileRequest, name_bytes) == 40);
static_assert(offsetof(FileRequest, second_bytes) == 44);
static_assert(offsetof(FileRequest, repeated) == 48);
static_assert(offsetof(FileRequest, reserved) == 52);

/// W: server, every field.
struct FileAnswer {
  std::uint32_t id;
  std::uint32_t last;           ///< 1: the last for this request; 0: more follow
  std::uint32_t error;          ///< an errno value as Linux numbers them, 0 for none
  std::uint32_t payload_bytes;  ///< bytes behind this
  std::uint64_t value;
  std::uint64_t position;
};
static_assert(sizeof(FileAnswer) == 32 && std::is_trivially_copyable_v<FileAnswer>);
static_assert(offsetof(FileAnswer, id) == 0);
static_assert(offsetof(FileAnswer, last) == 4);
static_assert(offsetof(FileAnswer, error) == 8);
static_assert(offsetof(FileAnswer, payload_bytes) == 12);
static_assert(offsetof(FileAnswer, value) == 16);
static_assert(offsetof(FileAnswer, position) == 24);

/// `position` of an answer with EAGAIN: a lease is in the way of a file that is to be opened, or a write by a ticket
/// that is to end. Nothing has happened.
inline constexpr std::uint64_t kFileLeased = 1;

// Bits of `open`'s flags.
inline constexpr std::uint32_t kFileOpenRead = 1;
inline constexpr std::uint32_t kFileOpenWrite = 2;
inline constexpr std::uint32_t kFileOpenAppend = 4;  ///< for the call `append`; `write` on such a handle is refused
inline constexpr std::uint32_t kFileOpenCreate = 8;
inline constexpr std::uint32_t kFileOpenExclusive = 16;
inline constexpr std::uint32_t kFileOpenTruncate = 32;
inline constexpr std::uint32_t kFileOpenDirectory = 64;
inline constexpr std::uint32_t kFileOpenNoFollow = 128;
inline constexpr std::uint32_t kFileOpenSync = 256;
inline constexpr std::uint32_t kFileOpenDataSync = 512;
inline constexpr std::uint32_t kFileOpenAll = 1023;
// Bits of the flags of other calls.
inline constexpr std::uint32_t kFileLookNoFollow = 1;  ///< status, set_times, set_owner, ..._xattr
inline constexpr std::uint32_t kFileXattrCreate = 2;   ///< set_xattr: EEXIST if the attribute is there
inline constexpr std::uint32_t kFileXattrReplace = 4;  ///< set_xattr: ENODATA if it is not
/// write: of data that was kept, also of appends. ENOLCK if the file is not delegated by this handle. Then position is
/// 1 if the request is a repeated one and the file has the beginning of its data there: the first attempt was made, or
/// some of it. Otherwise position is the file's time of modification, in ns since 1970.
inline constexpr std::uint32_t kFileWriteKept = 1;
/// With kFileWriteKept. Set-user-ID and set-group-ID bits that were set since the file was delegated go as they do
/// natively: by a process that is not root the first, and the second if the group may execute the file; by one outside
/// of the file's group the second in any case.
inline constexpr std::uint32_t kFileWriteByUser = 2;
inline constexpr std::uint32_t kFileWriteByOutsider = 4;
inline constexpr std::uint32_t kFileFlushDataOnly = 1;    ///< flush: as fdatasync
inline constexpr std::uint32_t kFileRemoveDirectory = 1;  ///< remove: as rmdir; otherwise as unlink
inline constexpr std::uint32_t kFileRenameNoReplace = 1;  ///< rename
inline constexpr std::uint32_t kFileRenameExchange = 2;
inline constexpr std::uint32_t kFileAllocateKeepSize = 1;  ///< allocate
inline constexpr std::uint32_t kFileAllocatePunch = 2;
inline constexpr std::uint32_t kFileAllocateZero = 4;
/// open_locks, set_lock: as flock(2), of the whole file; otherwise of a range, as fcntl(2) by open file descriptions.
/// One handle has locks of one kind.
inline constexpr std::uint32_t kFileLockWhole = 1;

enum class FileLockType : std::uint32_t { none = 0, read = 1, write = 2 };

/// A range that is locked, or is to be.
struct FileLock {
  std::uint64_t offset;
  std::uint64_t length;  ///< 0: to the end of the file, wherever that comes to be
  std::uint32_t type;    ///< FileLockType; of an answer `none` if nothing is in the way
  std::uint32_t reserved;
};
static_assert(sizeof(FileLock) == 24 && std::is_trivially_copyable_v<FileLock>);
static_assert(offsetof(FileLock, length) == 8 && offsetof(FileLock, type) == 16 && offsetof(FileLock, reserved) == 20);

/// Names a file among those that a server serves.
struct FileIdentity {
  std::uint64_t device;
  std::uint64_t inode;
  auto operator<=>(const FileIdentity&) const = default;
};
static_assert(sizeof(FileIdentity) == 16 && offsetof(FileIdentity, inode) == 8);

/// A delegation: the file is not written to before the client has given it back, or so much time has passed since the
/// client asked for it. An open for writing waits for that.
inline constexpr std::uint64_t kFileDelegationMs = 100;
/// Of one answer of await_recalls, and of one give_back.
inline constexpr std::size_t kFileMaxIdentities = kFileMaxName / sizeof(FileIdentity);

/// Lets another client open the file of a handle once, for what the ticket was asked for. What was opened by tickets of
/// a handle ends with that handle: ESTALE.
struct FileTicket {
  std::uint8_t random[16];
  auto operator<=>(const FileTicket&) const = default;
};
static_assert(sizeof(FileTicket) == 16);
/// A ticket that was not used by then is void.
inline constexpr std::uint64_t kFileTicketMs = 10'000;

inline constexpr std::uint32_t kFileListStatus = 1;  ///< list: a FileStatus comes with each entry

/// What the names of served attributes begin with. Others belong to the host's kernel: EOPNOTSUPP.
inline constexpr std::string_view kFileXattrNamespace = "user.";

/// The flags of `make_node`: its type.
enum class FileNode : std::uint32_t { fifo = 1, socket = 2 };

/// The flags of `seek`.
enum class FileSeek : std::uint32_t { data = 1, hole = 2 };

struct FileTime {
  std::int64_t seconds;
  std::uint32_t nanoseconds;  ///< below 1e9, or one of the two below
  std::uint32_t reserved;     ///< 0
};
static_assert(sizeof(FileTime) == 16 && offsetof(FileTime, nanoseconds) == 8 && offsetof(FileTime, reserved) == 12);
inline constexpr std::uint32_t kFileTimeNow = 0x3FFFFFFF;
inline constexpr std::uint32_t kFileTimeKept = 0x3FFFFFFE;

/// A user or group that stays as it is.
inline constexpr std::uint32_t kFileOwnerKept = 0xFFFFFFFF;

struct FileTimes {
  FileTime accessed;
  FileTime modified;
};
static_assert(sizeof(FileTimes) == 32 && offsetof(FileTimes, modified) == 16);

/// Where a `copy` writes to. Fewer bytes than asked for and no error: the file that is read ends there.
struct FileCopy {
  std::uint64_t handle;
  std::uint64_t offset;
};
static_assert(sizeof(FileCopy) == 16 && offsetof(FileCopy, offset) == 8);

struct FileStatus {
  std::uint64_t device;
  std::uint64_t inode;
  std::uint64_t size;
  std::uint64_t blocks;  ///< of 512 bytes
  std::uint32_t mode;
  std::uint32_t links;
  std::uint32_t user;
  std::uint32_t group;
  std::uint64_t special_device;
  std::uint32_t block_bytes;
  std::uint32_t has_birth;  ///< 1 if `born` is known
  FileTime accessed;
  FileTime modified;
  FileTime changed;
  FileTime born;
};
static_assert(sizeof(FileStatus) == 128 && std::is_trivially_copyable_v<FileStatus>);
static_assert(offsetof(FileStatus, mode) == 32);
static_assert(offsetof(FileStatus, special_device) == 48);
static_assert(offsetof(FileStatus, block_bytes) == 56);
static_assert(offsetof(FileStatus, accessed) == 64);
static_assert(offsetof(FileStatus, born) == 112);

struct FileSystemStatus {
  std::uint64_t type;
  std::uint64_t block_bytes;
  std::uint64_t blocks;
  std::uint64_t free_blocks;
  std::uint64_t available_blocks;
  std::uint64_t files;
  std::uint64_t free_files;
  std::uint64_t name_bytes;
};
static_assert(sizeof(FileSystemStatus) == 64 && offsetof(FileSystemStatus, name_bytes) == 56);

/// Of an entry's name: the longest that FUSE takes. vfat, exFAT and NTFS have names of 255 units, up to 765 bytes.
/// Longer ones are left out.
inline constexpr std::uint32_t kFileMaxEntryName = 1024;

/// One name of a directory. A FileStatus follows if that is asked for, and the name, without a zero. A status whose
/// mode is 0 is not known: of "." and "..", and of what was removed meanwhile.
struct FileEntry {
  std::uint64_t inode;
  std::uint64_t cookie;      ///< `offset` of a `list` that goes on behind this entry
  std::uint32_t type;        ///< as DT_REG and so on
  std::uint32_t name_bytes;  ///< 1 to kFileMaxEntryName
};
static_assert(sizeof(FileEntry) == 24 && offsetof(FileEntry, cookie) == 8 && offsetof(FileEntry, type) == 16);
static_assert(offsetof(FileEntry, name_bytes) == 20);

}  // namespace wherry::layout
