// SPDX-License-Identifier: Apache-2.0
// Caches the record that describes the classes in a file (ROOT's streamer infos). Successive files with the same trees
// have the same record, and making it costs ROOT more than all the rest of a small file.
#pragma once

#include <Rtypes.h>

#include <span>
#include <string>
#include <string_view>

class TDirectory;

namespace wherry::root {

/// Where a record lies in a file.
struct Record {
  Long64_t seek = 0;
  Int_t bytes = 0;
};

class ClassRecord {
 public:
  /// Remembers the record of a file with these classes (TFile::GetClassIndex).
  /// @param record  the key and its payload, as in the file
  void keep(std::string classes, std::span<const char> record);
  /// Whether a record is cached, and is that of these classes.
  [[nodiscard]] bool is_of(std::string_view classes) const { return !payload_.empty() && classes == classes_; }
  /// Writes the cached record into another file and returns where it lies.
  [[nodiscard]] Record write(TDirectory& file) const;

 private:
  std::string classes_;
  std::string payload_;  // as it is in the file, compressed or not
  Int_t unpacked_ = 0;
};

}  // namespace wherry::root
