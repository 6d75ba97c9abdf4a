// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

/// A function that programs find in this library before the C library's.
#define WHERRY_HOOK extern "C" __attribute__((visibility("default")))

/// Another name that the C library has for a function, of a hook in the same file: as those for large files, whose
/// offsets have the same size. No alias of the compiler's: it would compare the attributes that headers give to one of
/// the names only.
#define WHERRY_OTHER_NAME(name, hook) asm(".globl " #name "\n.set " #name ", " #hook)
static_assert(sizeof(off_t) == sizeof(off64_t));
