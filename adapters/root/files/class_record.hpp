// SPDX-License-Identifier: Apache-2.0
// The record that describes the classes in a file, as it was written into the last one. File after file of the same
// trees has the same, and making it again is more work for ROOT than all the rest of a small file.
#pragma once

#include <Rtypes.h>

#include <span>
#include <string>
#include <string_view>

class TDirectory;

namespace wherry::root {

/// A place in a file.
struct Record {
  Long64_t seek = 0;
  Int_t bytes = 0;
};

class ClassRecord {
 public:
  /// Remembers the record of a file that has these classes (TFile::GetClassIndex); a key and what follows it.
  void keep(std::string classes, std::span<const char> record);
  [[nodiscard]] bool is_of(std::string_view classes) const { return !payload_.empty() && classes == classes_; }
  /// Writes it into another file and returns where it is.
  [[nodiscard]] Record write(TDirectory& file) const;

 private:
  std::string classes_;
  std::string payload_;  // as it lies in the file: compressed, or not
  Int_t unpacked_ = 0;
};

}  // namespace wherry::root
