// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/root/program/image.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>

#include <TFile.h>
#include <TMemFile.h>
#include <TROOT.h>
#include <TTree.h>

#include "bench/harness/touch.hpp"

namespace wherry::bench::root {
namespace {

/// Random, so that nothing along the way gains from a pattern; a program's own work is not what is measured.
std::span<const double> table() {
  static const std::vector<double> numbers = [] {
    std::mt19937_64 random(1);
    std::vector<double> made(std::size_t{1} << 16);
    for (double& number : made) number = static_cast<double>(random()) / 1e19;
    return made;
  }();
  return numbers;
}

/// What the file holds that `fill` has filled.
std::vector<char> written(Tree tree, const std::function<void(TFile&)>& fill) {
  TMemFile file("image.root", "RECREATE", "", compression_of(tree));
  fill(file);
  file.Write();
  std::vector<char> bytes(static_cast<std::size_t>(file.GetEND()));
  file.CopyTo(bytes.data(), file.GetEND());
  return bytes;
}

std::vector<char> numbers_image(std::uint64_t entries) {
  return written(Tree::numbers, [entries](TFile& file) { Filler(file).fill(entries); });
}

std::vector<char> higgs_image(std::uint64_t entries) {
  const std::string path = std::string(TROOT::GetTutorialDir()) + "/machine_learning/data/Higgs_data.root";
  const std::unique_ptr<TFile> source(TFile::Open(path.c_str()));
  if (source == nullptr || source->IsZombie()) throw std::runtime_error(path + " is not there");
  const std::array<TTree*, 2> trees{source->Get<TTree>("sig_tree"), source->Get<TTree>("bkg_tree")};
  if (trees[0] == nullptr || trees[1] == nullptr) throw std::runtime_error(path + " has not the trees it should have");
  return written(Tree::higgs, [&](TFile& file) {
    file.cd();
    TTree* copy = trees[0]->CloneTree(0);
    copy->SetName(kTreeName);
    copy->SetBasketSize("*", 32000);
    for (std::uint64_t done = 0, turn = 0; done < entries; ++turn) {
      TTree* from = trees.at(turn % trees.size());
      const auto some = std::min<std::uint64_t>(entries - done, static_cast<std::uint64_t>(from->GetEntries()));
      from->CopyAddresses(copy);
      for (std::uint64_t i = 0; i < some; ++i) {
        from->GetEntry(static_cast<Long64_t>(i));
        copy->Fill();
      }
      done += some;
    }
    copy->ResetBranchAddresses();
  });
}

std::vector<char> image_of(Tree tree, std::uint64_t entries) {
  return tree == Tree::numbers ? numbers_image(entries) : higgs_image(entries);
}

}  // namespace

int compression_of(Tree tree) { return tree == Tree::numbers ? 0 : 101; }

Image make_image(Tree tree, std::uint64_t size) {
  const std::uint64_t few = tree == Tree::numbers ? 1 : 100;
  const std::uint64_t more = few * 33;
  const std::uint64_t least = image_of(tree, few).size();
  if (size < least) throw std::runtime_error(fmt::format("a file with this tree has at least {} bytes", least));
  const double each = static_cast<double>(image_of(tree, more).size() - least) / static_cast<double>(more - few);
  Image image;
  image.entries = few + static_cast<std::uint64_t>(static_cast<double>(size - least) / each);
  while (true) {
    image.bytes = image_of(tree, image.entries);
    if (image.bytes.size() <= size) break;
    const double over = static_cast<double>(image.bytes.size() - size) / each;
    image.entries -= std::min(image.entries - few, std::max<std::uint64_t>(1, static_cast<std::uint64_t>(over)));
  }
  image.sum = sum_all(std::as_bytes(std::span(image.bytes)));
  return image;
}

Filler::Filler(TFile& file) {
  file.cd();
  tree_ = new TTree(kTreeName, "generated");  // The file's.
  tree_->Branch("numbers", numbers_.data(), fmt::format("numbers[{}]/D", kNumbers).c_str());
  tree_->ResetBit(kMustCleanup);
}

void Filler::fill(std::uint64_t entries) {
  for (std::uint64_t i = 0; i < entries; ++i) {
    compute(numbers_, next_++);
    tree_->Fill();
  }
}

void compute(std::array<double, Filler::kNumbers>& numbers, std::uint64_t entry) {
  const std::span<const double> all = table();
  const std::size_t begin = entry * 977 % (all.size() - numbers.size());
  std::memcpy(numbers.data(), &all[begin], sizeof numbers);
}

}  // namespace wherry::bench::root
