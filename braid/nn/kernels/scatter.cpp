// The scatter of rows into a table. Threads divide the columns, so no two threads write the same element.
#include "braid/nn/kernels/scatter.h"

#include "braid/nn/kernels/baseline_target.h"
#include "braid/nn/kernels/on_device.h"
#include "braid/nn/kernels/parallel_rows.h"
#include "braid/nn/kernels/vector.h"

namespace braid::kernels {
namespace {

using namespace baseline;

constexpr int64_t kPieceColumns = 64;  // columns that are never divided between threads

template <class T>
void add_rows(const at::Tensor& table_vc, const at::Tensor& x_nc, const int64_t* rows) {
  const int64_t n = x_nc.size(0), columns = x_nc.size(1);
  const T* x = x_nc.const_data_ptr<T>();
  MathOf<T>* table = write<MathOf<T>>(table_vc);
  parallel_rows((columns + kPieceColumns - 1) / kPieceColumns, n * kPieceColumns, [&](RowRange pieces) {
    const int64_t first = pieces.begin * kPieceColumns, width = std::min(columns, pieces.end * kPieceColumns) - first;
    for (int64_t k = 0; k < n; ++k) {
      const T* from = x + k * columns + first;
      MathOf<T>* to = table + rows[k] * columns + first;
      for_lanes<T>(
          width, [&](int64_t j, auto extent, int) __attribute__((always_inline)) {
            store(to + j, load(to + j, extent) + load(from + j, extent), extent);
          });
    }
  });
}

}  // namespace

void add_rows_(const at::Tensor& table_vc, const at::Tensor& x_nc, const at::Tensor& rows_n) {
  if (on_device::takes(x_nc)) return on_device::add_rows_(table_vc, x_nc, rows_n);
  if (!x_nc.is_cpu()) {
    table_vc.index_add_(0, rows_n, x_nc.to(table_vc.scalar_type()));
    return;
  }
  check(table_vc.is_contiguous() && table_vc.size(1) == x_nc.size(1), "rows as wide as the table's");
  check(table_vc.scalar_type() == math_type(x_nc), "the table is of the type that is computed with");
  const at::Tensor x = x_nc.contiguous(), rows = rows_n.contiguous();
  with_type(x, [&](auto zero) { add_rows<decltype(zero)>(table_vc, x, read<int64_t>(rows)); });
}

}  // namespace braid::kernels
