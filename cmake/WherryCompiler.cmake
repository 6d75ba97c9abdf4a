# SPDX-License-Identifier: Apache-2.0
#
# What every translation unit is compiled with: the standard, the warnings, the sanitizers, the compiler cache.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# A test runs the program it was built with, and a user types it: one place for both.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

# A project that adds Wherry has its own compiler cache.
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}/cmake/compile")
endif()

# For ccache: it finds a source that begins with compiled headers by what the preprocessor makes of it, and the same
# headers are the same file only without the time in it (scripts/build says the rest, CCACHE_SLOPPINESS).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(for_compiled_headers -fpch-preprocess)
elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(for_compiled_headers "SHELL:-Xclang -fno-pch-timestamp")
endif()

# An interface target instead of directory options, so that a project that adds Wherry as a subdirectory keeps its own.
add_library(wherry_options INTERFACE)
target_compile_options(wherry_options INTERFACE -Wall -Wextra -Wshadow -Wconversion ${for_compiled_headers})
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # gcc's -Wconversion leaves signs alone; the two compilers should complain about the same lines.
  target_compile_options(wherry_options INTERFACE -Wno-sign-conversion)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # gcc 12 sees overlapping copies in `"text" + std::string` where there are none (GCC bug 105651).
  target_compile_options(wherry_options INTERFACE -Wno-restrict)
endif()
if(WHERRY_WERROR)
  target_compile_options(wherry_options INTERFACE -Werror)
endif()
if(WHERRY_SANITIZE)
  target_compile_options(wherry_options INTERFACE
    -fsanitize=${WHERRY_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(wherry_options INTERFACE -fsanitize=${WHERRY_SANITIZE})
endif()
