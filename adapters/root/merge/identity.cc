// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/identity.hpp"

#include <TBufferFile.h>
#include <TChain.h>
#include <TClass.h>
#include <TObjArray.h>
#include <cstddef>

namespace wherry::merge {

namespace {

/// Returns the files that a chain names. Its other stored members differ even between equal chains.
std::string files_of(const TChain& chain) {
  std::string files;
  for (const TObject* file : *chain.GetListOfFiles()) {
    files += std::string(file->GetName()) + '\0' + file->GetTitle() + '\0';
  }
  return files;
}

}  // namespace

std::string identity_of(const std::string& path, TClass& type, void* object) {
  const std::string name = path + '\0' + type.GetName() + '\0';
  if (const auto* chain = static_cast<const TChain*>(
          type.InheritsFrom(TChain::Class()) ? type.DynamicCast(TChain::Class(), object) : nullptr)) {
    return name + files_of(*chain);
  }
  TBufferFile buffer(TBuffer::kWrite);
  type.Streamer(object, buffer);
  return name + std::string(buffer.Buffer(), static_cast<std::size_t>(buffer.Length()));
}

}  // namespace wherry::merge
