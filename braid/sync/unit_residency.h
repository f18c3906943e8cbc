// Decides which units of parameters on disk stay in memory between their uses in a step, where memory.limit_gb leaves
// space for them. The first step is traced, and each unit is read for each of its uses. Then the ranks agree on the
// space, and later steps follow a table of moves (moves/residency.h), if it reads less. No unit stays between steps:
// the update changes them on disk.
//
//   space = 98 % of the limit - peak of everything but parameters, as predicted or in the traced step
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/moves/residency.h"
#include "braid/param/param_store.h"

namespace braid::sync {

// The memory of a rank that reads parameters from disk.
struct ParameterMemory {
  int64_t limit = 0;   // bytes that its account may hold (memory.limit_gb); 0: no limit, and no unit stays
  int64_t beside = 0;  // predicted peak of its account without parameters
};

class UnitResidency {
 public:
  // `shards` outlives this. Its ranks pass the same limit, and use the same blocks in the same order.
  UnitResidency(const param::ParamStore& store, Communicator& shards, const ParameterMemory& memory);

  // Called before each step. Collective. Returns the decision, in words, before the second one.
  std::optional<std::string> decide();
  // Return the moves to make now. REQUIRES: uses are announced between begin_step() and end_step(), or moves are empty.
  moves::Moves begin_step();
  moves::Moves before_use(const std::vector<int>& units);
  moves::Moves after_use(const std::vector<int>& units);
  // Ends a step in which this rank has read `bytes_read` bytes of parameters.
  moves::Moves end_step(int64_t bytes_read);

  // True if the moves say what is read and freed. False in the first step, between steps, as in an evaluation, and in
  // runs in which nothing stays: then units are read for each use.
  bool decides() const { return in_step_ && way_ == Way::Table; }

 private:
  enum class Way { Traced, Table, EachUse };
  bool follow_table(int64_t capacity);

  Communicator& shards_;
  ParameterMemory memory_;
  moves::Residency residency_;
  Way way_;
  bool in_step_ = false;
  int64_t traced_bytes_ = 0;  // read in the traced step
};

}  // namespace braid::sync
