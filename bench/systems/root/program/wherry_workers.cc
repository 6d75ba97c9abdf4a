// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <span>
#include <stdexcept>

#include <TScifFile.h>

#include "adapters/root/handover/client/client.hpp"
#include "bench/systems/root/program/file_worker.hpp"
#include "bench/systems/root/program/wherry.hpp"

namespace wherry::bench::root {
namespace {

using wherry::root::WindowClient;

/// Copies the image into the server's memory again and again.
class ImagePoster final : public Worker {
 public:
  explicit ImagePoster(const Task& task) : task_(task), client_(task.shared.address()) {}

  void hand_over() override {
    const std::span<const char> bytes = task_.image.bytes;
    std::memcpy(client_.grow(bytes.size()).data(), bytes.data(), bytes.size());
    client_.post(task_.output, bytes.size());
  }
  void leave() override { client_.finish(); }

 private:
  const Task& task_;
  WindowClient client_;
};

/// What TFile::Open makes of such a URL.
std::unique_ptr<TFile> open_file(const Task& task) {
  const std::string url = task.shared.address() + "/" + task.output;
  auto file = std::make_unique<TScifFile>(url.c_str(), "RECREATE", "", compression_of(task.job.tree));
  if (file->IsZombie()) throw std::runtime_error("TScifFile cannot be opened");
  return file;
}

class WindowWorkshop final : public Workshop {
 public:
  explicit WindowWorkshop(const Task& task) : task_(task) {}
  std::unique_ptr<Worker> hire(std::uint32_t /*number*/) override {
    if (!task_.live()) return std::make_unique<ImagePoster>(task_);
    return std::make_unique<FileWorker>(task_, open_file(task_));
  }

 private:
  const Task& task_;
};

}  // namespace

std::unique_ptr<Workshop> make_window_workshop(const Task& task) { return std::make_unique<WindowWorkshop>(task); }

}  // namespace wherry::bench::root
