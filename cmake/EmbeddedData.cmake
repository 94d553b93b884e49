# Puts scenarios/*.json, scenarios/gpu/*.json, docs/lessons/*.md and the style sheet and script of pages of pictures into the
# program (src/scenario/embedded.hpp, src/lesson/embedded_lessons.hpp, src/plot/embedded_page.hpp).
file(GLOB scenario_files CONFIGURE_DEPENDS scenarios/*.json)
file(GLOB gpu_files CONFIGURE_DEPENDS scenarios/gpu/*.json)
file(GLOB lesson_files CONFIGURE_DEPENDS docs/lessons/*.md)
file(GLOB page_files CONFIGURE_DEPENDS src/plot/page/*.css src/plot/page/*.js)
set(embedded_cpp ${CMAKE_CURRENT_BINARY_DIR}/generated/embedded.cpp)
# The lists stand in the command, so that removing a file runs it again too.
add_custom_command(
  OUTPUT ${embedded_cpp}
  COMMAND ${CMAKE_COMMAND} "-DSCENARIOS=${scenario_files}" "-DGPUS=${gpu_files}" "-DLESSONS=${lesson_files}"
          "-DPAGE=${page_files}" -DOUTPUT=${embedded_cpp} -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/EmbedFiles.cmake
  DEPENDS ${scenario_files} ${gpu_files} ${lesson_files} ${page_files} cmake/EmbedFiles.cmake
  COMMENT "Embedding scenarios, GPUs, lessons and the page of pictures"
  VERBATIM)
target_sources(hbmscope_lib PRIVATE ${embedded_cpp})
