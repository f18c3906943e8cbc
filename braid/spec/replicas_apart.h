// Detects replicas that train independently between synchronizations, from several keys. Several components use it.
#pragma once

#include "braid/spec/run_spec.h"

namespace braid::spec {

// A replica's steps wait for no other replica's, and servers see pushes in any order: a step's numbers are the
// replica's own.
inline bool replicas_run_apart(const RunSpec& spec) {
  return spec.sync.replication == ReplicationKind::ParameterServer && spec.sync.consistency != Consistency::Bsp;
}

}  // namespace braid::spec
