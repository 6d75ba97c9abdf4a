// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/kernel_symbols.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace wherry::fabric::ofi {
namespace {

using Open = std::FILE* (*)(const char* name, const char* mode);

std::FILE* open_all_but_kernel_symbols(const char* name, const char* mode) {
  if (std::strcmp(name, "/proc/kallsyms") == 0) {
    errno = ENOENT;
    return nullptr;
  }
  return std::fopen(name, mode);
}

// The loader's addresses are integers.
// NOLINTBEGIN(performance-no-int-to-ptr)

/// The procedure linkage table (PLT) of a loaded library. The loader has made the pointers absolute.
struct Imports {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela) * entries = nullptr;
  std::size_t bytes = 0;

  explicit Imports(const ElfW(Dyn) * section) {
    for (; section->d_tag != DT_NULL; ++section) {
      if (section->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(section->d_un.d_ptr);
      if (section->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(section->d_un.d_ptr);
      if (section->d_tag == DT_JMPREL) entries = reinterpret_cast<const ElfW(Rela)*>(section->d_un.d_ptr);
      if (section->d_tag == DT_PLTRELSZ) bytes = section->d_un.d_val;
    }
  }
  /// Returns the entry of a function; null if the library does not call it.
  [[nodiscard]] Open* find(ElfW(Addr) base, const char* function) const {
    if (symbols == nullptr || names == nullptr || entries == nullptr) return nullptr;
    for (std::size_t i = 0; i < bytes / sizeof *entries; ++i) {
      const char* const name = names + symbols[ELF64_R_SYM(entries[i].r_info)].st_name;
      if (std::strcmp(name, function) == 0) return reinterpret_cast<Open*>(base + entries[i].r_offset);
    }
    return nullptr;
  }
};

struct Place {
  ElfW(Addr) base;
  ElfW(Addr) address;
  bool is_read_only = false;  ///< the loader has made the page read-only (RELRO)
};

int look_at(dl_phdr_info* library, std::size_t, void* wanted) {
  auto& place = *static_cast<Place*>(wanted);
  if (library->dlpi_addr != place.base) return 0;
  for (std::size_t i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = library->dlpi_phdr[i];
    const ElfW(Addr) begin = place.base + part.p_vaddr;
    if (part.p_type == PT_GNU_RELRO && place.address >= begin && place.address < begin + part.p_memsz) {
      place.is_read_only = true;
    }
  }
  return 1;
}

}  // namespace

void hide_kernel_symbols(void* library) noexcept {
  // A kernel without InfiniBand has neither of the two symbols, so the result for libfabric is the same.
  if (::access("/sys/class/infiniband", F_OK) == 0) return;
  link_map* loaded = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&loaded)) != 0) return;
  Open* const slot = Imports(loaded->l_ld).find(loaded->l_addr, "fopen");
  if (slot == nullptr) return;
  Place place{.base = loaded->l_addr, .address = reinterpret_cast<ElfW(Addr)>(slot)};
  (void)::dl_iterate_phdr(look_at, &place);
  const auto page_size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const page = reinterpret_cast<void*>(place.address / page_size * page_size);
  if (place.is_read_only && ::mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0) return;
  *slot = open_all_but_kernel_symbols;
  if (place.is_read_only) (void)::mprotect(page, page_size, PROT_READ);
}

// NOLINTEND(performance-no-int-to-ptr)

}  // namespace wherry::fabric::ofi
