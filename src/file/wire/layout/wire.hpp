// SPDX-License-Identifier: Apache-2.0
// The protocol between the processes of a card and the host's file server (`wherry serve`), over one stream.
// Little-endian. Records are unaligned in the stream, so both sides copy a record before they read its fields.
//
//   client to server                                   server to client
//   +-----------+                                      +-----------+
//   | FileHello |  once                                | FileHello |  once
//   +-----------+                                      +-----------+
//   +-------------+------+--------+------+             +------------+---------+
//   | FileRequest | name | second | data |  any number | FileAnswer | payload |  one per request, or more (read)
//   +-------------+------+--------+------+             +------------+---------+
//
// Data follows a write, an append and a set_xattr. The server serves one request at a time and answers in that order. A
// read is answered in pieces, so that the client copies one piece out of the stream while the server reads the next
// from the file. `FileAnswer::last` marks the last piece.
//
// If a call that opens a file meets a lease, the server answers at once (kFileLeased), has done nothing, and the client
// asks again. The server must not wait here: the request that ends the lease could be queued behind this one.
//
// A client that caches files opens one more connection for recalls. The answer to its first `await_recalls` gives the
// client its number. Later answers list the delegated files that the client must give back. All connections of the
// client ask for delegations with that number. A delegation for writing belongs to the handle that asked for it. It
// ends with the handle, and the same handle gives it back. The server repeats its recall until then.
//
// A handle of open_locks is one lock owner: an open file description at the server. Its locks end with the handle, and
// the handle ends with the connection. The server never moves a lock to another handle.
//
// A handle of open_ticket refers to a file that another client has open. That client's user trusts this one with the
// file's data. The handle has no more access than that client, and only until that client ends its tickets.
//
// Names are paths relative to the served directory; "." is that directory. No path leads out of it.
#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace wherry::layout {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian; this machine needs byte swaps");

inline constexpr std::uint32_t kFileVersion = 11;
inline constexpr std::uint32_t kFileMagic = 0x454C4946;  ///< "FILE" as bytes

// Limits: the server closes the connection of a client that exceeds one.
inline constexpr std::uint32_t kFileMaxName = 4095;                      ///< bytes of a name or a link target
inline constexpr std::uint64_t kFileMaxLength = std::uint64_t{1} << 30;  ///< bytes of one read, write or copy
inline constexpr std::uint64_t kFileMaxAppend = std::uint64_t{1} << 24;  ///< bytes of one append: gathered first
inline constexpr std::uint64_t kFileMaxList = std::uint64_t{1} << 16;    ///< bytes of one piece of a directory's list
inline constexpr std::uint64_t kFileMaxXattr = std::uint64_t{1} << 16;   ///< of a value or a name list; Linux's limit

/// The first record in each direction. If both sides have the same `boot`, they run under one kernel. Then a client of
/// the same user may take the server's descriptor of a file that it has opened, and use that descriptor directly.
struct FileHello {
  std::uint32_t version;     // W: sender; kFileVersion
  std::uint32_t magic;       // W: sender; kFileMagic
  std::uint32_t read_only;   // W: server; 1 if it allows no changes; 0 from the client
  std::uint32_t lends;       // W: server; 1 if it lends descriptors; 0 from the client
  std::uint8_t boot[16];     // W: server; identifies the boot of its kernel; unflushed data is lost when that boot ends
  std::uint64_t root;        // W: server; 1 + the number of the directory's descriptor in its process; 0: not lent
  std::uint64_t client;      // W: client; identifies a client through all its processes, each of which replaces an
                             // earlier one; 0: none
  std::uint64_t process;     // W: client; number of the process, higher for later ones; answered once no earlier one is
                             // served
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
  open = 1,          ///< name, flags (kFileOpen...), mode; or handle, flags: opens that handle's file again; answer:
                     ///< value is the handle, position: 1 + the number of its descriptor in the server's process, 0:
                     ///< not lent; and kFileStable; FileStatus
  close = 2,         ///< handle
  read = 3,          ///< handle, offset, length; answers: pieces of data
  write = 4,         ///< handle, offset, length, flags (kFileWrite...), data; answer: value is the bytes written, also
                     ///< with an error
  append = 5,        ///< as write, at the end of the file; offset: the last size the client knows; answer: position is
                     ///< the new end
  status = 6,        ///< handle or name, flags (kFileLook...); answer: FileStatus
  set_size = 7,      ///< handle or name, offset
  set_mode = 8,      ///< handle or name, mode
  set_times = 9,     ///< handle or name, flags (kFileLook...), second: FileTimes
  file_system = 10,  ///< handle or name; answer: FileSystemStatus
  flush = 11,        ///< handle, flags (kFileFlush...); answered when all data is durable
  allocate = 12,     ///< handle, flags (kFileAllocate...), offset, length
  seek = 13,         ///< handle, offset, flags (FileSeek); answer: position
  list = 14,  ///< handle, offset: 0 or a cookie, length: room, flags (kFileList...); answer: FileEntry, any number
  make_directory = 15,  ///< name, mode
  remove = 16,          ///< name, flags (kFileRemove...)
  rename = 17,          ///< name, second: the new name, flags (kFileRename...)
  link = 18,            ///< name, second: the new name
  symlink = 19,         ///< name, second: the target
  read_link = 20,       ///< name; answer: the target
  set_owner = 22,  ///< handle or name, flags (kFileLook...), offset: user, length: group; kFileOwnerKept keeps either
  // Extended attributes: all four calls take a handle or name, and flags (kFileLookNoFollow). Only attributes of
  // kFileXattrNamespace.
  get_xattr = 23,      ///< second: the attribute; answer: its value
  list_xattrs = 24,    ///< answer: the attributes' names, each with a terminating zero
  set_xattr = 25,      ///< second: the attribute, flags (also kFileXattr...), length, data: the value
  remove_xattr = 26,   ///< second: the attribute
  make_node = 27,      ///< name, mode, flags (FileNode)
  copy = 28,           ///< handle, offset: source; length, second: FileCopy; answer: value is the bytes copied
  open_locks = 29,     ///< handle, flags (kFileLockWhole), offset: number of the owner among those of this client, 0:
                       ///< none; answer: value is a handle for `set_lock`, `get_lock` and `close`
  set_lock = 30,       ///< handle of open_locks, offset, length, mode: FileLockType, flags (kFileLock...); never waits
  get_lock = 31,       ///< handle of open_locks or open, offset, length, mode: FileLockType; answer: FileLock
  await_recalls = 32,  ///< offset: 0 at first, later the client's number; answer: value is that number, any number of
                       ///< FileIdentity; none at first
  delegate = 33,       ///< handle, offset: the client's number; answer: value is the duration in ms, 0: not delegated;
                       ///< FileStatus
  give_back = 34,      ///< offset: the client's number, second: any number of FileIdentity
  acknowledge_recalls = 35,  ///< as give_back; answer: those FileIdentity that are still delegated, and for which the
                             ///< client gets more time
  make_ticket = 36,          ///< handle, flags (kFileOpenRead, kFileOpenWrite); answer: FileTicket
  open_ticket = 37,     ///< second: FileTicket; answer: as open's, a handle for read, write, flush, status and close
  end_tickets = 38,     ///< handle; answered once no write by its tickets is in progress, and none can follow
  delegate_write = 39,  ///< handle, offset: the client's number; answer: value is the number of bytes that the client
                        ///< may hold back, 0: not delegated; FileStatus. Sent again to ask for more room
  return_write = 40,    ///< handle
};
inline constexpr std::uint32_t kFileCalls = 41;  ///< one more than the last

/// `handle` of a request that uses `name` instead.
inline constexpr std::uint64_t kFileNoHandle = 0;

/// One size for every call. A field that the call does not use is 0. W: client, every field.
struct FileRequest {
  std::uint32_t call;  ///< FileCall
  std::uint32_t id;    ///< the answers repeat it
  std::uint64_t handle;
  std::uint64_t offset;
  std::uint64_t length;
  std::uint32_t flags;
  std::uint32_t mode;          ///< permission bits, with the umask applied; or FileLockType
  std::uint32_t name_bytes;    ///< bytes of the name, which follows the request
  std::uint32_t second_bytes;  ///< bytes of the second part, which follows the name
  std::uint32_t repeated;      ///< 1: sent before over a connection that broke without an answer; otherwise 0
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
  std::uint32_t error;          ///< an errno value in Linux's numbering; 0: none
  std::uint32_t payload_bytes;  ///< bytes that follow the answer
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

/// `position` of an answer with EAGAIN. The request met a lease on a file that it opens, or a write by a ticket that it
/// has to end. The server has changed nothing; the client asks again.
inline constexpr std::uint64_t kFileLeased = 1;

// Bits of `open`'s flags.
inline constexpr std::uint32_t kFileOpenRead = 1;
inline constexpr std::uint32_t kFileOpenWrite = 2;
inline constexpr std::uint32_t kFileOpenAppend = 4;  ///< for `append`; the server refuses `write` on such a handle
inline constexpr std::uint32_t kFileOpenCreate = 8;
inline constexpr std::uint32_t kFileOpenExclusive = 16;
inline constexpr std::uint32_t kFileOpenTruncate = 32;
inline constexpr std::uint32_t kFileOpenDirectory = 64;
inline constexpr std::uint32_t kFileOpenNoFollow = 128;
inline constexpr std::uint32_t kFileOpenSync = 256;
inline constexpr std::uint32_t kFileOpenDataSync = 512;
inline constexpr std::uint32_t kFileOpenTellStable = 1024;  ///< the answer may have kFileStable
inline constexpr std::uint32_t kFileOpenAll = 2047;
/// A bit of `position` of the answer to `open`: nobody has the file open for writing, and each change of its data from
/// now on gives it another time of change.
inline constexpr std::uint64_t kFileStable = std::uint64_t{1} << 63;
// Bits of the flags of other calls.
inline constexpr std::uint32_t kFileLookNoFollow = 1;  ///< status, set_times, set_owner, ..._xattr
inline constexpr std::uint32_t kFileXattrCreate = 2;   ///< set_xattr: EEXIST if the attribute exists
inline constexpr std::uint32_t kFileXattrReplace = 4;  ///< set_xattr: ENODATA if it does not exist
// Bits of `position` of the answers to reads, and to writes by a ticket.
inline constexpr std::uint64_t kFileHasSetId = 1;  ///< after the write the file had set-user-ID or set-group-ID bits
inline constexpr std::uint64_t kFileServerShared = 2;  ///< other clients waited for the same thread of the server
/// write: data that the client held back, also of appends. On success `position` is the file's modification time in ns
/// since 1970. ENOLCK: the file is not delegated by this handle. Then `position` is 1 if the request is a repeated one
/// and the file already has the beginning of its data: the first attempt was carried out, at least in part.
inline constexpr std::uint32_t kFileWriteKept = 1;
/// With kFileWriteKept: drops set-user-ID and set-group-ID bits that were set after the file was delegated, as a local
/// write does. kFileWriteByUser, for a process that is not root, drops set-user-ID, and set-group-ID if the group may
/// execute the file. kFileWriteByOutsider, for a process outside the file's group, drops set-group-ID in any case.
inline constexpr std::uint32_t kFileWriteByUser = 2;
inline constexpr std::uint32_t kFileWriteByOutsider = 4;
inline constexpr std::uint32_t kFileFlushDataOnly = 1;    ///< flush: as fdatasync
inline constexpr std::uint32_t kFileRemoveDirectory = 1;  ///< remove: as rmdir; otherwise as unlink
inline constexpr std::uint32_t kFileRenameNoReplace = 1;  ///< rename
inline constexpr std::uint32_t kFileRenameExchange = 2;
inline constexpr std::uint32_t kFileAllocateKeepSize = 1;  ///< allocate
inline constexpr std::uint32_t kFileAllocatePunch = 2;
inline constexpr std::uint32_t kFileAllocateZero = 4;
/// open_locks, set_lock: flock(2) locks on the whole file. Otherwise locks on ranges, as fcntl(2) with F_OFD_SETLK. One
/// handle has locks of one kind.
inline constexpr std::uint32_t kFileLockWhole = 1;
/// set_lock, on ranges: the owner is a process that waits for the lock, and asks again after EAGAIN. EDEADLK: that
/// would close a cycle of waiting owners.
inline constexpr std::uint32_t kFileLockWaits = 2;
/// set_lock: the owner no longer waits for the lock. Nothing is locked.
inline constexpr std::uint32_t kFileLockGivesUp = 4;

enum class FileLockType : std::uint32_t { none = 0, read = 1, write = 2 };

/// A locked range, or a range to lock.
struct FileLock {
  std::uint64_t offset;
  std::uint64_t length;  ///< 0: to the end of the file, also after it grows
  std::uint32_t type;    ///< FileLockType; in an answer `none` if no lock conflicts
  std::uint32_t reserved;
};
static_assert(sizeof(FileLock) == 24 && std::is_trivially_copyable_v<FileLock>);
static_assert(offsetof(FileLock, length) == 8 && offsetof(FileLock, type) == 16 && offsetof(FileLock, reserved) == 20);

/// Identifies a file among the files of a server.
struct FileIdentity {
  std::uint64_t device;
  std::uint64_t inode;
  auto operator<=>(const FileIdentity&) const = default;
};
static_assert(sizeof(FileIdentity) == 16 && offsetof(FileIdentity, inode) == 8);

/// Duration of a delegation, from the client's request. The file is not written until the client gives it back, or this
/// time has passed. An open for writing waits for that.
inline constexpr std::uint64_t kFileDelegationMs = 100;
/// Limit of one answer of await_recalls, and of one give_back.
inline constexpr std::size_t kFileMaxIdentities = kFileMaxName / sizeof(FileIdentity);

/// Lets another client open the file of a handle once, with the access that the ticket was made for. Handles that were
/// opened by tickets end with the handle that made the tickets: ESTALE.
struct FileTicket {
  std::uint8_t random[16];
  auto operator<=>(const FileTicket&) const = default;
};
static_assert(sizeof(FileTicket) == 16);
/// A ticket is void if it is not used within this time.
inline constexpr std::uint64_t kFileTicketMs = 10'000;

inline constexpr std::uint32_t kFileListStatus = 1;  ///< list: a FileStatus follows each entry

/// The prefix of the attributes that are served. Other attributes belong to the host's kernel: EOPNOTSUPP.
inline constexpr std::string_view kFileXattrNamespace = "user.";

/// The flags of `make_node`: the type of the node.
enum class FileNode : std::uint32_t { fifo = 1, socket = 2 };

/// The flags of `seek`.
enum class FileSeek : std::uint32_t { data = 1, hole = 2 };

struct FileTime {
  std::int64_t seconds;
  std::uint32_t nanoseconds;  ///< below 1e9, or kFileTimeNow or kFileTimeKept
  std::uint32_t reserved;     ///< 0
};
static_assert(sizeof(FileTime) == 16 && offsetof(FileTime, nanoseconds) == 8 && offsetof(FileTime, reserved) == 12);
inline constexpr std::uint32_t kFileTimeNow = 0x3FFFFFFF;
inline constexpr std::uint32_t kFileTimeKept = 0x3FFFFFFE;

/// Keeps a user or group unchanged.
inline constexpr std::uint32_t kFileOwnerKept = 0xFFFFFFFF;

struct FileTimes {
  FileTime accessed;
  FileTime modified;
};
static_assert(sizeof(FileTimes) == 32 && offsetof(FileTimes, modified) == 16);

/// The target of a `copy`. If fewer bytes than requested are copied without an error, the source file ends there.
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

/// Longest name of an entry, in bytes: FUSE's limit. vfat, exFAT and NTFS have names of 255 units, up to 765 bytes. The
/// server leaves out entries with longer names.
inline constexpr std::uint32_t kFileMaxEntryName = 1024;

/// One name of a directory. A FileStatus follows if the client asked for it, then the name without a zero. A status
/// with mode 0 is unknown: of "." and "..", and of entries that were removed meanwhile.
struct FileEntry {
  std::uint64_t inode;
  std::uint64_t cookie;      ///< `offset` of the `list` that continues after this entry
  std::uint32_t type;        ///< as DT_REG etc.
  std::uint32_t name_bytes;  ///< 1 to kFileMaxEntryName
};
static_assert(sizeof(FileEntry) == 24 && offsetof(FileEntry, cookie) == 8 && offsetof(FileEntry, type) == 16);
static_assert(offsetof(FileEntry, name_bytes) == 20);

}  // namespace wherry::layout
