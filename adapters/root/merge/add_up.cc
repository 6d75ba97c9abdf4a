// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/add_up.hpp"

#include <TClass.h>
#include <TFileMergeInfo.h>
#include <TList.h>
#include <stdexcept>
#include <string>
#include <utility>

#include "adapters/root/merge/read/source.hpp"

namespace wherry::merge {

namespace {

bool merge(TClass& type, TObject& sum, TList& list, TDirectory* directory) {
  TFileMergeInfo info(directory);
  return type.GetMerge()(&sum, &list, &info) >= 0;
}

}  // namespace

// Adds histograms all at once, which is faster. Adds objects of other classes, such as lists, one by one, because the
// order matters. If adding at once fails, it is unknown what was added. So `sum` is restored, and the histograms are
// added one by one: one that does not fit keeps none of the others out.
bool add_up(TClass& type, std::unique_ptr<TObject>& sum, const std::vector<TObject*>& inputs, TDirectory* directory) {
  if (type.InheritsFrom("TH1") && inputs.size() > 1) {
    TList list;
    for (TObject* input : inputs) list.Add(input);
    auto before = copy_of(*sum);
    const bool good = merge(type, *sum, list, directory);
    list.Clear("nodelete");
    if (good) return true;
    sum = std::move(before);
  }
  bool good = true;
  TList list;
  for (TObject* input : inputs) {
    list.Add(input);
    good = merge(type, *sum, list, directory) && good;
    list.Clear("nodelete");
  }
  return good;
}

std::unique_ptr<TObject> copy_of(const TObject& object) {
  std::unique_ptr<TObject> copy(object.Clone());
  if (!copy) throw std::runtime_error(std::string("a ") + object.ClassName() + " cannot be copied");
  take_out_of_directory(*copy);
  return copy;
}

}  // namespace wherry::merge
