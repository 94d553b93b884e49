# A file for each row of kernels/flash_v3_candidates.def: flash_v3 compiled for that tile and schedule.
function(hbmscope_candidate_sources result)
  set(table ${PROJECT_SOURCE_DIR}/kernels/flash_v3_candidates.def)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table})
  file(STRINGS ${table} rows REGEX "^HBMSCOPE_CANDIDATE")
  set(sources)
  foreach(row ${rows})
    if(NOT row MATCHES "^HBMSCOPE_CANDIDATE\\(([a-z0-9_]+), ([0-9]+), (.+)\\)$")
      message(FATAL_ERROR "${table}: a row is HBMSCOPE_CANDIDATE(name, head_dim, choice), not \"${row}\"")
    endif()
    set(source ${PROJECT_BINARY_DIR}/candidates/${CMAKE_MATCH_1}.cu)
    file(CONFIGURE OUTPUT ${source} CONTENT "#define HBMSCOPE_CANDIDATE kCandidate_${CMAKE_MATCH_1}
#define HBMSCOPE_CANDIDATE_NAME \"${CMAKE_MATCH_1}\"
#define HBMSCOPE_CANDIDATE_TILE FlashV3Tile<${CMAKE_MATCH_2}, FlashV3Choice{${CMAKE_MATCH_3}}>
#include \"kernels/flash_v3.cu\"
")
    list(APPEND sources ${source})
  endforeach()
  set(${result} ${sources} PARENT_SCOPE)
endfunction()
