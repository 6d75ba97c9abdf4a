# SPDX-License-Identifier: Apache-2.0
#
# What `make install` puts where: the libraries, the headers, what makes them findable (find_package(wherry), pkg-config),
# the program and its papers. Target `installed` builds exactly this. The adapter for ROOT is a component of its own,
# `root`, built by target root_adapter: it is installed only where it is asked for (make root).

include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/wherry)

install(TARGETS wherry wherry_shared wherry_c wherry_c_static scif EXPORT wherry-targets)
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(EXPORT wherry-targets NAMESPACE wherry:: DESTINATION ${package_dir})
set_target_properties(wherry PROPERTIES EXPORT_NAME wherry_static)
install(TARGETS wherry_program)
add_custom_target(installed DEPENDS wherry wherry_shared wherry_c wherry_c_static scif wherry_program)

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

# The same folders as in the checkout, so that the papers' links hold.
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} USE_SOURCE_PERMISSIONS
  PATTERN CMakeLists.txt EXCLUDE PATTERN "__pycache__" EXCLUDE)
