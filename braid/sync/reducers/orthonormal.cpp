// Plain loops with sums in double: the order of operations is fixed, unlike a library's.
#include "braid/sync/reducers/orthonormal.h"

#include <cmath>
#include <limits>

#include "braid/sync/reducers/elements.h"

namespace braid::sync {
namespace {

template <class T>
class Columns {
 public:
  Columns(T* at, int64_t rows, int64_t columns) : at_(at), rows_(rows), columns_(columns) {}

  void make_orthonormal() const {
    constexpr double kRounding = 16 * static_cast<double>(std::numeric_limits<T>::epsilon());
    for (int64_t k = 0; k < columns_; ++k) {
      const double before = std::sqrt(dot(k, k));
      for (int pass = 0; pass < 2; ++pass) {
        for (int64_t j = 0; j < k; ++j) take_off(k, j, dot(k, j));
      }
      const double left = std::sqrt(dot(k, k));
      scale(k, left > kRounding * before || std::isnan(left) ? 1 / left : 0);
    }
  }

 private:
  T& at(int64_t row, int64_t column) const { return at_[row * columns_ + column]; }
  double dot(int64_t a, int64_t b) const {
    double sum = 0;
    for (int64_t i = 0; i < rows_; ++i) sum += static_cast<double>(at(i, a)) * static_cast<double>(at(i, b));
    return sum;
  }
  void take_off(int64_t from, int64_t what, double factor) const {
    for (int64_t i = 0; i < rows_; ++i) at(i, from) -= static_cast<T>(factor * static_cast<double>(at(i, what)));
  }
  void scale(int64_t column, double factor) const {
    for (int64_t i = 0; i < rows_; ++i) {
      at(i, column) = factor == 0 ? T{0} : static_cast<T>(factor * static_cast<double>(at(i, column)));
    }
  }

  T* const at_;
  const int64_t rows_, columns_;
};

}  // namespace

void make_orthonormal(const at::Tensor& columns) {
  with_elements(columns, [&](auto* at) { Columns(at, columns.size(0), columns.size(1)).make_orthonormal(); });
}

}  // namespace braid::sync
