// Marks functions that are compiled for the processor and, where nvcc compiles, for devices too.
#pragma once

#ifdef __CUDACC__
#define BRAID_HOST_DEVICE __host__ __device__
#else
#define BRAID_HOST_DEVICE
#endif
