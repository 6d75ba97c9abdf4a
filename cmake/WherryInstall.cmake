# SPDX-License-Identifier: Apache-2.0
#
# Installs the library, its headers and the program, and makes them findable: find_package(wherry) and pkg-config.

include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/wherry)

install(TARGETS wherry wherry_c EXPORT wherry-targets)
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(EXPORT wherry-targets NAMESPACE wherry:: DESTINATION ${package_dir})
if(TARGET wherry_program)
  install(TARGETS wherry_program)
endif()

configure_package_config_file(cmake/wherry-config.cmake.in ${PROJECT_BINARY_DIR}/wherry-config.cmake
  INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change an interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/wherry-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/wherry-config.cmake ${PROJECT_BINARY_DIR}/wherry-config-version.cmake
  DESTINATION ${package_dir})

file(RELATIVE_PATH WHERRY_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
foreach(package wherry wherry-c scif)
  configure_file(cmake/${package}.pc.in ${PROJECT_BINARY_DIR}/${package}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

# Programs written for SCIF ask for -lscif.
install(TARGETS scif LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
