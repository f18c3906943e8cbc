// Turns the gradients that a rank computes into those that its optimizer reads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "braid/param/param_store.h"

namespace braid::sync {

// The replicas whose microbatches contribute to a step's gradients.
enum class GradientsOf { AllReplicas, OwnReplica };

// The order of calls is replication.h's. Whatever communicates throws CommError.
class GradientSync {
 public:
  virtual ~GradientSync() = default;
  // `step` steps have been done.
  virtual void begin_step(int64_t step) {}
  // The parameter's gradients are complete on this rank. Replicas may say so in different orders.
  virtual void ready(const param::Parameter& param) {}
  // Every parameter of the stage has been ready: whatever has not been launched is launched.
  virtual void flush() {}
  // Blocks until the gradients that this rank's optimizer reads are final: summed over the replicas, tied uses added.
  virtual void finish() = 0;
  // Returns this for the current step.
  virtual GradientsOf gradients() const { return GradientsOf::AllReplicas; }
  // Returns the bytes that this rank's collectives have sent since construction, gradients and all else, as the ring
  // algorithm counts them.
  virtual int64_t bytes_sent() const = 0;
  // The part of it that left the node, where the mesh has nodes.
  virtual int64_t bytes_across_nodes() const { return 0; }

  // Told, on every rank, what was chosen from measurements and why. May be empty.
  std::function<void(const std::string& choice)> on_choice;
};

}  // namespace braid::sync
