# SPDX-License-Identifier: Apache-2.0
#
# The functions behind the one-line CMakeLists.txt of every folder.
#
# Labels of a test: `quick` (seconds; the default), `slow`, `concurrent` (also built and run under TSan), `e2e`, `fuzz`.
# Every test has a TIMEOUT: a lost wake-up shows as a test that never ends, and the watchdog turns it into a failure.

find_package(Threads REQUIRED)

if(WHERRY_TESTS STREQUAL "AUTO")
  # This variable hides the one in the cache, so that the next configuration looks again.
  find_package(GTest QUIET)
  if(TARGET GTest::gtest_main AND TARGET GTest::gmock)
    set(WHERRY_TESTS ON)
  else()
    set(WHERRY_TESTS OFF)
    message(STATUS "GoogleTest or GoogleMock not found: no tests (scripts/setup unit installs both)")
  endif()
endif()
if(WHERRY_TESTS)
  find_package(GTest REQUIRED)
  if(NOT TARGET GTest::gmock)
    message(FATAL_ERROR "GoogleMock not found: install libgmock-dev, or configure with -D WHERRY_TESTS=OFF")
  endif()
  include(GoogleTest)
  enable_testing()
  # GoogleTest, and what tests need that run beside each other, or in one process.
  add_library(wherry_gtest OBJECT ${PROJECT_SOURCE_DIR}/tests/own_job.cc ${PROJECT_SOURCE_DIR}/tests/shared_process.cc)
  target_include_directories(wherry_gtest PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(wherry_gtest PUBLIC GTest::gmock GTest::gtest_main PRIVATE wherry_options)
  # The TSan build compiles only what it runs: this target and nothing else.
  add_custom_target(concurrent_tests)
endif()

# Behind wherry_options. What one file shadows of another is no defect; the other presets compile with both warnings.
add_library(wherry_unity_options INTERFACE)
target_compile_options(wherry_unity_options INTERFACE -Wno-shadow $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)

# wherry_unity(TARGET)
#
# With WHERRY_UNITY the sources of each folder are compiled as one. Names in a folder are therefore unique, those in
# anonymous namespaces, too. Tests, and what is read by clang-tidy and the sanitizers, stay separate objects.
function(wherry_unity target)
  if(NOT WHERRY_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder} NORMALIZE OUTPUT_VARIABLE path)
    cmake_path(IS_PREFIX PROJECT_SOURCE_DIR "${path}" is_ours)
    if(NOT is_ours)
      continue()  # generated
    endif()
    cmake_path(GET path PARENT_PATH group)
    cmake_path(RELATIVE_PATH group BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    string(REPLACE "/" "_" group ${group})
    set_property(SOURCE ${source} TARGET_DIRECTORY ${target} PROPERTY UNITY_GROUP ${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:wherry_unity_options>)
endfunction()

# The library's own settings, static or shared; the layers add the sources.
function(wherry_library_properties target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PUBLIC Threads::Threads PRIVATE $<BUILD_INTERFACE:wherry_options>)
endfunction()

# The same objects as a shared library. Programs of ours link the static one: they use what the shared one hides.
function(wherry_shared_library)
  set(map ${PROJECT_SOURCE_DIR}/src/wherry.map)
  add_library(wherry_shared SHARED $<TARGET_OBJECTS:wherry>)
  wherry_library_properties(wherry_shared)
  # Its handlers of signals stay installed: it is never unmapped.
  target_link_options(wherry_shared PRIVATE LINKER:--version-script=${map} LINKER:-z,nodelete)
  # Before 1.0 a minor version may change an interface.
  set_target_properties(wherry_shared PROPERTIES OUTPUT_NAME wherry LINKER_LANGUAGE CXX LINK_DEPENDS ${map}
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  add_library(wherry::wherry_static ALIAS wherry)
  add_library(wherry::wherry_shared ALIAS wherry_shared)
  if(BUILD_SHARED_LIBS)
    add_library(wherry::wherry ALIAS wherry_shared)
  else()
    add_library(wherry::wherry ALIAS wherry)
  endif()
endfunction()

# wherry_layer(NAME [LABELS label...] [TIMEOUT seconds] [LIBRARIES target...])
#
# The current folder is a layer of the library: its *.cc files belong to the library, its *_test.cc files to one test
# program NAME_test. Either may be missing.
function(wherry_layer name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  target_sources(wherry PRIVATE ${sources})
  wherry_test(${name}_test ${ARGN})
endfunction()

# wherry_test(NAME [LABELS label...] [TIMEOUT seconds] [LIBRARIES target...] [EACH_FABRIC])
#
# EACH_FABRIC: its tests run over each fabric, so those of put-only ones need more than one process under a sanitizer.
# One GoogleTest program NAME of the current folder's *_test.cc files; ctest lists and times each of its tests. In a
# folder under tests/ the other *.cc files are shared helpers of the tests and are compiled in.
function(wherry_test name)
  if(NOT WHERRY_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "EACH_FABRIC" "TIMEOUT" "LABELS;LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cc)
  if(NOT sources)
    return()
  endif()
  if(CMAKE_CURRENT_SOURCE_DIR MATCHES "^${PROJECT_SOURCE_DIR}/tests/")
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  endif()
  string(REPLACE "/" "_" target ${name})
  add_executable(${target} ${sources})
  wherry_internal(${target})
  wherry_compiled_quickly(${target})
  target_link_libraries(${target} PRIVATE wherry_gtest ${arg_LIBRARIES})
  # Those that are slow are to be as fast as users' programs: they look for what happens seldom.
  if(NOT "slow" IN_LIST arg_LABELS)
    wherry_test_compiled_quickly(${target})
  endif()
  set_target_properties(${target} PROPERTIES WHERRY_EACH_FABRIC ${arg_EACH_FABRIC})
  wherry_discover(${target} "${arg_LABELS}" "${arg_TIMEOUT}")
endfunction()

# Half of what a test takes to compile is reading headers that most tests include: they are compiled once. Half of the
# rest is optimisation, of which a test itself has nothing; the library has what the preset says. A source still includes
# what it uses, as lint compiles without. The flags of the headers are those of the programs that reuse them.
function(wherry_test_compiled_quickly target)
  if(NOT TARGET wherry_test_headers)
    file(WRITE ${PROJECT_BINARY_DIR}/test_headers.cc "")
    add_library(wherry_test_headers OBJECT ${PROJECT_BINARY_DIR}/test_headers.cc)
    set_target_properties(wherry_test_headers PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(wherry_test_headers PRIVATE -fPIE)
    wherry_internal(wherry_test_headers)
    wherry_compiled_quickly(wherry_test_headers)
    target_compile_options(wherry_test_headers PRIVATE $<$<CONFIG:Release>:-O1>)
    target_link_libraries(wherry_test_headers PRIVATE wherry_gtest)
    target_precompile_headers(wherry_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h> <algorithm> <atomic> <chrono>
      <filesystem> <fstream> <functional> <random> <span> <string> <thread> <vector>)
  endif()
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # As for -Wno-restrict (WherryCompiler.cmake): what is compiled beforehand counts as the test's own code.
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
  target_precompile_headers(${target} REUSE_FROM wherry_test_headers)
endfunction()

# Gives a test, tool or benchmark the library, the warnings, and the layers' own headers.
function(wherry_internal target)
  target_link_libraries(${target} PRIVATE wherry wherry_options)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
endfunction()

# Under a sanitizer the code of tests and programs is compiled without optimisation, which takes half the time: nothing is
# measured there. The library and the adapters keep what the preset says.
function(wherry_compiled_quickly target)
  if(WHERRY_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

# Command lines, tables and JSON take longer to optimise than to run: the bytes are moved by the library.
function(wherry_program_compiled_quickly target)
  wherry_compiled_quickly(${target})
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# wherry_c_program(TARGET SOURCE LIBRARY): a program for tests, by a C compiler that takes no extensions, on a library of ours.
function(wherry_c_program target source library)
  add_executable(${target} ${source})
  set_target_properties(${target} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE -Wall -Wextra -pedantic -D_POSIX_C_SOURCE=200809L)
  target_link_libraries(${target} PRIVATE ${library} wherry_options)
  if(WHERRY_SANITIZE)
    # The sanitizers' runtime is the program's, and must serve the C++ of the library too.
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  endif()
endfunction()

# Registers every test of a GoogleTest program with labels and watchdog.
function(wherry_discover target labels timeout)
  wherry_labels(labels "${labels}")
  wherry_timeout(timeout "${timeout}")
  if("concurrent" IN_LIST labels)
    add_dependencies(concurrent_tests ${target})
  endif()
  # gtest_discover_tests takes lists apart, so several labels become one, `slow-concurrent`; `ctest -L` takes a pattern.
  list(JOIN labels "-" labels)
  if(WHERRY_SANITIZE)
    wherry_add_shards(${target} "${labels}" ${timeout})
  else()
    gtest_discover_tests(${target} TEST_PREFIX "${target}." NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60
      PROPERTIES TIMEOUT ${timeout} COST ${timeout} LABELS "${labels}")
  endif()
endfunction()

# A program with a sanitizer takes longer to start than most of its tests to run: a few processes run them all. Each test
# keeps its watchdog (tests/shared_process.cc), which names it; ctest's own is for what happens between tests. Tests of
# put-only fabrics, of inproc-net and of ofi have a process for themselves: the first starts a thread that stays, and in
# what is forked beside another thread ThreadSanitizer finds nothing.
set(WHERRY_SHARDS 4 CACHE STRING "Processes that run the tests of one program under a sanitizer")

function(wherry_add_shards target labels timeout)
  set(served "*put*:*Put*:*_net*:*Net*:*ofi*:*Ofi*")
  math(EXPR last "${WHERRY_SHARDS} - 1")
  foreach(shard RANGE ${last})
    wherry_add_shard(${target}.shard${shard} ${target} "${labels}" ${timeout} WHERRY_TEST_LEAVES_NO_THREAD=1
      "GTEST_FILTER=-${served}" GTEST_TOTAL_SHARDS=${WHERRY_SHARDS} GTEST_SHARD_INDEX=${shard})
  endforeach()
  get_target_property(each_fabric ${target} WHERRY_EACH_FABRIC)
  if(NOT each_fabric)
    set(last 0)
  endif()
  math(EXPR shards "${last} + 1")
  foreach(shard RANGE ${last})
    wherry_add_shard(${target}.put${shard} ${target} "${labels}" ${timeout} "GTEST_FILTER=${served}"
      GTEST_TOTAL_SHARDS=${shards} GTEST_SHARD_INDEX=${shard})
  endforeach()
endfunction()

# wherry_add_shard(NAME TARGET LABELS TIMEOUT name=value...)
function(wherry_add_shard name target labels timeout)
  add_test(NAME ${name} COMMAND ${target} --gtest_brief=1)
  set_tests_properties(${name} PROPERTIES TIMEOUT 1800 LABELS "${labels}" COST ${timeout} ENVIRONMENT
    "${ARGN};WHERRY_TEST_SECONDS=${timeout};GTEST_OUTPUT=json:${PROJECT_BINARY_DIR}/results/${name}.json")
endfunction()

# A test is quick unless it says slow or e2e.
function(wherry_labels out labels)
  if(NOT "slow" IN_LIST labels AND NOT "e2e" IN_LIST labels AND NOT "quick" IN_LIST labels)
    list(PREPEND labels quick)
  endif()
  set(${out} "${labels}" PARENT_SCOPE)
endfunction()

function(wherry_timeout out seconds)
  if(NOT seconds)
    set(seconds 60)
  endif()
  math(EXPR longer "${seconds} * ${WHERRY_TIMEOUT_FACTOR}")
  # A test that hangs must leave CI the time to run the others.
  if(longer GREATER 900)
    set(longer 900)
  endif()
  if(longer GREATER seconds)
    set(seconds ${longer})
  endif()
  set(${out} ${seconds} PARENT_SCOPE)
endfunction()

# wherry_script_test(NAME COMMAND command... [LABELS label...] [TIMEOUT seconds] [ENVIRONMENT name=value...])
#
# A test that is a script: exit status 0 passes, 77 is a skip. It has ports of its own, like every other test.
function(wherry_script_test name)
  if(NOT WHERRY_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "TIMEOUT" "COMMAND;LABELS;ENVIRONMENT" ${ARGN})
  wherry_labels(labels "${arg_LABELS}")
  wherry_timeout(timeout "${arg_TIMEOUT}")
  add_test(NAME ${name} COMMAND ${arg_COMMAND} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  # What may take long begins first, so that at the end no core waits for it.
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} COST ${timeout} LABELS "${labels}" SKIP_RETURN_CODE 77
    ENVIRONMENT "WHERRY_JOB=${name};${arg_ENVIRONMENT}")
endfunction()

# wherry_libfabric_2_test(NAME TARGET FILTER)
#
# Those tests of a GoogleTest program once more, in one process, over the libfabric 2.x that came with an MPI. Skipped if none
# did.
function(wherry_libfabric_2_test name target filter)
  if(NOT TARGET ${target} OR NOT TARGET wherry_ofi_parts OR WHERRY_SANITIZE)
    return()
  endif()
  wherry_timeout(seconds 300)
  wherry_script_test(${name} LABELS slow TIMEOUT 900
    COMMAND ${PROJECT_SOURCE_DIR}/tests/common/with_libfabric_2 $<TARGET_FILE:${target}> --gtest_brief=1
    ENVIRONMENT "GTEST_FILTER=${filter}" WHERRY_TEST_SECONDS=${seconds} GTEST_OUTPUT=json:${PROJECT_BINARY_DIR}/results/${name}.json)
endfunction()

# wherry_tree_test(NAME COMMAND command... [TIMEOUT seconds])
#
# A script test of the source tree or the installation: a sanitizer build has nothing to add to it.
function(wherry_tree_test name)
  if(NOT WHERRY_SANITIZE)
    wherry_script_test(${name} ${ARGN})
  endif()
endfunction()
