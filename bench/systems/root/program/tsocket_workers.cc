// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <span>
#include <stdexcept>

#include <TArrayC.h>
#include <TMemFile.h>
#include <TMessage.h>
#include <TParallelMergingFile.h>
#include <TScif.h>
#include <TSocket.h>

#include "bench/systems/root/program/file_worker.hpp"
#include "bench/systems/root/program/tsocket.hpp"

namespace wherry::bench::root {
namespace {

/// A connection to the stock server.
class Line {
 public:
  explicit Line(const std::string& address) : socket_(connect(address)) {
    Int_t what = 0;
    Int_t version = 0;
    if (!socket_->IsValid() || socket_->Recv(number_, what) <= 0 || socket_->Recv(version, what) <= 0) {
      throw std::runtime_error("no connection to the server at " + address);
    }
  }

  /// The header of a file's message, which is put together where the last one was.
  TMessage& begin(const char* name, Long64_t length) {
    message_.Reset(kMESS_ANY);
    message_.WriteInt(number_);
    message_.WriteTString(name);
    message_.WriteLong64(length);
    return message_;
  }
  void send() {
    if (socket_->Send(message_) <= 0) throw std::runtime_error("the server does not receive");
  }
  void leave() {
    socket_->Send("Finished");
    socket_->Close();
  }

 private:
  static std::unique_ptr<TSocket> connect(const std::string& address) {
    if (address.starts_with("wherry://")) return std::make_unique<TScif>(address.c_str());
    if (address.starts_with('/')) return std::make_unique<TSocket>(address.c_str());
    const auto colon = address.find(':');
    return std::make_unique<TSocket>(address.substr(0, colon).c_str(), std::atoi(&address[colon + 1]));
  }

  std::unique_ptr<TSocket> socket_;
  TMessage message_{kMESS_ANY};
  Int_t number_ = 0;
};

/// Sends the image again and again.
class ImageSender final : public Worker {
 public:
  explicit ImageSender(const Task& task) : task_(task), line_(task.shared.address()) {}

  void hand_over() override {
    const std::span<const char> bytes = task_.image.bytes;
    TMessage& message = line_.begin(task_.output.c_str(), static_cast<Long64_t>(bytes.size()));
    message.WriteBuf(bytes.data(), static_cast<Int_t>(bytes.size()));
    line_.send();
  }
  void leave() override { line_.leave(); }

 private:
  const Task& task_;
  Line line_;
};

/// What TParallelMergingFile does, but it sends the bytes of the file instead of whole blocks of 2 MiB: what a user
/// could write.
class ExactMergingFile final : public TMemFile {
 public:
  explicit ExactMergingFile(const Task& task)
      : TMemFile(task.output.c_str(), "RECREATE", "", compression_of(task.job.tree)), line_(task.shared.address()) {}
  ExactMergingFile(const ExactMergingFile&) = delete;
  ExactMergingFile& operator=(const ExactMergingFile&) = delete;
  ~ExactMergingFile() override { ExactMergingFile::Close(); }

  Int_t Write(const char* /*name*/ = nullptr, Int_t option = 0, Int_t buffer = 0) override {
    const Int_t written = TMemFile::Write(nullptr, option, buffer);
    if (written != 0) upload();
    return written;
  }
  Int_t Write(const char* name = nullptr, Int_t option = 0, Int_t buffer = 0) const override {
    return TMemFile::Write(name, option, buffer);
  }
  void Close(Option_t* option = "") override {
    const bool first = IsOpen();
    TMemFile::Close(option);
    if (first) line_.leave();
  }
  /// The server has had those of the first file.
  void WriteStreamerInfo() override {
    for (Int_t i = 0; fClassIndex != nullptr && i < sent_.GetSize() && i < fClassIndex->GetSize(); ++i) {
      if (sent_[i] != 0) (*fClassIndex)[i] = 0;
    }
    TMemFile::WriteStreamerInfo();
  }

 private:
  void upload() {
    TMessage& message = line_.begin(GetName(), GetEND());
    const Int_t at = message.Length();
    const auto end = at + static_cast<Int_t>(GetEND());
    if (message.BufferSize() < end) message.Expand(end);
    CopyTo(message.Buffer() + at, GetEND());
    message.SetBufferOffset(end);
    line_.send();
    note_classes();
    ResetAfterMerge(nullptr);
  }

  void note_classes() {
    if (fClassIndex == nullptr) return;
    if (sent_.GetSize() < fClassIndex->GetSize()) sent_.Set(fClassIndex->GetSize());
    for (Int_t i = 0; i < fClassIndex->GetSize(); ++i) {
      if ((*fClassIndex)[i] != 0) sent_[i] = 1;
    }
  }

  Line line_;
  TArrayC sent_;
};

/// As shipped, what TFile::Open makes of `?pmerge=`, without asking the interpreter in each process.
std::unique_ptr<TFile> open_file(const Task& task, Stock stock) {
  if (stock == Stock::corrected) return std::make_unique<ExactMergingFile>(task);
  const std::string url = task.output + "?pmerge=" + task.shared.address();
  return std::make_unique<TParallelMergingFile>(url.c_str(), "RECREATE", "", compression_of(task.job.tree));
}

class TSocketWorkshop final : public Workshop {
 public:
  TSocketWorkshop(const Task& task, Stock stock) : task_(task), stock_(stock) {}
  std::unique_ptr<Worker> hire(std::uint32_t /*number*/) override {
    if (!task_.live()) return std::make_unique<ImageSender>(task_);
    return std::make_unique<FileWorker>(task_, open_file(task_, stock_));
  }

 private:
  const Task& task_;
  Stock stock_;
};

}  // namespace

std::unique_ptr<Workshop> make_tsocket_workshop(const Task& task, Stock stock) {
  return std::make_unique<TSocketWorkshop>(task, stock);
}

}  // namespace wherry::bench::root
