# Puts scenarios/*.json, scenarios/gpu/*.json and docs/lessons/*.md into the program (src/scenario/embedded.hpp,
# src/lesson/embedded_lessons.hpp).
file(GLOB scenario_files CONFIGURE_DEPENDS scenarios/*.json)
file(GLOB gpu_files CONFIGURE_DEPENDS scenarios/gpu/*.json)
file(GLOB lesson_files CONFIGURE_DEPENDS docs/lessons/*.md)
set(embedded_cpp ${CMAKE_CURRENT_BINARY_DIR}/generated/embedded.cpp)
# The lists stand in the command, so that removing a file runs it again too.
add_custom_command(
  OUTPUT ${embedded_cpp}
  COMMAND ${CMAKE_COMMAND} "-DSCENARIOS=${scenario_files}" "-DGPUS=${gpu_files}" "-DLESSONS=${lesson_files}"
          -DOUTPUT=${embedded_cpp} -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/EmbedFiles.cmake
  DEPENDS ${scenario_files} ${gpu_files} ${lesson_files} cmake/EmbedFiles.cmake
  COMMENT "Embedding scenarios, GPUs and lessons"
  VERBATIM)
target_sources(hbmscope_lib PRIVATE ${embedded_cpp})
