# Plants one slip at a time in a copy of src/model, and demands that the test of walk() against closed_form() fails of it.
# A minute or more, and so no part of a plain ctest:
#   cmake --build build/cpu --target mutants       or       ctest --test-dir build/cpu -C slow -L slow --output-on-failure
# Called with -DSOURCE_DIR= -DWORK_DIR= -DCXX= -DGENERATOR= -DDOCTEST_INCLUDE=
set(tree ${WORK_DIR}/tree)
file(REMOVE_RECURSE ${WORK_DIR})
file(COPY ${SOURCE_DIR}/src/core ${SOURCE_DIR}/src/model DESTINATION ${tree}/src)
file(COPY ${SOURCE_DIR}/src/simulate/traffic_counter.cpp ${SOURCE_DIR}/src/simulate/traffic_counter.hpp
     DESTINATION ${tree}/src/simulate)
file(COPY ${SOURCE_DIR}/tests/test_walk_equals_closed_form.cpp ${SOURCE_DIR}/tests/random_shapes.hpp
          ${SOURCE_DIR}/tests/test_main.cpp DESTINATION ${tree}/tests)

cmake_host_system_information(RESULT jobs QUERY NUMBER_OF_LOGICAL_CORES)

function(must_work what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${what}:\n${said}")
  endif()
endfunction()

# 0 if walk and closed form agree, 1 if the test says that they do not; anything else proves nothing.
function(run_test result)
  must_work("does not compile" ${CMAKE_COMMAND} --build ${WORK_DIR}/build --parallel ${jobs})
  execute_process(COMMAND ${WORK_DIR}/build/walk_equals_closed_form --no-colors=true
                          "--test-case=walk and closed form agree*"
                  RESULT_VARIABLE code OUTPUT_VARIABLE said ERROR_VARIABLE said TIMEOUT 300)
  if(NOT said MATCHES "test cases: +1 ")
    message(FATAL_ERROR "the test did not run to its end (${code}):\n${said}")
  endif()
  set(${result} ${code} PARENT_SCOPE)
endfunction()

# Replaces `from`, which stands in the file exactly once, by `to`.
function(mutant file from to)
  set(path ${tree}/src/model/${file})
  file(READ ${path} sound)
  string(FIND "${sound}" "${from}" first)
  string(FIND "${sound}" "${from}" last REVERSE)
  if(first EQUAL -1 OR NOT first EQUAL last)
    message(FATAL_ERROR "src/model/${file} does not hold \"${from}\" exactly once: choose another slip to plant")
  endif()
  string(REPLACE "${from}" "${to}" slipped "${sound}")
  file(WRITE ${path} "${slipped}")
  run_test(code)
  file(WRITE ${path} "${sound}")
  if(code EQUAL 1)
    message(STATUS "caught    ${file}: ${from}  ->  ${to}")
  else()
    message(STATUS "SURVIVES  ${file}: ${from}  ->  ${to}")
    set_property(GLOBAL APPEND PROPERTY survivors "${file}")
  endif()
endfunction()

must_work("cannot be configured" ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK_DIR}/build -G ${GENERATOR}
          -DCMAKE_CXX_COMPILER=${CXX} -DTREE=${tree} -DDOCTEST_INCLUDE=${DOCTEST_INCLUDE})
run_test(code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "the test fails without any slip: mend that first")
endif()

# In the walk: the mask's own predicate, the cutting into tiles, and each loop nest.
mutant(mask.hpp "most >= -*window_left" "most > -*window_left")
mutant(mask.hpp "least <= *window_right" "least < *window_right")
mutant(algorithms/loops.hpp "length_ % block_ > 0" "length_ % block_ > 1")
mutant(algorithms/loops.hpp "std::min(c.last, keys - 1)" "std::min(c.last, keys)")
mutant(algorithms/flash_v1.cpp "first_visit = !meets(q, c.index - 1)" "first_visit = !meets(q, c.index - 2)")
mutant(algorithms/flash_v2.cpp "std::min(c.last, valid - 1) - c.first + 1" "std::min(c.last, valid - 1) - c.first")
mutant(algorithms/split_kv.cpp "tiles_per_split, keys.count())" "tiles_per_split, keys.count() - 1)")
mutant(algorithms/naive.cpp "read < reads" "read <= reads")
mutant(algorithms/flash_v2_bwd.cpp "g < s.group_size()" "g <= s.group_size()")

# In the algebra: the band's edges, the tiles between them, and what is multiplied with them.
mutant(algorithms/closed_form.cpp "% b.value() != 0 ? 1 : 0" "% b.value() != 0 ? 1 : 1")
mutant(algorithms/closed_form.cpp "std::min(keys - 1, r1" "std::min(keys, r1")
mutant(algorithms/closed_form.cpp "+ offset - left)" "+ offset - left + 1)")
mutant(algorithms/closed_form.cpp "std::min(r0 + block_q, rows) - 1" "std::min(r0 + block_q, rows)")
mutant(algorithms/closed_form.cpp "visited = jhi - jlo + 1" "visited = jhi - jlo")
mutant(algorithms/closed_form.cpp "std::min(keys, (jhi + 1) * block_kv)" "std::min(keys, jhi * block_kv)")
mutant(algorithms/closed_form.cpp "jlo / tiles_per_split + 1)" "jlo / tiles_per_split)")
mutant(algorithms/closed_form.cpp "(rows + block_q - 1) / block_q" "(rows + block_q) / block_q")
mutant(algorithms/closed_form.cpp "query_tiles * keys" "query_tiles * key_tiles * block_kv")
mutant(algorithms/flash_v2.cpp "plan.block_q * cluster, plan" "plan.block_q * (cluster - 1), plan")

get_property(survivors GLOBAL PROPERTY survivors)
if(survivors)
  message(FATAL_ERROR "a slip that no test notices: ${survivors}")
endif()
