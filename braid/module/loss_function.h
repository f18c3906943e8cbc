// The loss of a microbatch, in any of the forms that users write.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "braid/module/layer_call.h"

namespace torch::nn {
struct CrossEntropyLossImpl;
struct NLLLossImpl;
}  // namespace torch::nn

namespace braid {

struct MicrobatchLoss {
  at::Tensor value;  // one element
  // For a counted loss: the number of items (tokens, labels) whose losses `value` sums.
  double count = 0;
};

// A function of (output, target), two tensors or two lists of tensors. It returns one number for a microbatch: the mean
// or the sum over its rows. If the mean is not over rows but over tokens, or over labels that are not ignored, the
// function returns a pair or tuple (sum, count). Such a loss is counted. `count` is a number or a tensor of one
// element. A CrossEntropyLoss or NLLLoss whose reduction is the mean is counted automatically: ignored labels do not
// count, and labels count by the weights of their classes.
class LossFunction {
 public:
  LossFunction() = default;
  template <class F>
  requires(!std::is_same_v<std::decay_t<F>, LossFunction>) LossFunction(F loss) {
    if constexpr (requires { of(loss.ptr()); }) *this = of(loss.ptr());
    if (call_) return;
    if constexpr (std::is_invocable_v<F&, const at::Tensor&, const at::Tensor&>) {
      counted_ = kCounted<std::invoke_result_t<F&, const at::Tensor&, const at::Tensor&>>;
      call_ = [loss](const Tensors& outputs, const Tensors& targets) mutable {
        return read(loss(one(outputs, "output"), one(targets, "target")));
      };
    } else {
      counted_ = kCounted<std::invoke_result_t<F&, const Tensors&, const Tensors&>>;
      call_ = [loss](const Tensors& outputs, const Tensors& targets) mutable { return read(loss(outputs, targets)); };
    }
  }
  explicit operator bool() const { return call_ != nullptr; }
  bool counted() const { return counted_; }
  MicrobatchLoss operator()(const Tensors& outputs, const Tensors& targets) const { return call_(outputs, targets); }

 private:
  template <class Given>
  static constexpr bool kCounted = requires {
    std::tuple_size<Given>::value;
  };

  // Return an empty function if the module's reduction is not the mean, or if its class is derived from torch's.
  static LossFunction of(const std::shared_ptr<torch::nn::CrossEntropyLossImpl>& module);
  static LossFunction of(const std::shared_ptr<torch::nn::NLLLossImpl>& module);
  // Throws ConfigError unless there is exactly one tensor.
  static const at::Tensor& one(const Tensors& tensors, const char* what);

  static double number(double count) { return count; }
  static double number(const at::Tensor& count) { return count.item<double>(); }
  template <class Given>
  static MicrobatchLoss read(const Given& given) {
    if constexpr (kCounted<Given>) {
      const auto& [sum, count] = given;
      return {sum, number(count)};
    } else {
      return {given};
    }
  }

  std::function<MicrobatchLoss(const Tensors&, const Tensors&)> call_;
  bool counted_ = false;
};

}  // namespace braid
