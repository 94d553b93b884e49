# Finds nvcc and decides whether the .cu files are built. Sets HBMSCOPE_CUDA_SOURCES, empty when this build has no CUDA.
set(HBMSCOPE_CUDA_SOURCES)
if(NOT HBMSCOPE_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "HBMSCOPE_CUDA is \"${HBMSCOPE_CUDA}\"; it takes AUTO, ON or OFF.")
endif()

if(NOT HBMSCOPE_CUDA STREQUAL OFF)
  find_program(HBMSCOPE_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin PATHS /usr/local/cuda/bin /opt/cuda/bin)
  if(HBMSCOPE_NVCC)
    execute_process(COMMAND ${HBMSCOPE_NVCC} --version OUTPUT_VARIABLE nvcc_says)
    string(REGEX MATCH "release ([0-9]+\\.[0-9]+)" unused "${nvcc_says}")
    set(cuda_version ${CMAKE_MATCH_1})
    message(STATUS "CUDA found: ${cuda_version}")
    # Both have to be known before the language is enabled, or CMake picks them itself. PTX of compute_90 is for GPUs
    # that are newer than this list.
    set(CMAKE_CUDA_COMPILER ${HBMSCOPE_NVCC})
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80-real 89-real 90a-real 90-virtual)
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    file(GLOB HBMSCOPE_CUDA_SOURCES CONFIGURE_DEPENDS kernels/*.cu kernels/pipelines.cpp)
    # The Range Profiler came with CUDA 12.6; on some toolkits CUPTI lies in a folder of its own. AddressSanitizer ends a
    # program that loads it.
    find_path(HBMSCOPE_CUPTI_INCLUDE cupti_range_profiler.h
              HINTS ${CUDAToolkit_INCLUDE_DIRS} ${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/include NO_DEFAULT_PATH)
    find_library(HBMSCOPE_CUPTI_LIBRARY cupti
                 HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib
                       ${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/lib64 NO_DEFAULT_PATH)
    set(HBMSCOPE_DEVICE_SOURCES device_cuda.cpp probes_cuda.cpp nvtx_ranges.cpp clocks_nvml.cpp)
    if(HBMSCOPE_CUPTI_INCLUDE AND HBMSCOPE_CUPTI_LIBRARY AND NOT HBMSCOPE_SANITIZE)
      set(HBMSCOPE_CUPTI ON)
      list(APPEND HBMSCOPE_DEVICE_SOURCES hw_counters_cupti.cpp)
    endif()
  elseif(HBMSCOPE_CUDA STREQUAL ON)
    message(FATAL_ERROR "HBMSCOPE_CUDA is ON and nvcc was not found: not in PATH, CUDA_HOME, CUDA_PATH or /usr/local/cuda.\n"
                        "Name it with -DHBMSCOPE_NVCC=/path/to/nvcc, or build without CUDA: -DHBMSCOPE_CUDA=OFF")
  else()
    message(STATUS "CUDA not found: building without device support")
  endif()
endif()

# Which files of src/device answer is decided here, so that no caller needs a preprocessor switch. Takes those that are
# built as part of hbmscope_device out of the list.
function(hbmscope_choose_device list_name)
  set(chosen ${${list_name}})
  list(FILTER chosen EXCLUDE REGEX "src/device/(device_cuda|probes_cuda|nvtx_ranges|clocks_nvml|hw_counters_cupti)[.]cpp$")
  if(HBMSCOPE_CUDA_SOURCES)
    list(FILTER chosen EXCLUDE REGEX "src/device/device_none[.]cpp$")
  endif()
  if(HBMSCOPE_CUPTI)
    list(FILTER chosen EXCLUDE REGEX "src/device/hw_counters_none[.]cpp$")
  endif()
  set(${list_name} ${chosen} PARENT_SCOPE)
endfunction()

# All that needs the toolkit, as one target of its own: `ninja hbmscope_device` tells whether it compiles.
function(hbmscope_add_cuda target)
  if(NOT HBMSCOPE_CUDA_SOURCES)
    return()
  endif()
  list(TRANSFORM HBMSCOPE_DEVICE_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/src/device/)
  add_library(hbmscope_device OBJECT ${HBMSCOPE_CUDA_SOURCES} ${HBMSCOPE_DEVICE_SOURCES})
  target_compile_features(hbmscope_device PRIVATE cxx_std_20)
  target_include_directories(hbmscope_device PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_link_libraries(hbmscope_device PUBLIC CUDA::cudart_static PRIVATE hbmscope_warnings)
  # CMake up to 3.25 ignores CUDA_STANDARD 20 without a word.
  target_compile_options(hbmscope_device PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>)
  if(HBMSCOPE_WERROR)
    target_compile_options(hbmscope_device PRIVATE
                           "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xcompiler=-Wall,-Wextra;-Xptxas=-v>")
  endif()
  if(HBMSCOPE_CUPTI)
    get_filename_component(cupti_dir "${HBMSCOPE_CUPTI_LIBRARY}" DIRECTORY)
    target_include_directories(hbmscope_device SYSTEM PRIVATE ${HBMSCOPE_CUPTI_INCLUDE})
    target_compile_definitions(hbmscope_device PRIVATE HBMSCOPE_HAVE_CUPTI "HBMSCOPE_CUPTI_DIR=\"${cupti_dir}\"")
    target_compile_definitions(${target} PUBLIC HBMSCOPE_HAVE_CUPTI)
  endif()
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:hbmscope_device>)
  target_link_libraries(${target} PUBLIC CUDA::cudart_static ${CMAKE_DL_LIBS})
endfunction()

# The kernels as a library with a C interface, for reports/peers.py; built when asked for by name.
function(hbmscope_add_bridge)
  if(NOT HBMSCOPE_CUDA_SOURCES)
    return()
  endif()
  file(GLOB model_sources CONFIGURE_DEPENDS src/core/*.cpp src/model/*.cpp src/model/algorithms/*.cpp)
  add_library(hbmscope_bridge SHARED EXCLUDE_FROM_ALL reports/bridge.cpp kernels/arguments.cpp ${HBMSCOPE_CUDA_SOURCES}
                                                      ${model_sources})
  target_compile_features(hbmscope_bridge PRIVATE cxx_std_20)
  target_include_directories(hbmscope_bridge PRIVATE src ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_options(hbmscope_bridge PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>)
  target_link_libraries(hbmscope_bridge PRIVATE CUDA::cudart_static fmt::fmt Threads::Threads ${CMAKE_DL_LIBS})
endfunction()
