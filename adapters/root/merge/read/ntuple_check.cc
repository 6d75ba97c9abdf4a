// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/read/ntuple_check.hpp"

#include <TClass.h>
#include <TKey.h>
#include <ROOT/RColumnElementBase.hxx>
#include <ROOT/RNTuple.hxx>
#include <ROOT/RNTupleDescriptor.hxx>
#include <ROOT/RNTupleReader.hxx>
#include <ROOT/RPageStorage.hxx>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string_view>

namespace wherry::merge {

namespace {

using ROOT::RNTupleDescriptor;
using ROOT::RNTupleLocator;
using SealedPage = ROOT::Internal::RPageStorage::RSealedPage;

constexpr std::size_t kChecksumBytes = 8;

// Removes the "Split" of a column type: the values are the same, and ROOT's merger converts between both.
std::string_view plain(std::string_view column) {
  constexpr std::string_view kSplit = "Split";
  return column.substr(0, kSplit.size()) == kSplit ? column.substr(kSplit.size()) : column;
}

void describe(const RNTupleDescriptor& descriptor, ROOT::DescriptorId_t parent, std::string& text) {
  for (const auto& field : descriptor.GetFieldIterable(parent)) {
    text += field.GetFieldName() + ':' + field.GetTypeName() + ':' + std::to_string(field.GetTypeVersion()) + ':' +
            std::to_string(field.GetNRepetitions()) + ':' + std::to_string(static_cast<int>(field.GetStructure()));
    for (const auto& column : descriptor.GetColumnIterable(field)) {
      text += ' ';
      text += plain(ROOT::Internal::RColumnElementBase::GetColumnTypeName(column.GetType()));
      text += std::to_string(column.GetBitsOnStorage());
    }
    text += '{';
    describe(descriptor, field.GetId(), text);
    text += '}';
  }
}

void check_page(const ROOT::RClusterDescriptor::RPageInfo& page, std::span<const std::byte> file) {
  const RNTupleLocator& locator = page.GetLocator();
  if (locator.GetType() == RNTupleLocator::kTypePageZero) return;
  if (locator.GetType() != RNTupleLocator::kTypeFile) throw std::runtime_error("a page that is not in the file");
  const auto at = locator.GetPosition<std::uint64_t>();
  const std::uint64_t bytes = locator.GetNBytesOnStorage() + (page.HasChecksum() ? kChecksumBytes : 0);
  if (at > file.size() || bytes > file.size() - at) throw std::runtime_error("a page outside the file");
  SealedPage(file.data() + at, bytes, page.GetNElements(), page.HasChecksum()).VerifyChecksumIfEnabled().ThrowOnError();
}

void check_pages(const RNTupleDescriptor& descriptor, std::span<const std::byte> file) {
  for (const auto& cluster : descriptor.GetClusterIterable()) {
    for (const auto& column : cluster.GetColumnRangeIterable()) {
      if (column.IsSuppressed()) continue;
      for (const auto& page : cluster.GetPageRange(column.GetPhysicalColumnId()).GetPageInfos()) {
        check_page(page, file);
      }
    }
  }
}

}  // namespace

NTupleShape look_at_ntuple(TKey& key, std::span<const std::byte> file) {
  NTupleShape shape;
  try {
    const std::unique_ptr<ROOT::RNTuple> anchor(key.ReadObject<ROOT::RNTuple>());
    if (!anchor) throw std::runtime_error("no description of it");
    const auto reader = ROOT::RNTupleReader::Open(*anchor);
    const RNTupleDescriptor& descriptor = reader->GetDescriptor();
    describe(descriptor, descriptor.GetFieldZeroId(), shape.fields);
    if (!file.empty()) check_pages(descriptor, file);
  } catch (const std::exception& problem) {
    shape.fault = std::string("RNTuple ") + key.GetName() + ": " + problem.what();
  }
  return shape;
}

}  // namespace wherry::merge
