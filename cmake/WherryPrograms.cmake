# SPDX-License-Identifier: Apache-2.0
#
# The functions for what is not a layer: the `wherry` program, the benchmarks, the fuzz targets, the pytest folder.

# wherry_program()
#
# The program `wherry` (target wherry_program) from main.cc and all other *.cc files at and below the current folder;
# the others are an object library, so that their *_test.cc files (tools_test) link the very same objects.
function(wherry_program)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  set(tests ${sources})
  set(main ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER main INCLUDE REGEX "/main\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cc$|/common/")
  if(sources)
    wherry_tool_objects(${sources})
  endif()
  if(main)
    add_executable(wherry_program ${main})
    set_target_properties(wherry_program PROPERTIES OUTPUT_NAME wherry)
    wherry_internal(wherry_program)
    wherry_program_compiled_quickly(wherry_program)
    target_link_libraries(wherry_program PRIVATE wherry_tool_objects wherry_manual)
  endif()
  if(tests AND WHERRY_TESTS)
    add_executable(tools_test ${tests})
    wherry_internal(tools_test)
    wherry_compiled_quickly(tools_test)
    target_link_libraries(tools_test PRIVATE wherry_tool_objects wherry_gtest)
    wherry_test_compiled_quickly(tools_test)
    # Those of tools/collect flush, and wait for what everybody on the machine has written.
    wherry_discover(tools_test "" 300)
  endif()
endfunction()

function(wherry_tool_objects)
  wherry_find_program_libraries()
  add_library(wherry_tool_objects OBJECT ${ARGN})
  wherry_internal(wherry_tool_objects)
  wherry_program_compiled_quickly(wherry_tool_objects)
  target_include_directories(wherry_tool_objects PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(wherry_tool_objects
    PUBLIC wherry_tools_common fmt::fmt CLI11::CLI11 nlohmann_json::nlohmann_json PkgConfig::xxhash)
  wherry_unity(wherry_tool_objects)
endfunction()

# wherry_bench_objects()
#
# What wherry-bench consists of: all *.cc files of the folders harness, systems, questions and program below the current one
# and of their folders, as an object library (bench_objects); their *_test.cc files are bench_test. The libraries' are modules.
function(wherry_bench_objects)
  file(GLOB sources CONFIGURE_DEPENDS harness/*.cc harness/*/*.cc systems/*.cc systems/*/*.cc questions/*.cc questions/*/*.cc
    program/*.cc)
  list(FILTER sources EXCLUDE REGEX "/systems/libraries/|/program/bench\\.cc$")
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  wherry_find_program_libraries()
  add_library(bench_objects OBJECT ${sources})
  wherry_internal(bench_objects)
  wherry_compiled_quickly(bench_objects)
  target_link_libraries(bench_objects PUBLIC fmt::fmt CLI11::CLI11 nlohmann_json::nlohmann_json ${CMAKE_DL_LIBS})
  wherry_unity(bench_objects)
  if(tests AND WHERRY_TESTS)
    add_executable(bench_test ${tests})
    wherry_internal(bench_test)
    wherry_compiled_quickly(bench_test)
    target_link_libraries(bench_test PRIVATE bench_objects wherry_gtest)
    wherry_test_compiled_quickly(bench_test)
    wherry_discover(bench_test "" "")
  endif()
endfunction()

# wherry_bench_program()
#
# The program wherry-bench (target wherry_bench) of bench_objects.
function(wherry_bench_program)
  add_executable(wherry_bench program/bench.cc)
  set_target_properties(wherry_bench PROPERTIES OUTPUT_NAME wherry-bench)
  wherry_internal(wherry_bench)
  target_link_libraries(wherry_bench PRIVATE bench_objects wherry_manual)
  # The modules are classes derived from the program's own. Modules of an older build would call its functions by wrong places.
  set_target_properties(wherry_bench PROPERTIES ENABLE_EXPORTS ON)
  add_dependencies(wherry_bench bench_peers)
endfunction()

# wherry_bench_install(install option...)
#
# An install rule of the component bench, which is installed where it is asked for (make bench-install).
function(wherry_bench_install)
  if(WHERRY_INSTALL)
    install(${ARGN} COMPONENT bench EXCLUDE_FROM_ALL)
  endif()
endfunction()

# wherry_benchmarks()
#
# Every *.cc file of the current folder is one program, bench_<name>. ctest runs each with --smoke: a benchmark that
# nobody runs is broken when it is needed.
function(wherry_benchmarks)
  file(GLOB programs CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  add_custom_target(benchmarks)
  foreach(source IN LISTS programs)
    cmake_path(GET source STEM name)
    add_executable(bench_${name} ${source})
    wherry_internal(bench_${name})
    target_link_libraries(bench_${name} PRIVATE bench_objects)
    add_dependencies(benchmarks bench_${name})
    wherry_script_test(bench.${name} COMMAND bench_${name} --smoke)
  endforeach()
endfunction()

# What the programs are written with; the library itself needs none of it.
macro(wherry_find_program_libraries)
  set(missing "")
  foreach(package IN ITEMS fmt CLI11 nlohmann_json PkgConfig)
    find_package(${package} QUIET)
    if(NOT ${package}_FOUND)
      list(APPEND missing ${package})
    endif()
  endforeach()
  if(PkgConfig_FOUND)
    pkg_check_modules(xxhash QUIET IMPORTED_TARGET libxxhash)
    if(NOT xxhash_FOUND)
      list(APPEND missing libxxhash)
    endif()
  endif()
  if(missing)
    list(JOIN missing ", " missing)
    message(FATAL_ERROR "the programs need ${missing}: install what dependencies/build.txt names (scripts/setup build), "
                        "or configure with -D WHERRY_PROGRAM=OFF -D WHERRY_BENCH=OFF -D WHERRY_ROOT=OFF")
  endif()
endmacro()

# wherry_fuzz_targets()
#
# Every *_fuzz.cc file of the current folder is one libFuzzer program; the other *.cc files are shared helpers. ctest
# runs each for WHERRY_FUZZ_SECONDS, starting from corpus/<name>/ where that folder exists.
set(WHERRY_FUZZ_SECONDS 20 CACHE STRING "How long ctest runs each fuzz target")

function(wherry_fuzz_targets)
  file(GLOB programs CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_fuzz.cc)
  file(GLOB helpers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  list(FILTER helpers EXCLUDE REGEX "_(fuzz|test)\\.cc$")
  if(NOT WHERRY_FUZZ OR NOT programs)
    return()
  endif()
  wherry_fuzzed_library()
  add_custom_target(fuzz_targets)
  foreach(source IN LISTS programs)
    cmake_path(GET source STEM name)
    add_executable(${name} ${source} ${helpers})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
    target_link_libraries(${name} PRIVATE wherry_fuzzed wherry_options)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzz_targets ${name})
    wherry_add_fuzz_run(${name})
  endforeach()
endfunction()

# The library once more, with the sanitizers and the coverage counters of libFuzzer in it: a hostile peer's bytes must
# not read one byte outside the shared memory, and only an instrumented library can tell.
function(wherry_fuzzed_library)
  get_target_property(sources wherry SOURCES)
  add_library(wherry_fuzzed STATIC EXCLUDE_FROM_ALL ${sources})
  target_include_directories(wherry_fuzzed PUBLIC ${PROJECT_SOURCE_DIR}/include PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(wherry_fuzzed PUBLIC Threads::Threads PRIVATE wherry_options)
  target_compile_options(wherry_fuzzed PUBLIC
    -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -gline-tables-only -O1)
  target_link_options(wherry_fuzzed PUBLIC -fsanitize=address,undefined)
endfunction()

function(wherry_add_fuzz_run name)
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name})
  if(NOT EXISTS ${corpus})
    set(corpus "")
  endif()
  # Findings of a run go to a folder of the build, never into the committed corpus.
  set(found ${CMAKE_CURRENT_BINARY_DIR}/${name}.corpus)
  file(MAKE_DIRECTORY ${found})
  add_test(NAME fuzz.${name} COMMAND ${name} -max_total_time=${WHERRY_FUZZ_SECONDS} -timeout=100 -rss_limit_mb=2048
    -print_final_stats=1 -artifact_prefix=${CMAKE_CURRENT_BINARY_DIR}/${name}. ${found} ${corpus})
  math(EXPR timeout "${WHERRY_FUZZ_SECONDS} + 300")
  set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT ${timeout})
endfunction()

# wherry_pytest([TIMEOUT seconds])
#
# Every test_*.py file of the current folder is one ctest test. WHERRY_PROGRAM names the program under test.
function(wherry_pytest)
  cmake_parse_arguments(arg "" "TIMEOUT" "" ${ARGN})
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/test_*.py)
  if(NOT TARGET wherry_program)
    return()
  endif()
  foreach(file IN LISTS files)
    cmake_path(GET file STEM name)
    string(REGEX REPLACE "^test_" "" name ${name})
    wherry_script_test(e2e.${name} LABELS e2e TIMEOUT ${arg_TIMEOUT}
      COMMAND ${PROJECT_SOURCE_DIR}/.venv/bin/python -m pytest -q -p no:cacheprovider ${file}
      ENVIRONMENT WHERRY_PROGRAM=$<TARGET_FILE:wherry_program>)
  endforeach()
endfunction()
