# Finds the C++ Actor Framework where no CMake package ships with it (Debian's libcaf-dev).
# Defines CAF_FOUND, CAF_VERSION and one imported target a requested component: CAF::core, CAF::io, ...
find_path(CAF_INCLUDE_DIR caf/all.hpp)
mark_as_advanced(CAF_INCLUDE_DIR)

if(CAF_INCLUDE_DIR AND EXISTS "${CAF_INCLUDE_DIR}/caf/config.hpp")
  # CAF_VERSION is 10000 * major + 100 * minor + patch.
  file(STRINGS "${CAF_INCLUDE_DIR}/caf/config.hpp" _caf_line REGEX "^#define CAF_VERSION [0-9]+")
  string(REGEX REPLACE "^#define CAF_VERSION ([0-9]+).*" "\\1" _caf_number "${_caf_line}")
  math(EXPR _caf_major "${_caf_number} / 10000")
  math(EXPR _caf_minor "(${_caf_number} / 100) % 100")
  math(EXPR _caf_patch "${_caf_number} % 100")
  set(CAF_VERSION "${_caf_major}.${_caf_minor}.${_caf_patch}")
endif()

foreach(_component IN LISTS CAF_FIND_COMPONENTS)
  find_library(CAF_LIBRARY_${_component} caf_${_component})
  mark_as_advanced(CAF_LIBRARY_${_component})
  if(CAF_LIBRARY_${_component})
    set(CAF_${_component}_FOUND TRUE)
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CAF REQUIRED_VARS CAF_INCLUDE_DIR VERSION_VAR CAF_VERSION
                                  HANDLE_COMPONENTS)

if(CAF_FOUND)
  foreach(_component IN LISTS CAF_FIND_COMPONENTS)
    if(NOT TARGET CAF::${_component})
      add_library(CAF::${_component} UNKNOWN IMPORTED)
      set_target_properties(CAF::${_component} PROPERTIES
        IMPORTED_LOCATION "${CAF_LIBRARY_${_component}}"
        INTERFACE_INCLUDE_DIRECTORIES "${CAF_INCLUDE_DIR}")
      if(NOT _component STREQUAL "core")
        target_link_libraries(CAF::${_component} INTERFACE CAF::core)
      endif()
    endif()
  endforeach()
endif()
