// How a kernel on a device is judged: its results against float64 on the CPU, from the same rounded inputs.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace braid::cuda_check {

enum class Sizes { Small, Full };  // Full: also more rows than a grid has blocks, and rows beyond shared memory

struct Setting {
  at::Device device;
  at::ScalarType dtype;
  Sizes sizes = Sizes::Small;

  bool wide() const { return dtype == at::kDouble; }
  at::ScalarType math() const { return wide() ? at::kDouble : at::kFloat; }  // what kernels compute and sum up in
};

// Returns the error of one rounding of a dtype, relative to 1 + |exact|, with a few roundings of the computation before
// it.
double rounding(at::ScalarType dtype);
// Returns the error of a sum over `rows` values.
double sum_rounding(const Setting& setting, int64_t rows);

// How far results were off, in parts of what is allowed: at most 1 where all is well.
class Verdict {
 public:
  // |found - exact| <= allowed x (1 + |exact|), element by element; what is not finite in `exact` must be the same.
  void compare(const std::string& what, const at::Tensor& found, const at::Tensor& exact, double allowed);
  void require(const std::string& what, bool holds);

  double worst() const { return worst_; }
  const std::string& where() const { return where_; }  // of the worst
  int num_compared() const { return num_compared_; }

 private:
  void note(const std::string& what, double ratio);

  double worst_ = 0;
  std::string where_;
  int num_compared_ = 0;
};

// Rows as kernels meet them: their first element on a boundary of 16 bytes, or one element behind it.
enum class Start { Aligned, OneOff };
struct Shape {
  int64_t rows, width;
  Start start = Start::Aligned;
};
std::vector<Shape> shapes(Sizes sizes);
std::string text(const Shape& shape);

// Irregular values in (-size, size): `exact` in float64 on the CPU, `device` the same numbers in the setting's dtype.
struct Input {
  at::Tensor device, exact;
};
struct InputSpec {
  int seed = 0;
  double size = 2;
  Start start = Start::Aligned;
};
Input input(const Setting& setting, at::IntArrayRef shape, const InputSpec& spec);
// `exact`, which the dtype holds exactly, on the device.
at::Tensor placed(const Setting& setting, const at::Tensor& exact, Start start);

struct KernelCheck {
  const char* name;
  void (*run)(const Setting& setting, Verdict& verdict);
};
std::vector<KernelCheck> kernel_checks();

}  // namespace braid::cuda_check
