// The one model that replicas which train apart stand for between two averages: the mean of their parameters. Only to
// look at; what each trains on stays its own.
#pragma once

#include "braid/comm/communicator.h"
#include "braid/param/param_store.h"

namespace braid::sync {

// While alive, the parameters in `store` are the mean over `replicas`, the same bits on all of them. Afterwards they
// are this rank's own again, bit for bit: nobody writes them meanwhile. The first is collective.
class MeanOfReplicas {
 public:
  // Both outlive this. Parameters are not sharded.
  MeanOfReplicas(param::ParamStore& store, Communicator& replicas);
  ~MeanOfReplicas();
  MeanOfReplicas(const MeanOfReplicas&) = delete;

 private:
  param::ParamStore& store_;
  at::Tensor own_;
};

}  // namespace braid::sync
