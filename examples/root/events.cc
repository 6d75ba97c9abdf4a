// SPDX-License-Identifier: Apache-2.0
//
// events URL RUN EVENTS: a simulation built as those with Geant4 are: a run of events, an event of steps. It knows ROOT
// and nothing of Wherry; where its trees and its histogram go is what the URL says.
//
//   wherry-merge 'wherry://*:1095' -o out.root --workers 2
//   wherry run -- root_events wherry://0:1095//out.root 1 5000     # and at the same time run 2
//
// `root_events run1.root 1 5000` writes an ordinary file. `make build` makes the program root_events; by hand it is
//   g++ -std=c++17 events.cc -o root_events $(root-config --cflags --libs)
#include <TFile.h>
#include <TH1D.h>
#include <TTree.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>

namespace {

constexpr double kThickness = 10;   // of the absorber, in cm
constexpr double kEnergy = 100;     // of a particle that enters it, in MeV
constexpr double kMeanStep = 0.25;  // cm
constexpr int kEventsPerWrite = 1000;

struct Step {
  double x = 0, y = 0, z = 0;  // where, in cm
  double deposit = 0;          // MeV
};

/// What run, event and stepping actions and the analysis manager are in Geant4: fills what there is to be kept.
class Analysis {
 public:
  bool begin_of_run(const char* url, int run) {
    file_.reset(TFile::Open(url, "RECREATE"));
    if (!file_) return false;  // ROOT has said why.
    run_ = run;
    // All three belong to the file.
    steps_ = new TTree("steps", "energy that steps leave in the absorber", 99, file_.get());
    steps_->Branch("run", &run_);
    steps_->Branch("event", &event_);
    steps_->Branch("x", &step_.x);
    steps_->Branch("y", &step_.y);
    steps_->Branch("z", &step_.z);
    steps_->Branch("deposit", &step_.deposit);
    events_ = new TTree("events", "events", 99, file_.get());
    events_->Branch("run", &run_);
    events_->Branch("event", &event_);
    events_->Branch("steps", &count_);
    events_->Branch("deposit", &sum_);
    depth_ = new TH1D("depth", "deposit along z;cm;MeV", 50, 0, kThickness);
    depth_->SetDirectory(file_.get());
    return true;
  }

  void begin_of_event(int event) {
    event_ = event;
    count_ = 0;
    sum_ = 0;
  }

  void step(const Step& step) {
    step_ = step;
    steps_->Fill();
    depth_->Fill(step.z, step.deposit);
    ++count_;
    sum_ += step.deposit;
  }

  /// Saves now and then: lest a crash lose the whole run; and to a server that merges, because that is what sends.
  void end_of_event() {
    events_->Fill();
    if ((event_ + 1) % kEventsPerWrite == 0) file_->Write(nullptr, TObject::kOverwrite);
  }

  bool end_of_run() {
    file_->Write(nullptr, TObject::kOverwrite);
    file_->Close();
    return !file_->TestBit(TFile::kWriteError);
  }

 private:
  std::unique_ptr<TFile> file_;
  TTree* steps_ = nullptr;
  TTree* events_ = nullptr;
  TH1D* depth_ = nullptr;
  int run_ = 0;
  int event_ = 0;
  int count_ = 0;
  double sum_ = 0;
  Step step_;
};

/// A particle loses energy until it has none or has left the absorber. Run and event alone decide what happens to it.
void simulate(int run, int event, Analysis& analysis) {
  std::seed_seq seed{run, event};
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> length(1 / kMeanStep);
  std::normal_distribution<double> sideways(0, 0.02);
  std::uniform_real_distribution<double> share(0, 0.1);
  Step step;
  for (double energy = kEnergy; energy > 0.1;) {
    step.x += sideways(random);
    step.y += sideways(random);
    step.z += length(random);
    if (step.z >= kThickness) return;
    step.deposit = energy * share(random);
    energy -= step.deposit;
    analysis.step(step);
  }
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) {
    std::fprintf(stderr, "usage: %s URL RUN EVENTS\n", words[0]);
    return 2;
  }
  const int run = std::atoi(words[2]);
  Analysis analysis;
  if (!analysis.begin_of_run(words[1], run)) return 1;
  for (int event = 0; event < std::atoi(words[3]); ++event) {
    analysis.begin_of_event(event);
    simulate(run, event, analysis);
    analysis.end_of_event();
  }
  return analysis.end_of_run() ? 0 : 1;
}
