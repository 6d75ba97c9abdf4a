// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>

#include <TFile.h>
#include <TFileMerger.h>

#include "bench/systems/root/program/alone.hpp"
#include "bench/systems/root/program/output.hpp"

namespace wherry::bench::root {
namespace {

namespace fs = std::filesystem;

fs::path folder_of_parts(const Task& task) { return fs::path(task.folder) / "parts"; }

/// All its files as one, as in a job that is not merged on the way.
class OwnFile final : public Worker {
 public:
  OwnFile(const Task& task, std::uint32_t number)
      : entries_(task.image.entries),
        file_(TFile::Open((folder_of_parts(task) / fmt::format("{}.root", number)).c_str(), "RECREATE", "",
                          compression_of(task.job.tree))) {
    if (file_ == nullptr || file_->IsZombie()) throw std::runtime_error("a file of its own cannot be written");
    filler_ = std::make_unique<Filler>(*file_);
  }

  void produce() override { filler_->fill(entries_); }
  void hand_over() override {}
  void leave() override {
    file_->Write();
    file_->Close();
  }

 private:
  std::uint64_t entries_;
  std::unique_ptr<TFile> file_;
  std::unique_ptr<Filler> filler_;
};

/// The image again and again, each time as a file.
class ImageWriter final : public Worker {
 public:
  ImageWriter(const Task& task, std::uint32_t number) : task_(task), number_(number) {}

  void hand_over() override {
    const fs::path path = folder_of_parts(task_) / fmt::format("{}-{}.root", number_, ++written_);
    std::ofstream file(path, std::ios::binary);
    file.write(task_.image.bytes.data(), static_cast<std::streamsize>(task_.image.bytes.size()));
    file.close();
    if (!file) throw std::runtime_error("a file of its own cannot be written");
  }

 private:
  const Task& task_;
  std::uint32_t number_;
  std::uint32_t written_ = 0;
};

class OwnFiles final : public Workshop {
 public:
  explicit OwnFiles(const Task& task) : task_(task) {}
  std::unique_ptr<Worker> hire(std::uint32_t number) override {
    if (task_.live()) return std::make_unique<OwnFile>(task_, number);
    return std::make_unique<ImageWriter>(task_, number);
  }

 private:
  const Task& task_;
};

/// Calls what hadd.cxx calls, without the start of a program.
class Hadd final : public Server {
 public:
  explicit Hadd(const Task& task) : task_(task) { fs::create_directories(folder_of_parts(task)); }

  void serve() override {
    task_.shared.pass(Barrier::merge);
    merge();
    task_.shared.stamp();
    task_.shared.arrive(Step::done);
    check_output(task_);
  }

 private:
  void merge() {
    TFileMerger merger(false, false);
    merger.SetPrintLevel(0);
    // -fk: the output is compressed as the first file is.
    merger.OutputFile(task_.output.c_str(), "RECREATE", compression_of(task_.job.tree));
    std::set<fs::path> parts;
    for (const auto& entry : fs::directory_iterator(folder_of_parts(task_))) parts.insert(entry.path());
    for (const fs::path& part : parts) merger.AddFile(part.c_str(), false);
    if (!merger.Merge()) throw std::runtime_error("TFileMerger fails");
  }

  const Task& task_;
};

}  // namespace

std::unique_ptr<Server> make_hadd(const Task& task) { return std::make_unique<Hadd>(task); }

std::unique_ptr<Workshop> make_own_files(const Task& task) { return std::make_unique<OwnFiles>(task); }

}  // namespace wherry::bench::root
