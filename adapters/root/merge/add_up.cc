// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/add_up.hpp"

#include <TClass.h>
#include <TFileMergeInfo.h>
#include <TList.h>
#include <stdexcept>
#include <string>

#include "adapters/root/merge/read/source.hpp"

namespace wherry::merge {

// Histograms at once, which is faster; for other classes, as lists, it matters what is added to what.
bool add_up(TClass& type, TObject& sum, const std::vector<TObject*>& inputs, TDirectory* directory) {
  const bool at_once = type.InheritsFrom("TH1");
  TFileMergeInfo info(directory);
  bool good = true;
  TList list;
  for (TObject* input : inputs) {
    list.Add(input);
    if (at_once && input != inputs.back()) continue;
    good = type.GetMerge()(&sum, &list, &info) >= 0 && good;
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
