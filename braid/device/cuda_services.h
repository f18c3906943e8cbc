// The table of this component: streams, memory and graphs of devices, as libbraid_cuda.so has them from LibTorch. All
// functions may throw what LibTorch throws.
#pragma once

#include "braid/device/cuda_tables.h"

namespace braid::device {

// Memory of LibTorch's caching allocator on one device.
struct CudaMemory {
  int64_t bytes = 0;       // in tensors
  int64_t peak_bytes = 0;  // since reset_peak
};

// Facts about one device; zeros where the driver has none.
struct CudaDeviceFacts {
  char name[256] = "";
  int major = 0, minor = 0;     // compute capability
  int processors = 0;           // streaming multiprocessors
  int64_t bytes = 0;            // of memory
  int driver = 0, runtime = 0;  // newest CUDA the driver knows, and the one in use: 13000 is 13.0
};

struct CudaServices {
  static constexpr const char* kRoom = "device";
  CudaTable header;

  const char* (*problem)();  // why no device can be used; empty text when one can
  void (*facts)(int device, CudaDeviceFacts* out);
  // Gives the calling thread a stream of its own on `device` for all further work, its backward passes included: the
  // default stream cannot be captured.
  void (*take_stream)(int device);
  void* (*stream)(int device);  // the calling thread's cudaStream_t
  void (*memory)(int device, CudaMemory* out);
  void (*reset_peak)(int device);

  // Between begin and end, what the calling thread puts on its stream is recorded, not run. Graphs that are replayed
  // one after the other may share the memory they work in: `share` is another graph, or null.
  void* (*make_graph)();
  void (*begin_capture)(void* graph, void* share);
  void (*end_capture)(void* graph);
  void (*abandon_capture)(void* graph);  // after the recorded work threw
  void (*replay)(void* graph);           // returns before it has run
  void (*free_graph)(void* graph);
};

// The calling thread's stream. load_cuda() has been called.
void* cuda_stream(int device);
// Throws RunError when a launch was refused: `why` is not null.
void require_launched(const char* why);

}  // namespace braid::device
