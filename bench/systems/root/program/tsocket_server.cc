// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <functional>
#include <span>
#include <stdexcept>

#include <TFileMerger.h>
#include <TMemFile.h>
#include <TMessage.h>
#include <TMonitor.h>
#include <TServerScif.h>
#include <TServerSocket.h>

#include "bench/harness/touch.hpp"
#include "bench/systems/root/program/output.hpp"
#include "bench/systems/root/program/tsocket.hpp"

namespace wherry::bench::root {
namespace {

constexpr int kStartConnection = 0;
constexpr int kProtocol = 1;
constexpr int kProtocolVersion = 1;

/// For all to connect at once.
constexpr int kBacklog = 256;

std::unique_ptr<TServerSocket> listen(Sockets sockets, const std::string& path) {
  std::unique_ptr<TServerSocket> listener;
  if (sockets == Sockets::tcp) {
    listener = std::make_unique<TServerSocket>(0, false, kBacklog, -1, ESocketBindOption::kInaddrLoopback);
  } else if (sockets == Sockets::unix_domain) {
    listener = std::make_unique<TServerSocket>(path.c_str(), true, kBacklog);
  } else {
    listener = std::make_unique<TServerScif>(0, false, kBacklog);
  }
  if (!listener->IsValid()) throw std::runtime_error("the server cannot listen");
  return listener;
}

/// What the server does with a file: reads it, or merges it.
class Sink {
 public:
  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual ~Sink() = default;
  virtual void take(const TString& name, char* bytes, Long64_t length) = 0;
  virtual void close() {}
};

class Touch final : public Sink {
 public:
  explicit Touch(const Task& task) : task_(task) {}
  void take(const TString& /*name*/, char* bytes, Long64_t length) override {
    const std::uint64_t sum = sum_all(std::as_bytes(std::span(bytes, static_cast<std::size_t>(length))));
    if (!task_.live() && sum != task_.image.sum) throw std::runtime_error("a file has been altered");
    total_ = total_ + sum;
  }

 private:
  const Task& task_;
  volatile std::uint64_t total_ = 0;  // Keeps the sum from being optimised away.
};

/// What fastMergeServer.C does with each message.
class Merge final : public Sink {
 public:
  Merge(const Task& task, Stock stock) : task_(task), stock_(stock) { merger_->SetPrintLevel(0); }

  void take(const TString& name, char* bytes, Long64_t length) override {
    auto* transient = new TMemFile(name, bytes, length);  // The merger's.
    if (stock_ == Stock::as_shipped) {
      merger_->OutputFile(name, "UPDATE");
    } else {
      merger_->OutputFile(name, "UPDATE", compression_of(task_.job.tree));
    }
    merger_->AddAdoptFile(transient);
    if (!merger_->PartialMerge(TFileMerger::kAllIncremental)) throw std::runtime_error("TFileMerger fails");
  }
  void close() override { merger_.reset(); }

 private:
  const Task& task_;
  Stock stock_;
  std::unique_ptr<TFileMerger> merger_ = std::make_unique<TFileMerger>(false, false);
};

std::unique_ptr<Sink> make_sink(const Task& task, Stock stock) {
  if (task.job.figure == Figure::merge) return std::make_unique<Merge>(task, stock);
  return std::make_unique<Touch>(task);
}

/// The loop of fastMergeServer.C, but for its limit of 100 clients.
class TSocketServer final : public Server {
 public:
  TSocketServer(const Task& task, Sockets sockets, Stock stock)
      : task_(task),
        sockets_(sockets),
        path_(sockets == Sockets::unix_domain ? task.folder + "/socket" : ""),
        listener_(listen(sockets, path_)),
        sink_(make_sink(task, stock)) {
    monitor_.Add(listener_.get());
  }

  [[nodiscard]] std::string address() const override {
    if (sockets_ == Sockets::unix_domain) return path_;
    return fmt::format("{}:{}", sockets_ == Sockets::scif ? "wherry://0" : "127.0.0.1", listener_->GetLocalPort());
  }

  void serve() override {
    while (left_ < task_.job.workers) {
      TSocket* socket = monitor_.Select();
      if (socket->IsA() == TServerSocket::Class()) {
        greet(*listener_->Accept());
      } else {
        receive(*socket);
      }
    }
    if (task_.job.figure == Figure::merge) {
      sink_->close();
      task_.shared.stamp();
      task_.shared.arrive(Step::done);
      check_output(task_);
    }
  }

 private:
  void greet(TSocket& client) {
    client.Send(clients_++, kStartConnection);
    client.Send(kProtocolVersion, kProtocol);
    monitor_.Add(&client);
  }

  void receive(TSocket& socket) {
    TMessage* received = nullptr;
    if (socket.Recv(received) <= 0) throw std::runtime_error("a worker is gone");
    const std::unique_ptr<TMessage> message(received);
    if (message->What() == kMESS_STRING) {
      monitor_.Remove(&socket);
      socket.Close();
      ++left_;
    } else if (message->What() == kMESS_ANY) {
      take(*message);
    } else {
      throw std::runtime_error("an unexpected message");
    }
  }

  void take(TMessage& message) {
    Int_t client = 0;
    TString name;
    Long64_t length = 0;
    message.ReadInt(client);
    message.ReadTString(name);
    message.ReadLong64(length);
    sink_->take(name, message.Buffer() + message.Length(), length);
    if (++taken_ > task_.expected()) return;
    task_.shared.add_sent(static_cast<std::uint64_t>(message.BufferSize()));
    if (task_.job.figure == Figure::merge || taken_ < task_.expected()) return;
    task_.shared.stamp();
    task_.shared.arrive(Step::done);
  }

  const Task& task_;
  Sockets sockets_;
  std::string path_;
  std::unique_ptr<TServerSocket> listener_;
  std::unique_ptr<Sink> sink_;
  TMonitor monitor_;
  Int_t clients_ = 0;
  std::uint32_t left_ = 0;
  std::uint64_t taken_ = 0;
};

}  // namespace

std::unique_ptr<Server> make_tsocket_server(const Task& task, Sockets sockets, Stock stock) {
  return std::make_unique<TSocketServer>(task, sockets, stock);
}

}  // namespace wherry::bench::root
