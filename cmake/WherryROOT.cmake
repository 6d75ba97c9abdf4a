# SPDX-License-Identifier: Apache-2.0
#
# Finds ROOT: any that find_package finds (ROOT_DIR, or ROOTSYS in the environment), else the wheel from PyPI in the
# environment of scripts/setup, or in that of WHERRY_ROOT_PYTHON. Defines WHERRY_ROOT_FOUND, and WHERRY_ROOT_LIBRARIES:
# the folder of its libraries.

set(WHERRY_ROOT_PYTHON "${PROJECT_SOURCE_DIR}/.venv/bin/python" CACHE FILEPATH
    "Python interpreter whose environment may hold ROOT's wheel")

# The wheel's exported targets name paths below a folder that does not exist, mock_site_packages (ROOT 6.40). A link of
# that name to the wheel's site-packages repairs them all.
function(wherry_repair_root_wheel)
  execute_process(COMMAND ${WHERRY_ROOT_PYTHON} -c
      "import importlib.util as u; s = u.find_spec('ROOT'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE root OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT IS_DIRECTORY "${root}/cmake")
    return()
  endif()
  cmake_path(GET root PARENT_PATH site_packages)
  set(shim "${PROJECT_BINARY_DIR}/root")
  file(MAKE_DIRECTORY "${shim}")
  file(CREATE_LINK "${site_packages}" "${shim}/mock_site_packages" SYMBOLIC)
  set(ROOT_DIR "${shim}/mock_site_packages/ROOT/cmake" CACHE PATH "ROOT's CMake package" FORCE)
endfunction()

set(WHERRY_ROOT_FOUND FALSE)
# ROOT brings a runtime and an interpreter of its own, which the sanitizers of ours do not know.
if(WHERRY_ROOT AND NOT WHERRY_SANITIZE)
  if(NOT ROOT_DIR AND NOT DEFINED ENV{ROOTSYS} AND EXISTS "${WHERRY_ROOT_PYTHON}")
    wherry_repair_root_wheel()
  endif()
  find_package(ROOT QUIET COMPONENTS Core RIO Net Tree Thread)
  set(WHERRY_ROOT_FOUND ${ROOT_FOUND})
endif()
if(WHERRY_ROOT_FOUND)
  # For what is installed, which must not look for them through the link above: the build may be gone.
  get_target_property(WHERRY_ROOT_LIBRARIES ROOT::Core LOCATION)
  cmake_path(GET WHERRY_ROOT_LIBRARIES PARENT_PATH WHERRY_ROOT_LIBRARIES)
  file(REAL_PATH "${WHERRY_ROOT_LIBRARIES}" WHERRY_ROOT_LIBRARIES)
elseif(WHERRY_ROOT)
  message(STATUS "ROOT not found: no ROOT adapter (scripts/setup root installs the wheel)")
endif()
