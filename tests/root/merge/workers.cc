// SPDX-License-Identifier: Apache-2.0
//
// workers URL LIVES WORKERS FILES FILES-PER-LIFE SEED: worker processes that post ROOT files until FILES of them are
// done, so many at a time. A life ends, after FILES-PER-LIFE files on average, with SIGKILL in the middle of whatever
// it does, and another begins; 0: none is killed. LIVES is a file for what each of them has done: a Life per worker, as
// the entries call it, from 0 on.
#include <TMemFile.h>
#include <TTree.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <thread>

#include "adapters/root/files/TScifFile.h"

namespace {

using Random = std::mt19937_64;

constexpr int kMostLives = 100000;
constexpr int kMostValues = 20;

struct Life {
  std::atomic<std::uint32_t> begun;  // files that it began to hand over
  std::atomic<std::uint32_t> done;   // that it heard to be done
};

struct Lives {
  std::atomic<bool> stop;
  Life of[kMostLives];  // NOLINT(*-avoid-c-arrays): as it lies in the file
};

/// Every entry can be checked by itself, and every file: it says how many entries it has.
struct Entry {
  explicit Entry(TTree& tree, int life) : worker(life) {
    tree.Branch("worker", &worker, "worker/I");
    tree.Branch("file", &file, "file/I");
    tree.Branch("entry", &entry, "entry/I");
    tree.Branch("entries", &entries, "entries/I");
    tree.Branch("sum", &sum, "sum/l");
    tree.Branch("n", &n, "n/I");
    tree.Branch("values", values.data(), "values[n]/i");
  }
  void draw(Random& random) {
    n = static_cast<int>(random() % (kMostValues + 1));
    sum = static_cast<ULong64_t>(worker) + static_cast<ULong64_t>(file) + static_cast<ULong64_t>(entry);
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      values[i] = static_cast<UInt_t>(random());
      sum += values[i] * static_cast<ULong64_t>(i + 1);
    }
  }

  int worker = 0;
  int file = 0;
  int entry = 0;
  int entries = 0;
  ULong64_t sum = 0;
  int n = 0;
  std::array<UInt_t, kMostValues> values{};
};

/// Most files have a few entries, some a thousand.
int how_many(Random& random) { return static_cast<int>(random() % 200 == 0 ? 1000 : 1 + random() % 16); }

void work(TFile& file, int number, Life& life, const std::atomic<bool>& stop, Random& random) {
  auto* const tree = new TTree("work", "", 99, &file);  // the file's
  Entry entry(*tree, number);
  auto* const scif = dynamic_cast<TScifFile*>(&file);
  for (; !stop; ++entry.file) {
    entry.entries = how_many(random);
    for (entry.entry = 0; entry.entry < entry.entries; ++entry.entry) {
      entry.draw(random);
      tree->Fill();
    }
    if (scif == nullptr) return;
    ++life.begun;
    if (file.Write() <= 0) _exit(1);
    // It hears of what is done while it waits for something.
    if (random() % 8 == 0 && !scif->Wait()) _exit(1);
    life.done = static_cast<std::uint32_t>(scif->GetPosted() - scif->GetPending());
  }
  file.Close();
  if (file.TestBit(TFile::kWriteError)) _exit(1);
  life.done = life.begun.load();
}

/// The server may be between two lives of its own.
std::unique_ptr<TScifFile> open(const char* url, int compression, const std::atomic<bool>& stop) {
  for (;;) {
    auto file = std::make_unique<TScifFile>(url, "RECREATE", "", compression);
    if (!file->IsZombie()) return file;
    if (stop) _exit(0);
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
}

class WorkerGroup {
 public:
  WorkerGroup(const char* url, Lives& lives, int per_life, Random& random)
      : url_(url), lives_(lives), per_life_(static_cast<std::uint64_t>(per_life)), random_(random) {}

  [[nodiscard]] std::size_t size() const { return alive_.size(); }
  [[nodiscard]] int lives() const { return lives_begun_; }

  bool start() {
    if (lives_begun_ == kMostLives) return false;
    const int number = lives_begun_++;
    Random own(random_());
    const pid_t child = ::fork();
    if (child == 0) {
      const auto file = open(url_, number % 3 == 0 ? 0 : 101, lives_.stop);
      work(*file, number, lives_.of[number], lives_.stop, own);
      _exit(0);
    }
    const auto end = per_life_ == 0 ? std::numeric_limits<std::uint64_t>::max() : random_() % (2 * per_life_);
    alive_[child] = {number, end};
    return child > 0;
  }

  [[nodiscard]] std::uint64_t done() const {
    std::uint64_t sum = 0;
    for (int i = 0; i < lives_begun_; ++i) sum += lives_.of[i].done;
    return sum;
  }

  void kill_some() {
    for (auto& [child, lifetime] : alive_) {
      if (lives_.of[lifetime.number].begun > lifetime.end) ::kill(child, SIGKILL);
    }
  }

  /// False if one failed by itself.
  bool reap(int flags) {
    int status = 0;
    for (pid_t child = 0; (child = ::waitpid(-1, &status, flags)) > 0;) {
      const int number = alive_[child].number;
      alive_.erase(child);
      if ((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
        continue;
      std::fprintf(stderr, "workers: worker %d failed, status %d\n", number, status);
      return false;
    }
    return true;
  }

  void kill_all() {
    for (auto& [child, lifetime] : alive_) ::kill(child, SIGKILL);
    reap(0);
  }

 private:
  struct Lifetime {
    int number = 0;
    std::uint64_t end = 0;
  };
  const char* url_;
  Lives& lives_;
  std::uint64_t per_life_;
  Random& random_;
  int lives_begun_ = 0;
  std::map<pid_t, Lifetime> alive_;
};

Lives* map(const char* path) {
  const int descriptor = ::open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
  if (descriptor < 0 || ::ftruncate(descriptor, sizeof(Lives)) != 0) return nullptr;
  void* const memory = ::mmap(nullptr, sizeof(Lives), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<Lives*>(memory);
}

/// What ROOT loads at its first tree is loaded once, not in each life.
void warm_up(Random& random) {
  TMemFile file("warm", "RECREATE");
  Life life{};
  const std::atomic<bool> stop{false};
  work(file, 0, life, stop, random);
  file.Write();
}

}  // namespace

int main(int count, char** words) {
  if (count != 7) return 2;
  Lives* const lives = map(words[2]);
  if (lives == nullptr) return 2;
  const auto at_once = static_cast<std::size_t>(std::atoi(words[3]));
  const auto files = static_cast<std::uint64_t>(std::atoll(words[4]));
  Random random(static_cast<std::uint64_t>(std::atoll(words[6])));
  warm_up(random);
  WorkerGroup workers(words[1], *lives, std::atoi(words[5]), random);
  bool good = true;
  while (good && workers.done() < files) {
    while (good && workers.size() < at_once) good = workers.start();
    workers.kill_some();
    good = good && workers.reap(WNOHANG);
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  lives->stop = true;
  good = good && workers.reap(0);
  if (!good) workers.kill_all();
  std::printf("%d lives\n", workers.lives());
  return good ? 0 : 1;
}
