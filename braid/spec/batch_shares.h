// The microbatches of a step that each data rank has, from mesh.batch_shares.
//
// With batch B and microbatch b there are B / b microbatches in a step, numbered in the order of their samples. Each
// data rank has a contiguous block of them, in proportion to its share:
//
//   8 microbatches, shares equal   0 1 2 3 | 4 5 6 7        shares 3,1   0 1 2 3 4 5 | 6 7
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/spec/run_spec.h"

namespace braid::spec {

// Returns true if data ranks have equal parts of the batch without a list.
bool has_equal_shares(const MeshSpec& mesh);

// The list, one whole number from 1 for each data rank. Nothing where it is another, or none.
std::optional<std::vector<int>> batch_shares(const MeshSpec& mesh);

// Such a list in lowest terms; the word for equal shares where they are.
std::string shares_text(const std::vector<int>& shares);

// The sequences that make one microbatch for each unit of a share: train.microbatch x mesh.expert x the sum of the
// shares, which are 1 for each data rank where there is no list. A batch is a multiple of it.
// The largest int64_t if the product exceeds it.
int64_t batch_unit(const RunSpec& spec);

// The number of the first microbatch of each data rank, then the number of all microbatches. `spec` has no problems().
std::vector<int> first_microbatches(const RunSpec& spec);

// In a step.
int num_microbatches(const RunSpec& spec, int data_rank);
// The first data rank that has as many microbatches as any.
int busiest_data_rank(const RunSpec& spec);

}  // namespace braid::spec
