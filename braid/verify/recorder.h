// Records a serial run.
#pragma once

#include "braid/nn/block.h"
#include "braid/param/param_store.h"
#include "braid/train/step_report.h"
#include "braid/verify/recording.h"
#include "braid/verify/value_places.h"

namespace braid::verify {

// Records the values of the only rank of a run.
class Recorder final : public nn::ValueObserver {
 public:
  // Both outlive this.
  Recorder(const ValuePlaces& places, const Subjects& subjects, Recording& recording)
      : places_(places), subjects_(subjects), recording_(recording) {}

  // Called before the first step and after each.
  void begin(const param::ParamStore& params);
  void end_step(const param::ParamStore& params, const train::StepReport& report);

  void made(const nn::MadeValue& place, const nn::Microbatch& microbatch, at::Tensor& value) override;

 private:
  void record(const ValuePlace& at, const PlacedValue& value);
  void record_inputs(const nn::Microbatch& microbatch);

  const ValuePlaces& places_;
  const Subjects& subjects_;
  Recording& recording_;
};

}  // namespace braid::verify
