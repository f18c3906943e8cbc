// Differences between a run and its reference, by step, phase, tensor and rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <compare>
#include <cstdint>
#include <map>

#include "braid/base/word.h"

namespace braid::verify {

// The phases of a step, in their order.
enum class Phase {
  Start,      // the weights that training begins with
  Data,       // tokens, targets, documents and dropout keys of microbatches
  Forward,    // values of ops
  Recompute,  // the same, computed a second time for backward
  Backward,   // gradients of values
  Gradients,  // gradients of parameters, after all of their sums
  Norm,       // the gradient norm
  Update,     // parameters after the update, on the ranks that own them
  Weights,    // the weights that layers compute with after the update
};
constexpr auto words(Phase) {
  return std::to_array<std::string_view>({"initial weights", "data", "forward", "recompute", "backward", "gradients",
                                          "gradient norm", "update", "weights"});
}

struct Place {
  int64_t step = 1;  // counted from 1
  Phase phase = Phase::Start;
  int subject = 0;  // of Subjects
  int rank = 0;     // of the world
  auto operator<=>(const Place&) const = default;
};

struct Difference {
  // A number's absolute difference, infinite if the number is not finite, and its slack (recording.h).
  struct Number {
    double difference = 0, slack = 0;
    double excess() const { return difference - slack; }
  };
  Number largest;       // that with the largest difference
  Number worst;         // that with the largest excess; no number if none exceeds its slack
  double squares = 0;   // the sum of all squared differences; those of copies count
  double scale = 0;     // the largest absolute number of the reference's whole tensor
  double elements = 0;  // the numbers that were compared; copies count
  bool same_bits = true, has_slack = false;

  // Returns a difference relative to the scale.
  double relative(double difference) const { return scale > 0 ? difference / scale : difference; }
};

// Differences at the places where parts of tensors were compared. Used by one thread at a time.
class Differences {
 public:
  // The compared part in the reference: its numbers and their slack, which may be undefined, and the scale of the whole
  // tensor.
  struct Want {
    at::Tensor part, slack;
    double scale = 0;
  };
  void add(const Place& place, const at::Tensor& got, const Want& want);
  void add(const Place& place, double got, double want);
  void add(const Differences& others);

  const std::map<Place, Difference>& all() const { return all_; }
  // Returns the difference at a place; none if nothing was compared there.
  Difference at(const Place& place) const;

 private:
  std::map<Place, Difference> all_;
};

// Returns the largest absolute number of a tensor; 0 if it is empty.
double scale_of(const at::Tensor& tensor);

}  // namespace braid::verify
