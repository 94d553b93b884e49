# cmake -DGIT=git -DSOURCE_DIR=. -DVERSION=0.1.0 -DOUTPUT=version.cpp -P WriteRevision.cmake
function(git result)
  execute_process(COMMAND ${GIT} --no-optional-locks ${ARGN} WORKING_DIRECTORY ${SOURCE_DIR}
                  RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT code EQUAL 0)
    set(output "failed")
  endif()
  set(${result} "${output}" PARENT_SCOPE)
endfunction()

set(REVISION unknown)
if(GIT)
  # Not empty where the sources lie inside somebody else's repository.
  git(path_to_top rev-parse --show-cdup)
  if(path_to_top STREQUAL "")
    git(revision rev-parse --short=12 --verify HEAD)
    if(NOT revision STREQUAL failed)
      set(REVISION ${revision})
      # What the program is made of; a result file left in the tree does not make it another program.
      git(changes status --porcelain -- CMakeLists.txt cmake kernels scenarios src)
      if(NOT changes STREQUAL "")
        string(APPEND REVISION -dirty)
      endif()
    endif()
  endif()
endif()
configure_file(${SOURCE_DIR}/src/core/version.cpp.in ${OUTPUT} @ONLY)
