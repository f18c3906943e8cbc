# libbraid_cuda.so: the CUDA sources of every component (braid/*/cuda/*.cu and *.cpp), compiled and linked where nvcc and a CUDA LibTorch
# exist, GPU or not. A library of its own, because libtorch_cuda.so needs libraries that a CPU machine lacks and the
# braid binary must load without them.
#
# Included once, after the components: enabling a language works only outside of functions.

if(BRAID_CUDA STREQUAL "OFF")
  return()
endif()
file(GLOB cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/braid/*/cuda/*.cu ${PROJECT_SOURCE_DIR}/braid/*/cuda/*.cpp)
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER OR NOT LibTorch_CUDA_LIBRARIES)
  if(BRAID_CUDA STREQUAL "ON")
    message(FATAL_ERROR "BRAID_CUDA=ON needs nvcc on PATH and a LibTorch with libtorch_cuda.so")
  endif()
  message(STATUS "CUDA sources: left out (no nvcc, or a LibTorch without CUDA)")
  return()
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90)  # 90 also as PTX, for newer devices
endif()
enable_language(CUDA)
# CMake 3.25 does not know that this nvcc speaks C++20.
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
find_package(CUDAToolkit REQUIRED)
add_library(braid_cuda SHARED ${cuda_sources})
set_target_properties(braid_cuda PROPERTIES POSITION_INDEPENDENT_CODE ON CUDA_RUNTIME_LIBRARY Shared
  CUDA_COMPILER_LAUNCHER "${BRAID_CCACHE}" CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
target_include_directories(braid_cuda PRIVATE ${PROJECT_SOURCE_DIR})
target_include_directories(braid_cuda SYSTEM PRIVATE ${LibTorch_DIR_FOUND}/include
  ${LibTorch_DIR_FOUND}/include/torch/csrc/api/include ${CUDAToolkit_INCLUDE_DIRS})
# It names neither libtorch_cuda.so nor cuBLAS: whoever opens it has opened them (braid/device/cuda_tables.h). Bound
# lazily, so that a test can look at its tables on a machine without them.
target_link_options(braid_cuda PRIVATE -Wl,-z,lazy)
message(STATUS "CUDA sources: libbraid_cuda.so for architectures ${CMAKE_CUDA_ARCHITECTURES}")
