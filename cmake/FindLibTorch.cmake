# Finds LibTorch without the wheel's own TorchConfig.cmake, which on a CUDA wheel asks for a CUDA toolkit and links
# every CUDA library. Looks in -DTorch_ROOT=DIR first, then where a parent's find_package(Torch) has found one, then in
# CMAKE_PREFIX_PATH, then in the folders LibTorch_otherwise.
#
#   LibTorch::cpu    headers, libtorch_cpu, libc10
#   LibTorch_CUDA_LIBRARIES   libtorch_cuda and libc10_cuda, empty for a CPU-only LibTorch
#   LibTorch_VERSION

if(NOT Torch_ROOT AND DEFINED ENV{BRAID_TORCH_ROOT})
  set(Torch_ROOT $ENV{BRAID_TORCH_ROOT})
endif()
if(Torch_ROOT)
  set(libtorch_candidates ${Torch_ROOT} ${Torch_ROOT}/torch)
elseif(TORCH_INSTALL_PREFIX)
  set(libtorch_candidates ${TORCH_INSTALL_PREFIX})
elseif(Torch_DIR)  # DIR/share/cmake/Torch
  get_filename_component(libtorch_candidates ${Torch_DIR}/../../.. ABSOLUTE)
else()
  set(libtorch_candidates ${CMAKE_PREFIX_PATH} ${LibTorch_otherwise})
endif()

find_path(LibTorch_DIR_FOUND NAMES include/ATen/core/Tensor.h PATHS ${libtorch_candidates} NO_DEFAULT_PATH NO_CACHE)
string(REGEX REPLACE "/+$" "" LibTorch_DIR_FOUND "${LibTorch_DIR_FOUND}")
find_library(LibTorch_CPU_LIBRARY torch_cpu PATHS ${libtorch_candidates} PATH_SUFFIXES lib NO_DEFAULT_PATH NO_CACHE)
find_library(LibTorch_C10_LIBRARY c10 PATHS ${libtorch_candidates} PATH_SUFFIXES lib NO_DEFAULT_PATH NO_CACHE)
find_library(LibTorch_CUDA_LIBRARY torch_cuda PATHS ${libtorch_candidates} PATH_SUFFIXES lib NO_DEFAULT_PATH NO_CACHE)
find_library(LibTorch_C10_CUDA_LIBRARY c10_cuda PATHS ${libtorch_candidates} PATH_SUFFIXES lib NO_DEFAULT_PATH NO_CACHE)

if(LibTorch_DIR_FOUND AND EXISTS ${LibTorch_DIR_FOUND}/include/torch/headeronly/version.h)
  file(STRINGS ${LibTorch_DIR_FOUND}/include/torch/headeronly/version.h version_lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9]*([0-9]+)[^0-9]+([0-9]+)[^0-9]+([0-9]+).*" "\\1.\\2.\\3" LibTorch_VERSION "${version_lines}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY LibTorch_DIR_FOUND
  VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "name a LibTorch with -DTorch_ROOT=DIR, or to build braid run scripts/setup, or leave LibTorch out with -DBRAID_TORCH=OFF")

if(LibTorch_FOUND AND NOT TARGET LibTorch::cpu)
  add_library(LibTorch::c10 SHARED IMPORTED)
  set_target_properties(LibTorch::c10 PROPERTIES IMPORTED_LOCATION ${LibTorch_C10_LIBRARY})
  add_library(LibTorch::cpu SHARED IMPORTED)
  set_target_properties(LibTorch::cpu PROPERTIES IMPORTED_LOCATION ${LibTorch_CPU_LIBRARY})
  target_include_directories(LibTorch::cpu SYSTEM INTERFACE
    ${LibTorch_DIR_FOUND}/include ${LibTorch_DIR_FOUND}/include/torch/csrc/api/include)
  target_link_libraries(LibTorch::cpu INTERFACE LibTorch::c10)
  # at::parallel_for is header code that runs serially unless it is compiled with OpenMP. The runtime must be the one
  # libtorch_cpu.so itself uses, or there would be two pools of threads: the wheel's own where it carries one.
  target_compile_options(LibTorch::cpu INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fopenmp>)
  file(GLOB libtorch_openmp ${LibTorch_DIR_FOUND}/lib/libgomp*.so*)
  if(libtorch_openmp)
    list(GET libtorch_openmp 0 libtorch_openmp)
    target_link_libraries(LibTorch::cpu INTERFACE ${libtorch_openmp})
  else()
    target_link_options(LibTorch::cpu INTERFACE -fopenmp)
  endif()
  # libtorch_cpu.so of a CUDA wheel names CUDA libraries that its own RPATH finds at run time.
  target_link_options(LibTorch::cpu INTERFACE -Wl,--allow-shlib-undefined)
  if(LibTorch_CUDA_LIBRARY AND LibTorch_C10_CUDA_LIBRARY)
    set(LibTorch_CUDA_LIBRARIES ${LibTorch_CUDA_LIBRARY} ${LibTorch_C10_CUDA_LIBRARY})
  endif()
endif()
