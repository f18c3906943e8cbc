// The sets of kernels that use registers of 64 bytes. Standard headers come before the pragma, because their functions
// must not be compiled for a processor that the machine may not have.
#if defined(__x86_64__)
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "braid/nn/kernels/capped_rows.h"
#include "braid/nn/kernels/cross_entropy_rows.h"
#include "braid/nn/kernels/generation_rows.h"
#include "braid/nn/kernels/processor.h"
#include "braid/nn/kernels/rows.h"
#include "braid/nn/kernels/tile_sums.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl")
#define BRAID_PROCESSOR Processor::Avx512
#define BRAID_ROWS avx512
#define BRAID_ROWS_REGISTER 64
#include "braid/nn/kernels/kernel_sets.h"
#endif
