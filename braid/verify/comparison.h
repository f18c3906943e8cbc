// Compares one rank of a run with a recording while the rank computes.
#pragma once

#include <map>
#include <set>
#include <utility>

#include "braid/nn/block.h"
#include "braid/param/param_store.h"
#include "braid/train/held_tensors.h"
#include "braid/train/step_report.h"
#include "braid/verify/recording.h"
#include "braid/verify/value_places.h"

namespace braid::verify {

// The gradients of parameters at the end of a step. Parts: a worker's own gradients, or those of the step's last
// update. Neither these nor their norm are compared.
enum class ParamGradients { Final, Parts };

class Comparison final : public nn::ValueObserver {
 public:
  struct Options {
    int rank = 0;  // of the world
    // The seed of backward relative to that of the recording. Workers of a parameter server minimise the mean loss of
    // their own microbatches, so that it is the number of workers.
    double seed = 1;
    ParamGradients gradients = ParamGradients::Final;
  };
  // All references outlive this.
  Comparison(const ValuePlaces& places, const Subjects& subjects, const Recording& want, const Options& options)
      : places_(places), subjects_(subjects), want_(want), options_(options) {}

  // Called before the first step and after each.
  void begin(const param::ParamStore& params);
  void end_step(const param::ParamStore& params, const train::StepReport& report);

  void made(const nn::MadeValue& place, const nn::Microbatch& microbatch, at::Tensor& value) override;

  const Differences& differences() const { return differences_; }

 private:
  void compare_params(const param::ParamStore& params, train::Held what, Phase phase, const RecordedTensors& want);
  void compare_inputs(int64_t step, const nn::Microbatch& microbatch);
  void compare(const Place& at, const PlacedValue& got, const RecordedTensor& want);
  const RecordedTensor* input(uint64_t microbatch, int subject) const;  // null: the serial run had none
  at::Tensor rows_of(uint64_t microbatch) const;                        // of its picked tokens; undefined: all
  const RecordedTensor* recorded(const nn::MadeValue& place, uint64_t microbatch, Phase phase) const;

  const ValuePlaces& places_;
  const Subjects& subjects_;
  const Recording& want_;
  const Options options_;
  int64_t steps_ = 0;
  std::set<std::pair<uint64_t, int>> begun_;            // microbatches, and the blocks that they have reached
  std::map<std::pair<uint64_t, int>, int> num_passes_;  // by microbatch and subject
  Differences differences_;
};

}  // namespace braid::verify
