// SPDX-License-Identifier: Apache-2.0
#include "base/loaded_libraries.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

// A statically linked program has no dynamic section.
#pragma weak _DYNAMIC

namespace wherry {
namespace {

/// Returns a pointer from a library's dynamic section. The loader has added the library's address to it only if the
/// section is writable.
template <typename Type>
const Type* pointer_in(const link_map& library, ElfW(Addr) value) {
  const ElfW(Addr) address = value < library.l_addr ? library.l_addr + value : value;
  return reinterpret_cast<const Type*>(address);  // NOLINT(performance-no-int-to-ptr)
}

/// Whether `text` begins with `beginning`. Not the C library's function: that may be a sanitizer's, which is not ready
/// before main.
bool begins_with(const char* text, const char* beginning) {
  for (; *beginning != '\0'; text++, beginning++) {
    if (*text != *beginning) return false;
  }
  return true;
}

bool are_same(const char* text, const char* other) {
  for (; *text == *other; text++, other++) {
    if (*text == '\0') return true;
  }
  return false;
}

/// The tables of a library in which the loader finds symbols.
struct Tables {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const std::uint32_t* hash = nullptr;      ///< of DT_GNU_HASH
  const ElfW(Versym) * versions = nullptr;  ///< null: its symbols have no versions

  explicit Tables(const link_map& library) {
    for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; entry++) {
      switch (entry->d_tag) {
        case DT_SYMTAB:
          symbols = pointer_in<ElfW(Sym)>(library, entry->d_un.d_ptr);
          break;
        case DT_STRTAB:
          strings = pointer_in<char>(library, entry->d_un.d_ptr);
          break;
        case DT_GNU_HASH:
          hash = pointer_in<std::uint32_t>(library, entry->d_un.d_ptr);
          break;
        case DT_VERSYM:
          versions = pointer_in<ElfW(Versym)>(library, entry->d_un.d_ptr);
          break;
        default:
          break;
      }
    }
  }
};

std::uint32_t gnu_hash(const char* name) {
  std::uint32_t hash = 5381;
  for (; *name != '\0'; name++) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

bool is_definition(const Tables& tables, std::uint32_t index, const char* name) {
  constexpr ElfW(Versym) kHidden = 0x8000;  // not the default version of its name
  const ElfW(Sym)& symbol = tables.symbols[index];
  if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) return false;
  if (tables.versions != nullptr && (tables.versions[index] & kHidden) != 0) return false;
  return are_same(tables.strings + symbol.st_name, name);
}

/// Returns the definition of a name in a library; null if it has none.
const ElfW(Sym) * find(const Tables& tables, const char* name, std::uint32_t hash) {
  constexpr std::uint32_t kWordBits = 8 * sizeof(ElfW(Addr));
  const std::uint32_t bucket_count = tables.hash[0];
  const std::uint32_t first_symbol = tables.hash[1];
  const std::uint32_t filter_words = tables.hash[2];
  const std::uint32_t filter_shift = tables.hash[3];
  const auto* const filter = reinterpret_cast<const ElfW(Addr)*>(tables.hash + 4);
  const auto* const buckets = reinterpret_cast<const std::uint32_t*>(filter + filter_words);
  const std::uint32_t* const chains = buckets + bucket_count;
  const ElfW(Addr) word = filter[hash / kWordBits % filter_words];
  if ((word >> (hash % kWordBits) & word >> ((hash >> filter_shift) % kWordBits) & 1) == 0) return nullptr;
  std::uint32_t index = buckets[hash % bucket_count];
  if (index < first_symbol) return nullptr;
  while (true) {
    const std::uint32_t entry = chains[index - first_symbol];
    if ((entry | 1) == (hash | 1) && is_definition(tables, index, name)) return tables.symbols + index;
    if ((entry & 1) != 0) return nullptr;
    index++;
  }
}

/// Returns the loader's list, which begins with the program; null if it is not found.
const link_map* list_of_program() {
  const auto* const headers =
      reinterpret_cast<const ElfW(Phdr)*>(getauxval(AT_PHDR));  // NOLINT(performance-no-int-to-ptr)
  const std::size_t count = getauxval(AT_PHNUM);
  const ElfW(Phdr)* dynamic = nullptr;
  const ElfW(Phdr)* own = nullptr;
  for (std::size_t i = 0; headers != nullptr && i < count; i++) {
    if (headers[i].p_type == PT_DYNAMIC) dynamic = headers + i;
    if (headers[i].p_type == PT_PHDR) own = headers + i;
  }
  if (dynamic == nullptr || own == nullptr) return nullptr;
  const ElfW(Addr) address = reinterpret_cast<ElfW(Addr)>(headers) - own->p_vaddr;
  const auto* entry =
      reinterpret_cast<const ElfW(Dyn)*>(address + dynamic->p_vaddr);  // NOLINT(performance-no-int-to-ptr)
  for (; entry->d_tag != DT_NULL; entry++) {
    if (entry->d_tag != DT_DEBUG) continue;
    const auto* const debug = reinterpret_cast<const r_debug*>(entry->d_un.d_ptr);  // NOLINT(performance-no-int-to-ptr)
    return debug == nullptr ? nullptr : debug->r_map;
  }
  return nullptr;
}

/// The libraries that the process was started with. They stay loaded; libraries added by dlopen follow them in the
/// loader's list.
struct Started {
  const link_map* program = nullptr;
  const link_map* own = nullptr;
  const link_map* last = nullptr;
};

// Placed beside data that the loader writes, so that it costs no page of its own.
[[gnu::section(".data.start")]] constinit std::atomic<const link_map*> last_started{nullptr};

/// The first call is made before main. Later calls see the same end of the list.
Started started_with() {
  Started found;
  found.program = list_of_program();
  found.last = last_started.load(std::memory_order_relaxed);
  for (const link_map* library = found.program; library != nullptr; library = library->l_next) {
    // _DYNAMIC is the linker's name for the dynamic section of this library.
    if (library->l_ld == _DYNAMIC) found.own = library;
    if (library == found.last) return found;
    if (library->l_next == nullptr) found.last = library;
  }
  last_started.store(found.last, std::memory_order_relaxed);
  return found;
}

/// Calls `look` with each library from `first` to the last that the process was started with, until it returns true.
template <typename Look>
bool for_each(const Started& started, const link_map* first, Look look) {
  for (const link_map* library = first; library != nullptr; library = library->l_next) {
    if (library->l_ld != nullptr && look(*library)) return true;
    if (library == started.last) break;
  }
  return false;
}

}  // namespace

NextSymbol next_symbol(const char* name) noexcept {
  const Started started = started_with();
  if (started.own == nullptr) return {.is_certain = false};
  if (started.own == started.last) return {};
  const std::uint32_t hash = gnu_hash(name);
  NextSymbol found;
  for_each(started, started.own->l_next, [&](const link_map& library) {
    const Tables tables(library);
    if (tables.symbols == nullptr || tables.strings == nullptr) return false;
    if (tables.hash == nullptr) {
      found.is_certain = false;
      return true;
    }
    const ElfW(Sym)* const symbol = find(tables, name, hash);
    if (symbol == nullptr) return false;
    // Only the loader can choose the function behind an indirect one.
    found.is_certain = ELF64_ST_TYPE(symbol->st_info) != STT_GNU_IFUNC;
    found.address = reinterpret_cast<void*>(library.l_addr + symbol->st_value);  // NOLINT(performance-no-int-to-ptr)
    found.library = library.l_ld;
    return true;
  });
  return found;
}

bool any_library_defines(const char* symbol) noexcept {
  const Started started = started_with();
  const std::uint32_t hash = gnu_hash(symbol);
  return for_each(started, started.program, [&](const link_map& library) {
    const Tables tables(library);
    return tables.symbols != nullptr && tables.strings != nullptr && tables.hash != nullptr &&
           find(tables, symbol, hash) != nullptr;
  });
}

bool any_library_needs(const char* beginning) noexcept {
  const Started started = started_with();
  return for_each(started, started.program, [&](const link_map& library) {
    const Tables tables(library);
    for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL && tables.strings != nullptr; entry++) {
      if (entry->d_tag == DT_NEEDED && begins_with(tables.strings + entry->d_un.d_val, beginning)) {
        return true;
      }
    }
    return false;
  });
}

bool is_in_library([[maybe_unused]] const void* address, [[maybe_unused]] const char* beginning) noexcept {
#if __GLIBC_PREREQ(2, 35)
  dl_find_object found{};
  if (_dl_find_object(const_cast<void*>(address), &found) != 0 || found.dlfo_link_map == nullptr) return false;
  const char* name = found.dlfo_link_map->l_name;
  for (const char* at = name; *at != '\0'; at++) {
    if (*at == '/') name = at + 1;
  }
  return begins_with(name, beginning);
#else
  return false;
#endif
}

const char* path_of_this_library() noexcept {
  const Started started = started_with();
  return started.own == nullptr ? nullptr : started.own->l_name;
}

}  // namespace wherry
