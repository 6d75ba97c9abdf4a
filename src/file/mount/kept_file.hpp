// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "file/client/host_writes.hpp"
#include "file/mount/open_file.hpp"
#include "file/mount/write_buffer.hpp"
#include "file/mount/writer.hpp"

namespace wherry::file::mount {

/// An open file that is delegated to this mount for writing, and what is kept of writes to it. Records are written in
/// the order in which they were kept.
///
/// States, and what leads from one to the next:
///
///   asking   -> held      ask: the server delegates the file
///   asking   -> ending    ask: it does not
///   held     -> renewing  renew: more than there was room for is to be kept
///   renewing -> held      renew: the server has granted that
///   renewing -> ending    renew: it has not
///   any      -> ending    give_back begins; a request has failed; the server does not know of the delegation any more
///   ending   -> over      give_back: all is written, or has failed, and the file is given back
///
/// Writes are kept while it is held and was not recalled: what is kept later could come too late.
///
/// Threads: any. Calls that write to the server block as Host does, and go one after the other.
class KeptFile {
 public:
  using Clock = std::chrono::steady_clock;
  using FileIdentity = layout::FileIdentity;
  static constexpr std::size_t kMostSent = std::size_t{1} << 20;    ///< bytes of one request to the server
  static constexpr std::size_t kSentFrom = std::size_t{256} << 10;  ///< bytes kept at which writing them begins
  static constexpr std::chrono::milliseconds kKeptFor{50};          ///< age at which it begins with fewer

  /// @param file  stays until `give_back` has returned
  /// @param most  bytes that may be kept of it
  KeptFile(WriteBuffer& buffer, const Nodes& nodes, NodeId node, OpenFile& file, std::size_t most)
      : buffer_(buffer), nodes_(nodes), node_(node), file_(file), most_(most) {}
  KeptFile(const KeptFile&) = delete;
  KeptFile& operator=(const KeptFile&) = delete;
  ~KeptFile() = default;

  [[nodiscard]] NodeId node() const { return node_; }
  [[nodiscard]] const OpenFile& file() const { return file_; }

  /// Once. False: nothing is to be kept.
  bool ask(std::uint64_t client, const Identity& identity, const std::string& name);
  enum class Why : std::uint8_t {
    done,
    full,     ///< of the memory, or of what may be kept of this file
    no_room,  ///< that the server has granted; or this is being renewed
    over      ///< nothing more is kept
  };
  struct Kept {
    std::size_t bytes = 0;
    Why why = Why::done;
    bool wakes = false;  ///< from now on there is something to write, or enough
  };
  /// Keeps as much as it can.
  Kept keep(std::uint64_t offset, std::span<const std::byte> from, const Writer& by = {});
  /// Keeps an append, all of it or nothing. Others cannot append while the file is delegated.
  /// @param from  at most kMostAppended bytes
  /// @param begin  called before, with the end of the file
  static constexpr std::size_t kMostAppended = WriteBuffer::kPiece;
  Kept append(std::span<const std::byte> from, const Writer& by, const std::function<void(std::uint64_t)>& begin);
  /// Writes what is kept, and asks whether more may be. Nothing is kept meanwhile.
  /// @param wanted  bytes. Does nothing if another call has renewed in the meantime and left room for them
  void renew(std::uint64_t client, std::uint64_t wanted);
  /// One request. False: nothing is kept.
  bool write_some();
  /// All that was kept before.
  void write_all();
  /// Writes all, and ends the delegation.
  /// @param closes  the server's handle is closed next, which ends it too
  void give_back(bool closes);

  /// Others want it. Returns whether it is this file.
  bool recall(const FileIdentity& file);
  void recall();
  void rename(const std::string& name);
  /// When there is something to do about it: to give it back if it was recalled, otherwise `write_some`.
  [[nodiscard]] Clock::time_point due() const;
  [[nodiscard]] bool is_recalled() const;
  [[nodiscard]] bool is_held() const;

 private:
  enum class State : std::uint8_t { asking, held, renewing, ending };
  struct Batch {
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
    std::vector<iovec> parts{};
    std::size_t records = 0;
    std::uint32_t drops = 0;  ///< kFileWriteBy...
  };
  struct Record {
    WriteBuffer::RecordNumber number{};
    Clock::time_point kept_at{};  ///< its first byte
  };
  [[nodiscard]] Why may_keep() const;
  bool make_room_for_record();
  bool add_record(std::uint64_t offset, std::span<const std::byte> from);
  void note_writer(const Writer& by);
  void count(Kept& kept);
  std::uint32_t drops_by(const Writer& by);
  Batch next_batch();
  bool write_batch();
  int send(const Batch& batch);
  Result send_undelegated(std::uint64_t offset, std::span<const iovec> parts);
  void note_status(std::uint32_t drops);
  int check_unchanged(const Batch& batch, bool begun);
  void fail(int error);

  WriteBuffer& buffer_;
  const Nodes& nodes_;
  const NodeId node_;
  OpenFile& file_;
  const std::size_t most_;

  std::mutex writing_;  ///< held during requests to the server; taken before `mutex_`
  // By writing_:
  bool is_delegated_ = false;   ///< as far as is known
  std::uint64_t size_ = 0;      ///< of the server's file
  std::uint64_t modified_ = 0;  ///< when it was written to last
  bool over_ = false;

  mutable std::mutex mutex_;
  State state_ = State::asking;
  bool recalled_ = false;
  FileIdentity identity_{};
  std::optional<WriteBuffer::FileNumber> number_{};
  std::deque<Record> records_{};
  bool is_open_ended_ = false;  ///< the last record is not being sent, and may grow
  std::size_t bytes_ = 0;
  std::uint64_t kept_ = 0;     ///< bytes so far
  std::uint64_t written_ = 0;  ///< of them
  std::uint64_t room_ = 0;
  std::uint64_t end_ = 0;         ///< of the file with what is kept, while that is held
  gid_t group_ = 0;               ///< of the file
  std::uint32_t drops_ = 0;       ///< what records that are kept do to set-user-ID bits: kFileWriteBy...
  std::uint32_t sent_drops_ = 0;  ///< the same of records that are being sent
  Writer last_writer_{};
  std::uint32_t last_drops_ = 0;  ///< of that one
};

}  // namespace wherry::file::mount
