// SPDX-License-Identifier: Apache-2.0
#include "main_program.hpp"

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>

#include "base/preload_support.hpp"

namespace wherry::preload {
namespace {

/// The loader lists the program first. Returning 1 ends the iteration.
int look_at_program(dl_phdr_info* program, std::size_t /*size*/, void* found) {
  for (unsigned i = 0; i < program->dlpi_phnum; i++) {
    const ElfW(Phdr)& segment = program->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const std::uintptr_t address = program->dlpi_addr + segment.p_vaddr;
    const auto* const notes = reinterpret_cast<const char*>(address);  // NOLINT(performance-no-int-to-ptr)
    if (has_note_of_go({notes, segment.p_memsz})) *static_cast<bool*>(found) = true;
  }
  return 1;
}

}  // namespace

bool goes_past_the_c_library() noexcept {
  bool found = false;
  dl_iterate_phdr(look_at_program, &found);
  return found;
}

}  // namespace wherry::preload
