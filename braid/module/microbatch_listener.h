// For modules that must know where in the training they are: whose random numbers are a function of the microbatch, or
// whose statistics are those of a whole minibatch. ModulePipeline and DataParallel find them among their modules,
// however deep.
#pragma once

#include <cstdint>

namespace braid {
class Communicator;
}  // namespace braid

namespace braid::modules {

enum class ForwardPurpose {
  Training,
  Evaluation,
  ShapeTrace,  // a first forward that only finds out shapes; the module must be left as it was
};

struct MicrobatchContext {
  ForwardPurpose purpose = ForwardPurpose::Training;
  int64_t step = 0;   // steps before this one
  int64_t micro = 0;  // in the step, over all data ranks
  int64_t place = 0;  // of the module in the model: unlike any other's, and the same wherever the model is cut
};

class MicrobatchListener {
 public:
  virtual ~MicrobatchListener() = default;
  // Before each forward of the module's stage; under DataParallel, where a microbatch is what one backward goes back
  // through, before the first forward that it goes through.
  virtual void begin_microbatch(const MicrobatchContext& context) = 0;
  // After the last microbatch of a training step. `data` are the ranks that hold this module, all of which call it.
  virtual void end_step(Communicator& data) = 0;
};

}  // namespace braid::modules
