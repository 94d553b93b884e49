# Compiler, build type, warnings, sanitizers, and the few files that may use vector instructions.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 11)
  message(FATAL_ERROR "hbmscope needs g++ 11 or newer (C++20); ${CMAKE_CXX_COMPILER} is ${CMAKE_CXX_COMPILER_VERSION}.\n"
                      "Install a newer one and name it: cmake -DCMAKE_CXX_COMPILER=g++-12 ...")
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

get_property(is_multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(NOT is_multi_config AND NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
endif()

find_program(HBMSCOPE_CCACHE ccache)
if(HBMSCOPE_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${HBMSCOPE_CCACHE})
endif()

set(is_gnu_like $<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU,Clang,AppleClang>>)

add_library(hbmscope_warnings INTERFACE)
target_compile_options(hbmscope_warnings INTERFACE
  "$<${is_gnu_like}:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wsign-conversion>"
  "$<$<AND:${is_gnu_like},$<BOOL:${HBMSCOPE_WERROR}>>:-Werror>"
  # g++ 12 warns of overlapping copies inside its own std::string operator+ (its bug 105651).
  "$<$<AND:${is_gnu_like},$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>"
  # A product and a sum are rounded apart unless a fused operation is asked for by name, so that results do not depend on the target.
  "$<${is_gnu_like}:-ffp-contract=off>")

if(HBMSCOPE_SANITIZE)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined;-fno-sanitize-recover=all;-fno-omit-frame-pointer>")
  add_link_options(-fsanitize=address,undefined)
endif()

# Marks *_avx2.cpp and *_avx512.cpp among the given sources. The program itself stays plain x86-64 and picks them at run time;
# elsewhere these files see neither __AVX2__ nor __AVX512F__ and have to compile to nothing.
function(hbmscope_vector_sources)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$" OR NOT CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
    return()
  endif()
  set(avx2_flags -mavx2 -mfma -mf16c)
  set(avx512_flags ${avx2_flags} -mavx512f -mavx512bw -mavx512dq -mavx512vl)
  foreach(isa avx2 avx512)
    set(files ${ARGN})
    list(FILTER files INCLUDE REGEX "/simulate/numerics/[^/]*_${isa}\\.cpp$")
    if(files)
      set_source_files_properties(${files} PROPERTIES COMPILE_OPTIONS "${${isa}_flags}")
    endif()
  endforeach()
endfunction()

# For targets in which a run spends no time and a build most of its own: those that hold CLI11, nlohmann_json, fmt and doctest
# templates. Reading these headers takes longer than all else, so the presets of ./dev test read them once
# (HBMSCOPE_PCH); optimising them under sanitizers would take three times as long as all the rest.
option(HBMSCOPE_PCH "Precompile the libraries' headers (the presets cpu and asan do)" OFF)
function(hbmscope_cold_target target optimisation)
  if(CMAKE_BUILD_TYPE MATCHES "^Rel" AND CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
    if(HBMSCOPE_SANITIZE)
      set(optimisation -O0 -fno-sanitize=null,vptr,alignment)
    elseif(HBMSCOPE_PCH)
      set(optimisation -O0)
    endif()
    target_compile_options(${target} PRIVATE ${optimisation})
  endif()
  if(HBMSCOPE_PCH)
    target_precompile_headers(${target} PRIVATE ${ARGN} <algorithm> <fstream> <functional> <map> <memory> <optional>
                              <sstream> <string> <vector>)
  endif()
endfunction()
