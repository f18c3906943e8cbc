// Calls of BLAS, whose matrices are column-major: row-major c = a b is column-major c^T = b^T a^T.
#include "braid/nn/kernels/tile_product.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/from_blob.h>

// Weak, because not every LibTorch exports them.
extern "C" {
void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*, const float*, const int*,
            const float*, const int*, const float*, float*, const int*) __attribute__((weak));
void dgemm_(const char*, const char*, const int*, const int*, const int*, const double*, const double*, const int*,
            const double*, const int*, const double*, double*, const int*) __attribute__((weak));
}

namespace braid::kernels {
namespace {

template <class M, class Gemm>
void multiply_with(Gemm* gemm, const TileProduct<M>& p) {
  if (!gemm) return multiply_by_library(p);
  const auto word = [](TileForm form) { return form == TileForm::Plain ? 'N' : 'T'; };
  const char form_a = word(p.form_a), form_b = word(p.form_b);
  const int m = static_cast<int>(p.columns), n = static_cast<int>(p.rows), k = static_cast<int>(p.inner);
  const int lda = static_cast<int>(p.a.stride), ldb = static_cast<int>(p.b.stride), ldc = static_cast<int>(p.c.stride);
  gemm(&form_b, &form_a, &m, &n, &k, &p.alpha, p.b.data, &ldb, p.a.data, &lda, &p.beta, p.c.data, &ldc);
}

template <class M>
at::Tensor matrix(const Tile<M>& tile, TileForm form, int64_t rows, int64_t columns) {
  void* const data = const_cast<void*>(static_cast<const void*>(tile.data));  // from_blob() takes no constant memory
  const auto type = c10::CppTypeToScalarType<std::remove_const_t<M>>::value;
  const bool plain = form == TileForm::Plain;
  return at::from_blob(data, {rows, columns}, {plain ? tile.stride : 1, plain ? 1 : tile.stride}, at::dtype(type));
}

}  // namespace

template <class M>
void multiply_by_library(const TileProduct<M>& p) {
  at::Tensor c = matrix(p.c, TileForm::Plain, p.rows, p.columns);
  at::addmm_out(c, c, matrix(p.a, p.form_a, p.rows, p.inner), matrix(p.b, p.form_b, p.inner, p.columns), p.beta,
                p.alpha);
}
template void multiply_by_library(const TileProduct<float>&);
template void multiply_by_library(const TileProduct<double>&);

void multiply(const TileProduct<float>& product) { multiply_with(&sgemm_, product); }
void multiply(const TileProduct<double>& product) { multiply_with(&dgemm_, product); }

}  // namespace braid::kernels
