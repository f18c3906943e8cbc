# libbraid_cuda.so: the CUDA sources of every room (braid/*/cuda/*.cu), compiled and linked where nvcc and a CUDA LibTorch
# exist, GPU or not. A library of its own, because libtorch_cuda.so needs libraries that a CPU machine lacks and the
# braid binary must load without them.
#
# Included once, after the rooms: enabling a language works only outside of functions.

if(BRAID_CUDA STREQUAL "OFF")
  return()
endif()
file(GLOB cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/braid/*/cuda/*.cu)
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER OR NOT LibTorch_CUDA_LIBRARIES OR NOT cuda_sources)
  if(BRAID_CUDA STREQUAL "ON")
    message(FATAL_ERROR "BRAID_CUDA=ON needs nvcc on PATH and a LibTorch with libtorch_cuda.so")
  endif()
  message(STATUS "CUDA sources: left out (no nvcc, or a LibTorch without CUDA)")
  return()
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80 90)
endif()
enable_language(CUDA)
add_library(braid_cuda SHARED ${cuda_sources})
# CMake 3.25 does not know that nvcc speaks C++20 and refuses the standard it would inherit; the flag is given by hand.
set_target_properties(braid_cuda PROPERTIES CXX_STANDARD 17 POSITION_INDEPENDENT_CODE ON CUDA_COMPILER_LAUNCHER "${BRAID_CCACHE}")
target_compile_options(braid_cuda PRIVATE -std=c++20)
target_include_directories(braid_cuda PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(braid_cuda PRIVATE ${LibTorch_CUDA_LIBRARIES})
target_link_options(braid_cuda PRIVATE -Wl,--allow-shlib-undefined)
message(STATUS "CUDA sources: libbraid_cuda.so for architectures ${CMAKE_CUDA_ARCHITECTURES}")
