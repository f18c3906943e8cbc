// Streams, memory and graphs by LibTorch's own means, so that its kernels and ours share them.
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include "braid/device/cuda_services.h"

namespace braid {

const CudaTable* device_cuda_table();

namespace {

using c10::cuda::CUDACachingAllocator::getDeviceStats;

const char* problem() {
  int count = 0;
  const cudaError_t failed = cudaGetDeviceCount(&count);
  if (failed != cudaSuccess) return cudaGetErrorString(failed);
  return count == 0 ? "the driver knows of none" : "";
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

at::cuda::CUDAGraph& graph_of(void* graph) { return *static_cast<at::cuda::CUDAGraph*>(graph); }

void* make_graph() { return new at::cuda::CUDAGraph(); }

// Thread-local mode: what other threads do, such as writing a checkpoint from pinned memory, does not end the capture.
// The backward pass, on LibTorch's own thread, is recorded all the same: it works on the captured stream.
void begin_capture(void* graph, void* share) {
  const at::cuda::MempoolId_t pool = share ? graph_of(share).pool() : at::cuda::MempoolId_t{0, 0};
  graph_of(graph).capture_begin(pool, cudaStreamCaptureModeThreadLocal);
}

void end_capture(void* graph) { graph_of(graph).capture_end(); }

// The recording is invalid, so ending it fails too; afterwards the stream runs again, and the allocator must hear that
// memory comes from everywhere.
void abandon_capture(void* graph) {
  const auto pool = graph_of(graph).pool();
  try {
    graph_of(graph).capture_end();
  } catch (const std::exception&) {
    (void)cudaGetLastError();
    try {
      c10::cuda::CUDACachingAllocator::endAllocateToPool(c10::cuda::current_device(), pool);
    } catch (const std::exception&) {  // it had heard already
    }
  }
}

void replay(void* graph) { graph_of(graph).replay(); }
void free_graph(void* graph) { delete &graph_of(graph); }

const CudaServices kServices{{kCudaTableVersion, sizeof(CudaServices)},
                             problem,
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

}  // namespace braid
