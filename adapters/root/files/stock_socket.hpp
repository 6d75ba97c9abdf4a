// SPDX-License-Identifier: Apache-2.0
// Lets programs written for ROOT's own parallel merging call TParallelMergingFile::UploadAndReset of a TScifFile. That
// function is not virtual: it sends the file over a private socket, which it connects first if there is none. So the
// file gets a StockSocket, which hands the file over instead of sending it.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include <TMessage.h>
#include <TParallelMergingFile.h>
#include <TSocket.h>

namespace wherry::root {

// Access to private members of TParallelMergingFile: an explicit instantiation may name them.
template <typename Member, auto kMember>
struct Reveal {
  friend auto& reveal(Member, TParallelMergingFile& file) { return file.*kMember; }
};
struct SocketMember {
  friend auto& reveal(SocketMember, TParallelMergingFile& file);
};
struct IndexMember {
  friend auto& reveal(IndexMember, TParallelMergingFile& file);
};
template struct Reveal<SocketMember, &TParallelMergingFile::fSocket>;
template struct Reveal<IndexMember, &TParallelMergingFile::fServerIdx>;

/// Called instead of sending; returns whether it succeeded.
using Upload = std::function<bool()>;

/// Gives the file a StockSocket.
/// @param index  the value that GetServerIdx() is to return
void serve_stock_program(TParallelMergingFile& file, Int_t index, Upload upload);

class StockSocket : public TSocket {
 public:
  StockSocket(TParallelMergingFile& file, Int_t index, Upload upload)
      : file_(&file), index_(index), upload_(std::move(upload)) {}
  StockSocket(const StockSocket&) = delete;
  StockSocket& operator=(const StockSocket&) = delete;
  /// Replaces itself: a file that could not send deletes its socket. At the next upload it would connect to a server of
  /// ROOT's.
  ~StockSocket() override {
    if (upload_) serve_stock_program(*file_, index_, std::move(upload_));
  }
  void retire() { upload_ = nullptr; }

  using TSocket::Send;
  Int_t Send(const TMessage& message) override { return upload_() ? message.Length() : -1; }

 private:
  TParallelMergingFile* file_;
  Int_t index_;
  Upload upload_;
};

inline void serve_stock_program(TParallelMergingFile& file, Int_t index, Upload upload) {
  reveal(SocketMember{}, file) = std::make_unique<StockSocket>(file, index, std::move(upload));
  reveal(IndexMember{}, file) = index;
}

/// Removes the StockSocket. Call it before the file is destroyed.
inline void end_stock_program(TParallelMergingFile& file) {
  auto& socket = reveal(SocketMember{}, file);
  if (socket != nullptr) static_cast<StockSocket&>(*socket).retire();
  socket = nullptr;
}

}  // namespace wherry::root
