# Most of what a test costs to compile are templates of doctest and the JSON library, the same in each file: eight files at a
# time compile in the time of two. Each gets a namespace of its own, since tests name their helpers alike; what they include
# is included before. `list_name` holds the sources and receives the batches. A file with conditions stays alone.
function(hbmscope_batch_tests list_name)
  set(result)
  set(number 0)
  foreach(source ${${list_name}})
    file(STRINGS ${source} conditions REGEX "^#if")
    get_filename_component(name ${source} NAME_WE)
    if(conditions OR name MATCHES "^(test_main|json_once)$")
      list(APPEND result ${source})
      continue()
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})  # its includes are read here
    math(EXPR batch "${number} / 8")
    math(EXPR number "${number} + 1")
    file(STRINGS ${source} includes REGEX "^#include .*[^f][\">]$")  # no table, which ends in .def
    list(APPEND includes_${batch} ${includes})
    string(APPEND contents_${batch} "namespace in_${name} {\n#include \"${source}\"\n}\n")
  endforeach()
  foreach(last RANGE ${batch})
    list(REMOVE_DUPLICATES includes_${last})
    list(JOIN includes_${last} "\n" includes)
    set(file ${CMAKE_CURRENT_BINARY_DIR}/batch_${last}.cpp)
    file(CONFIGURE OUTPUT ${file} CONTENT "${includes}\n${contents_${last}}" @ONLY)
    list(APPEND result ${file})
  endforeach()
  set(${list_name} ${result} PARENT_SCOPE)
endfunction()
