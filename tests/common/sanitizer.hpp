// SPDX-License-Identifier: Apache-2.0
// For tests: whether this is a build under AddressSanitizer. (For ThreadSanitizer see arch/barrier.hpp.)
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define WHERRY_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WHERRY_ADDRESS_SANITIZER 1
#endif
#endif
#ifndef WHERRY_ADDRESS_SANITIZER
#define WHERRY_ADDRESS_SANITIZER 0
#endif
