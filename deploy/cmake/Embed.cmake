# bulkhead_embed(TARGET NAME FILE...): compiles the files' bytes into TARGET. The generated header
# <embedded/NAME.hpp> offers bulkhead::embedded::NAME(), a table of file name and content.
function(bulkhead_embed target name)
  set(header "${CMAKE_BINARY_DIR}/generated/embedded/${name}.hpp")
  set(source "${CMAKE_BINARY_DIR}/generated/embedded/${name}.cpp")
  add_custom_command(
    OUTPUT "${header}" "${source}"
    COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/deploy/cmake/embed.py"
            "${name}" "${header}" "${source}" ${ARGN}
    DEPENDS "${PROJECT_SOURCE_DIR}/deploy/cmake/embed.py" ${ARGN}
    VERBATIM)
  target_sources(${target} PRIVATE "${source}" "${header}")
  target_include_directories(${target} PUBLIC "${CMAKE_BINARY_DIR}/generated")
endfunction()
