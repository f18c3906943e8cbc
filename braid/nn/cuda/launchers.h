// The functions of this folder's .cu files, listed by table.cpp. Contracts: braid/nn/kernels/cuda_table.h.
#pragma once

#include "braid/nn/kernels/cuda_table.h"

namespace braid::kernels::cuda {

template <class T>
const char* norm_forward(const NormForwardRows<T>& call, int64_t rows, void* stream);
template <class T>
const char* norm_backward(const NormBackwardRows<T>& call, const PartSums<MathOf<T>>& sums, void* stream);
template <class T>
const char* gelu_forward(const GeluForwardRows<T>& call, int64_t rows, void* stream);
template <class T>
const char* gelu_backward(const GeluBackwardRows<T>& call, const PartSums<MathOf<T>>& sums, void* stream);
template <class T>
const char* swiglu_forward(const GateForwardRows<T>& call, int64_t rows, void* stream);
template <class T>
const char* swiglu_backward(const GateBackwardRows<T>& call, int64_t rows, void* stream);
template <class T>
const char* rotary(const RotaryRows<T>& call, int64_t rows, void* stream);
template <class T>
const char* row_sum(const RowMatrix<T>& call, const PartSums<MathOf<T>>& sums, void* stream);
template <class T>
const char* softmax_sums(const SoftmaxSumRows<T>& call, int64_t rows, void* stream);
template <class T>
const char* softmax_gradient(const TeamSoftmaxGradient<T>& call, int64_t rows, void* stream);
template <class T>
const char* add_rows(const SortedRows<T>& call, void* stream);

// The second half of every sum: `width` sums over parts.
template <class M>
const char* add_parts(const PartSums<M>& sums, int64_t width, void* stream);

const char* keep_mask(const KeepMask& call, void* stream);
const char* product(const WeightProduct& call);

}  // namespace braid::kernels::cuda
