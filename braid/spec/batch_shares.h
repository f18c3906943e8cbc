// The microbatches of a step that each data rank computes, from mesh.batch_shares.
//
// With batch B and microbatch b there are B / b microbatches in a step, numbered in the order of their samples. Each
// data rank computes a contiguous block of them, in proportion to its share:
//
//   8 microbatches, shares equal   0 1 2 3 | 4 5 6 7        shares 3,1   0 1 2 3 4 5 | 6 7
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/spec/run_spec.h"

namespace braid::spec {

// Returns true if mesh.batch_shares is "equal", so there is no list.
bool has_equal_shares(const MeshSpec& mesh);

// Returns the list, one integer of at least 1 for each data rank. Returns nothing if there is no list or it is
// malformed.
std::optional<std::vector<int>> batch_shares(const MeshSpec& mesh);

// Returns the text of `shares` in lowest terms, "3,1"; "equal" if all are equal.
std::string shares_text(const std::vector<int>& shares);

// Returns the number of sequences of which the batch must be a multiple: train.microbatch x mesh.expert x the sum of
// the shares. Without a list each data rank has a share of 1. Returns the largest int64_t if the product overflows.
int64_t batch_unit(const RunSpec& spec);

// Returns the index of the first microbatch of each data rank, followed by the number of all microbatches. REQUIRES:
// `spec` has no problems.
std::vector<int> first_microbatches(const RunSpec& spec);

// Returns the number of microbatches of a data rank in a step.
int num_microbatches(const RunSpec& spec, int data_rank);
// Returns the data rank with the most microbatches, the first if there are several.
int busiest_data_rank(const RunSpec& spec);

}  // namespace braid::spec
