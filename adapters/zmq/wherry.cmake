# SPDX-License-Identifier: Apache-2.0
#
# The patched CMakeLists.txt of libzmq includes this file, which adds the transport's sources to libzmq's. They stay in
# their folder. scripts/build-zmq sets WHERRY_ZMQ_DIR, WHERRY_INCLUDE_DIR and WHERRY_LIBRARY.
file(GLOB wherry_sources CONFIGURE_DEPENDS ${WHERRY_ZMQ_DIR}/wherry_*.cc)
# Of Wherry's headers these sources use the public ones and base/. libzmq itself is C++11; the last -std= counts.
set_source_files_properties(${wherry_sources} PROPERTIES COMPILE_OPTIONS "-std=c++20;-Wall;-Wextra;-Wno-unused-parameter"
  INCLUDE_DIRECTORIES ${WHERRY_ZMQ_DIR}/../../src)
target_sources(objects PRIVATE ${wherry_sources})
target_include_directories(objects PRIVATE ${WHERRY_ZMQ_DIR} ${WHERRY_INCLUDE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/src)

# For this target only, not for targets that link with it. It exports only libzmq's symbols, as Debian's does. Symbols
# of Wherry, of libzmq's internals or of the C++ library's templates must not meet another copy in the process.
set_property(TARGET libzmq APPEND PROPERTY LINK_LIBRARIES ${WHERRY_LIBRARY})
set_property(TARGET libzmq APPEND PROPERTY LINK_OPTIONS LINKER:--version-script=${WHERRY_ZMQ_DIR}/zmq.map)
set_property(TARGET libzmq APPEND PROPERTY LINK_DEPENDS ${WHERRY_ZMQ_DIR}/zmq.map)

# The program that tests between processes run.
add_executable(traffic ${WHERRY_ZMQ_DIR}/../../tests/zmq/traffic.cc)
set_target_properties(traffic PROPERTIES COMPILE_OPTIONS "-std=c++20;-Wall;-Wextra")
target_link_libraries(traffic libzmq)
