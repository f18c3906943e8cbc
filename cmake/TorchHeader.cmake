# One precompiled header for the components that need LibTorch: 29 s once instead of 4 to 6 s in every unit (docs/libtorch_probe.md).

file(WRITE ${PROJECT_BINARY_DIR}/torch_header.cpp "// Owns the precompiled header of the components that need LibTorch.\n")
add_library(braid_torch_header OBJECT ${PROJECT_BINARY_DIR}/torch_header.cpp)
target_link_libraries(braid_torch_header PUBLIC LibTorch::cpu Threads::Threads)
target_precompile_headers(braid_torch_header PRIVATE
  <ATen/core/Tensor.h> <torch/csrc/autograd/custom_function.h> <functional> <memory> <string> <vector>)

function(braid_use_torch_header target)
  target_precompile_headers(${target} REUSE_FROM braid_torch_header)
endfunction()
