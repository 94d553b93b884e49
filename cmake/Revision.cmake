# Version and git revision (src/core/version.hpp). The revision is looked up at every build, by WriteRevision.cmake; one small
# file is compiled again when it changes.
set(version_cpp ${CMAKE_CURRENT_BINARY_DIR}/generated/version.cpp)
find_program(HBMSCOPE_GIT git)
add_custom_target(hbmscope_revision
  COMMAND ${CMAKE_COMMAND} -DGIT=${HBMSCOPE_GIT} -DSOURCE_DIR=${CMAKE_CURRENT_SOURCE_DIR} -DVERSION=${PROJECT_VERSION}
          -DOUTPUT=${version_cpp} -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/WriteRevision.cmake
  BYPRODUCTS ${version_cpp}
  COMMENT "Looking up the git revision"
  VERBATIM)
foreach(target hbmscope_lib hbmscope_bridge)
  if(TARGET ${target})
    target_sources(${target} PRIVATE ${version_cpp})
    add_dependencies(${target} hbmscope_revision)
  endif()
endforeach()
