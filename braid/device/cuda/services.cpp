// The device's streams, memory and graphs, through LibTorch's own functions, so that its kernels and braid's share
// them.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <cstdio>

#include "braid/device/cuda_services.h"

namespace braid::device {

const CudaTable* device_cuda_table();
const char* code_problem();  // code.cu

namespace {

using c10::cuda::CUDACachingAllocator::getDeviceStats;

const char* problem() {
  int count = 0;
  const cudaError_t failed = cudaGetDeviceCount(&count);
  if (failed != cudaSuccess) return cudaGetErrorString(failed);
  return count == 0 ? "the driver knows of none" : code_problem();
}

void facts(int device, CudaDeviceFacts* out) {
  cudaDeviceProp properties{};
  *out = {};
  if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) return;
  std::snprintf(out->name, sizeof out->name, "%s", properties.name);
  out->major = properties.major;
  out->minor = properties.minor;
  out->processors = properties.multiProcessorCount;
  out->bytes = static_cast<int64_t>(properties.totalGlobalMem);
  cudaDriverGetVersion(&out->driver);
  cudaRuntimeGetVersion(&out->runtime);
}

void take_stream(int device) {
  const auto index = static_cast<c10::DeviceIndex>(device);
  c10::cuda::set_device(index);
  c10::cuda::setCurrentCUDAStream(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index));
}

void* stream(int device) { return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device)).stream(); }

void memory(int device, CudaMemory* out) {
  const auto stats = getDeviceStats(static_cast<c10::DeviceIndex>(device));
  const auto& bytes = stats.allocated_bytes[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
  *out = {bytes.current, bytes.peak};
}

void reset_peak(int device) { c10::cuda::CUDACachingAllocator::resetPeakStats(static_cast<c10::DeviceIndex>(device)); }

// A graph and the pool of its memory. The pool's id is chosen before the capture, because LibTorch's graph returns its
// own pool's id only after a successful capture.
struct Recording {
  at::cuda::CUDAGraph graph;
  at::cuda::MempoolId_t pool = {0, 0};
};

Recording& recording_of(void* graph) { return *static_cast<Recording*>(graph); }

void* make_graph() { return new Recording(); }

// Captures in thread-local mode, so that CUDA calls of other threads, such as writing a checkpoint from pinned memory,
// do not invalidate the capture. The backward pass runs on LibTorch's own thread, but it is recorded too, because its
// work goes to the captured stream.
void begin_capture(void* graph, void* share) {
  Recording& recording = recording_of(graph);
  recording.pool = share ? recording_of(share).pool : at::cuda::graph_pool_handle();
  recording.graph.capture_begin(recording.pool, cudaStreamCaptureModeThreadLocal);
}

// Calls `end`, then `release`. If one throws, the failed capture had already got past that step, and LibTorch's graph
// releases the memory itself.
template <class End, class Release>
void leave_pool(const End& end, const Release& release) {
  try {
    end();
    release();
  } catch (const std::exception&) {
  }
}

// Ends the capture. If that fails, the stream runs normally again, but both allocators still allocate from the graph's
// pool. So the function makes them leave the pool, and rethrows.
void end_capture(void* graph) {
  Recording& recording = recording_of(graph);
  try {
    recording.graph.capture_end();
  } catch (const std::exception&) {
    (void)cudaGetLastError();
    const c10::DeviceIndex device = c10::cuda::current_device();
    at::HostAllocator& host = *at::getHostAllocator(at::kCUDA);
    leave_pool([&] { c10::cuda::CUDACachingAllocator::endAllocateToPool(device, recording.pool); },
               [&] { c10::cuda::CUDACachingAllocator::releasePool(device, recording.pool); });
    leave_pool([&] { host.end_allocate_to_pool(recording.pool); }, [&] { host.release_pool(recording.pool); });
    throw;
  }
}

void abandon_capture(void* graph) {
  try {
    end_capture(graph);
  } catch (const std::exception&) {  // the recorded work has failed already, so this error adds nothing
  }
}

void replay(void* graph) { recording_of(graph).graph.replay(); }
void free_graph(void* graph) { delete &recording_of(graph); }

const CudaServices kServices{{kCudaTableVersion, sizeof(CudaServices)},
                             problem,
                             facts,
                             take_stream,
                             stream,
                             memory,
                             reset_peak,
                             make_graph,
                             begin_capture,
                             end_capture,
                             abandon_capture,
                             replay,
                             free_graph};

}  // namespace

const CudaTable* device_cuda_table() { return &kServices.header; }

}  // namespace braid::device
