// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "file/mount/delegated_writer.hpp"
#include "file/mount/kept_records.hpp"
#include "file/mount/open_file.hpp"
#include "file/mount/write_buffer.hpp"
#include "file/mount/write_ring.hpp"
#include "file/mount/writer.hpp"

namespace wherry::file::mount {

/// An open file that is delegated to this mount for writing, and its held-back writes. Records are written to the
/// server in the order in which they were kept.
///
/// States, and the function that causes each transition:
///
///   asking   -> held      ask: the server delegates the file
///   asking   -> ending    ask: the server does not
///   held     -> renewing  renew: more bytes are to be kept than the server has granted
///   renewing -> held      renew: the server has granted them
///   renewing -> ending    renew: it has not
///   any      -> ending    give_back begins; a request has failed; the server has lost the delegation
///   ending   -> over      give_back: everything is written, or has failed, and the file is given back
///
/// Writes are kept only while the file is held and not recalled. A write kept later could reach the server too late.
///
/// A program may give its writes by a WriteRing. Each function that keeps or writes something first takes what is in
/// the ring. The ring is sealed when the state becomes `ending`, and if the file can also be read, when the kernel gets
/// pages of it: by a read (`end_ring`) or a write of its own (`keep`).
///
/// Thread-safe. Calls that write to the server block as Host does, and are serialized.
class KeptFile {
 public:
  using Clock = std::chrono::steady_clock;
  using FileIdentity = layout::FileIdentity;
  static constexpr std::size_t kSentFrom = std::size_t{256} << 10;  ///< writing begins once this many bytes are kept
  static constexpr std::chrono::milliseconds kKeptFor{50};          ///< writing begins at this age with fewer bytes

  /// @param file  must live until `give_back` has returned
  /// @param most  limit of bytes kept of it
  KeptFile(WriteBuffer& buffer, const Nodes& nodes, NodeId node, OpenFile& file, std::size_t most);
  KeptFile(const KeptFile&) = delete;
  KeptFile& operator=(const KeptFile&) = delete;
  ~KeptFile() = default;

  [[nodiscard]] NodeId node() const { return node_; }
  [[nodiscard]] const OpenFile& file() const { return file_; }

  /// Asks the server for the delegation; once. False: no writes can be kept.
  bool ask(std::uint64_t client, const Identity& identity, const std::string& name);
  enum class Why : std::uint8_t {
    done,
    full,     ///< the memory, or this file's share of it, is full
    sending,  ///< a write of the ring, for which there was no memory, is being sent: `empty_ring` waits for that
    no_room,  ///< more than the server has granted, or the grant is being renewed
    over      ///< no more writes are kept
  };
  struct Kept {
    std::size_t bytes = 0;
    Why why = Why::done;
    bool wakes = false;  ///< the thread must wake: there are the first bytes to write, or enough of them
  };
  /// Keeps as many bytes as possible.
  Kept keep(std::uint64_t offset, std::span<const std::byte> from, const Writer& by = {});
  /// Keeps an append, all of it or nothing. Other processes cannot append while the file is delegated.
  /// @param from  at most kMostAppended bytes
  /// @param begin  called first, with the end of the file
  static constexpr std::size_t kMostAppended = WriteBuffer::kPiece;
  Kept append(std::span<const std::byte> from, const Writer& by, const std::function<void(std::uint64_t)>& begin);
  /// Also takes writes by this ring from now on. Returns 0, or an errno value. EAGAIN: not now. EINVAL: the memory is
  /// too small for it.
  /// @param begin  called first, with this file's number
  int attach(std::unique_ptr<WriteRing> ring, const Writer& by,
             const std::function<void(WriteRing&, WriteBuffer::FileNumber)>& begin);
  /// A file for which the server has less room has no ring: the program writes to it without asking.
  static constexpr std::uint64_t kRoomForRing = 2 * layout::kWriteRingBytes;
  /// Takes writes from the ring, and decides when to look again. Returns whether more room is needed for its writes.
  /// @param asked  the program wants it: there will be more writes
  bool look_at_ring(bool asked);
  /// Takes everything that is in the ring now. Writes to the server, if the memory has no room for it.
  void empty_ring();
  /// Writes everything kept, and asks the server for more room. Nothing is kept meanwhile.
  /// @param wanted  bytes needed. Does nothing if another call has already made room for them
  void renew(std::uint64_t client, std::uint64_t wanted);
  /// Writes one batch, of at most KeptRecords::kMostSent bytes. False: nothing is kept.
  bool write_some();
  /// No further write is made by the ring. What is in it stays there.
  void end_ring();
  /// Writes everything kept before this call.
  void write_all();
  /// Writes everything, and ends the delegation.
  /// @param closes  the caller closes the server's handle next, which ends the delegation too
  void give_back(bool closes);

  /// Records a recall. Returns whether it is for this file.
  bool recall(const FileIdentity& file);
  void recall();
  void rename(const std::string& name);
  /// When the thread has something to do: `give_back` if the file was recalled, otherwise `look_at_ring` and
  /// `write_due`.
  [[nodiscard]] Clock::time_point due() const;
  /// As `write_some`, if writing has become due.
  void write_due();
  [[nodiscard]] bool is_recalled() const;
  [[nodiscard]] bool is_held() const;

 private:
  enum class State : std::uint8_t { asking, held, renewing, ending };
  [[nodiscard]] Why may_keep() const;
  [[nodiscard]] std::uint64_t room_beside_ring() const;
  [[nodiscard]] Clock::time_point writing_due() const;
  Kept add(std::uint64_t offset, std::span<const std::byte> from);
  bool take_ring();
  bool write_past_memory();
  void stop_keeping();
  [[nodiscard]] Why why_not_taken() const;
  void note_writer(const Writer& by);
  bool write_batch();
  void send(const DelegatedWriter::Write& write);
  void note_server_state();
  void fail(int error);

  WriteBuffer& buffer_;
  const Nodes& nodes_;
  const NodeId node_;
  OpenFile& file_;
  const std::size_t most_;

  std::mutex writing_;  ///< held during requests to the server; taken before `mutex_`
  // Guarded by writing_:
  DelegatedWriter writer_;
  bool over_ = false;

  mutable std::mutex mutex_;
  State state_ = State::asking;
  bool recalled_ = false;
  FileIdentity identity_{};
  std::optional<WriteBuffer::FileNumber> number_{};
  KeptRecords records_;
  std::uint64_t kept_ = 0;     ///< total bytes kept so far
  std::uint64_t written_ = 0;  ///< of these, bytes written
  std::uint64_t room_ = 0;     ///< bytes that the server has space for, beside those kept
  std::uint64_t end_ = 0;      ///< end of the file including kept bytes, while held
  SetIdDrops drops_{};
  std::unique_ptr<WriteRing> ring_{};
  bool is_sent_from_ring_ = false;  ///< the ring's first write is being sent to the server
  Clock::time_point ring_due_{};    ///< when to look at the ring next
  Clock::duration ring_pause_{};    ///< between two looks
};

}  // namespace wherry::file::mount
