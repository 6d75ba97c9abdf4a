# SPDX-License-Identifier: Apache-2.0
#
# What `make install` puts where: the libraries, the headers, what makes them findable (find_package(wherry), pkg-config),
# the program and its papers. Target `installed` builds exactly this. The adapter for ROOT is a component of its own,
# `root`, built by target root_adapter: it is installed only where it is asked for (make root).

include(CMakePackageConfigHelpers)

# Readable by everybody, whatever the modes of the checkout are; scripts/install does the same for the umask.
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/wherry)

set(libraries wherry wherry_shared wherry_c wherry_c_static)
if(TARGET scif)
  list(APPEND libraries scif)
endif()
install(TARGETS ${libraries} EXPORT wherry-targets)
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(EXPORT wherry-targets NAMESPACE wherry:: DESTINATION ${package_dir})
set_target_properties(wherry PROPERTIES EXPORT_NAME wherry_static)
add_custom_target(installed DEPENDS ${libraries})
if(TARGET wherry_program)
  add_dependencies(installed wherry_program)
  install(TARGETS wherry_program)
endif()
if(TARGET wherry-preload)
  add_dependencies(installed wherry-preload wherry-direct)
  install(TARGETS wherry-preload wherry-direct LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/wherry/files)
endif()
if(TARGET wherry_mount)
  add_dependencies(installed wherry_mount)
  install(TARGETS wherry_mount RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/wherry/mount)
endif()
if(TARGET wherry-zmq-forward)
  add_dependencies(installed wherry-zmq-forward)
  install(TARGETS wherry-zmq-forward LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/wherry/zmq-forward)
endif()
if(TARGET wherry-ofi)
  add_dependencies(installed wherry-ofi)
  install(TARGETS wherry-ofi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/wherry/ofi)
endif()
if(TARGET wherry-topology)
  add_dependencies(installed wherry-topology)
  install(TARGETS wherry-topology LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/wherry/mpi)
endif()

if(TARGET wherry-fi)
  add_dependencies(installed wherry-fi)
  install(TARGETS wherry-fi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/wherry/mpi)
endif()

configure_package_config_file(cmake/wherry-config.cmake.in ${PROJECT_BINARY_DIR}/wherry-config.cmake
  INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change an interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/wherry-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/wherry-config.cmake ${PROJECT_BINARY_DIR}/wherry-config-version.cmake
  DESTINATION ${package_dir})

file(RELATIVE_PATH WHERRY_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
set(packages wherry wherry-c)
if(TARGET scif)
  list(APPEND packages scif)
endif()
foreach(package IN LISTS packages)
  configure_file(cmake/${package}.pc.in ${PROJECT_BINARY_DIR}/${package}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

# The same folders as in the checkout, so that links between the pages hold. docs/design and docs/words.md describe the
# sources, which are not installed.
install(FILES CHANGELOG.md LICENSE README.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md"
  PATTERN design EXCLUDE PATTERN site EXCLUDE PATTERN words.md EXCLUDE)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
  PATTERN CMakeLists.txt EXCLUDE PATTERN run EXCLUDE PATTERN "__pycache__" EXCLUDE)
install(PROGRAMS examples/run DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(PROGRAMS examples/scif/run DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples/scif)

# wherry_manual(TARGET NAME OWNER [install option...])
#
# The man pages and shell completions that program NAME, built by TARGET, prints of itself, as part of target OWNER. A
# program that cannot run here has none, and a sanitizer's build is not for use.
function(wherry_manual target name owner)
  if(CMAKE_CROSSCOMPILING OR WHERRY_SANITIZE OR NOT WHERRY_MANUAL)
    return()
  endif()
  set(folder ${PROJECT_BINARY_DIR}/share/${name})
  add_custom_command(OUTPUT ${folder}/stamp
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${folder}
    COMMAND ${target} --generate ${folder}
    COMMAND ${CMAKE_COMMAND} -E touch ${folder}/stamp
    DEPENDS ${target} COMMENT "Printing the man pages of ${name}" VERBATIM)
  add_custom_target(manual_${name} ALL DEPENDS ${folder}/stamp)
  add_dependencies(${owner} manual_${name})
  install(DIRECTORY ${folder}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} ${ARGN})
  install(DIRECTORY ${folder}/bash/ DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions ${ARGN})
  install(DIRECTORY ${folder}/zsh/ DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions ${ARGN})
  install(DIRECTORY ${folder}/fish/ DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d ${ARGN})
endfunction()

# The man pages of the C API, which wherry_api_manual makes of its headers.
function(wherry_api_man_pages)
  if(CMAKE_CROSSCOMPILING OR WHERRY_SANITIZE OR NOT WHERRY_MANUAL)
    return()
  endif()
  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/wherry/*.h)
  set(folder ${PROJECT_BINARY_DIR}/share/api)
  add_custom_command(OUTPUT ${folder}/stamp
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${folder}
    COMMAND wherry_api_manual ${folder} ${headers}
    COMMAND ${CMAKE_COMMAND} -E touch ${folder}/stamp
    DEPENDS wherry_api_manual ${headers} COMMENT "Making the man pages of the C API" VERBATIM)
  add_custom_target(manual_api ALL DEPENDS ${folder}/stamp)
  add_dependencies(installed manual_api)
  install(DIRECTORY ${folder}/man3 DESTINATION ${CMAKE_INSTALL_MANDIR})
endfunction()

if(TARGET wherry_api_manual)
  wherry_api_man_pages()
endif()
if(TARGET wherry_program)
  wherry_manual(wherry_program wherry installed)
endif()
if(WHERRY_BENCH)
  wherry_manual(wherry_bench wherry-bench bench_installed COMPONENT bench EXCLUDE_FROM_ALL)
endif()
if(TARGET wherry_merge)
  wherry_manual(wherry_merge wherry-merge root_adapter COMPONENT root EXCLUDE_FROM_ALL)
endif()
