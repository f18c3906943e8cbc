// The table of device's functions in libbraid_cuda.so: streams, memory and graphs of devices, as LibTorch provides
// them. All functions may throw LibTorch's errors.
#pragma once

#include "braid/device/cuda_tables.h"

namespace braid::device {

// Memory of LibTorch's caching allocator on one device.
struct CudaMemory {
  int64_t bytes = 0;       // bytes in tensors
  int64_t peak_bytes = 0;  // peak of `bytes` since reset_peak()
};

// Facts about one device. Fields that the driver does not report are zero or empty.
struct CudaDeviceFacts {
  char name[256] = "";
  int major = 0, minor = 0;     // compute capability
  int processors = 0;           // streaming multiprocessors
  int64_t bytes = 0;            // bytes of device memory
  int driver = 0, runtime = 0;  // newest CUDA version of the driver, and the version in use: 13000 is 13.0
};

struct CudaServices {
  static constexpr const char* kRoom = "device";
  CudaTable header;

  const char* (*problem)();  // the reason why no device can be used; empty text if one can
  void (*facts)(int device, CudaDeviceFacts* out);
  // Gives the calling thread a stream of its own on `device` for all further work, including its backward passes. The
  // default stream cannot be captured.
  void (*take_stream)(int device);
  void* (*stream)(int device);  // returns the calling thread's cudaStream_t
  void (*memory)(int device, CudaMemory* out);
  void (*reset_peak)(int device);

  // Between begin_capture() and end_capture(), work that the calling thread enqueues on its stream is recorded, not
  // run. Graphs that are replayed one after another may share their working memory: `share` is another graph, or null.
  void* (*make_graph)();
  void (*begin_capture)(void* graph, void* share);
  void (*end_capture)(void* graph);
  void (*abandon_capture)(void* graph);  // called if the recorded work threw
  void (*replay)(void* graph);           // returns before the graph has run
  void (*free_graph)(void* graph);
};

// Returns the calling thread's stream. REQUIRES: load_cuda() has been called.
void* cuda_stream(int device);
// Throws RunError with the text `why` if a launch failed, that is, if `why` is not null.
void require_launched(const char* why);

}  // namespace braid::device
