// Validation of a run: finds all problems at once. It reads only the structs, not files, devices or the tokenizer's
// data.
#pragma once

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/spec/combine.h"
#include "braid/spec/run_spec.h"

namespace braid::spec {

// The limits of the run's hosts, and the purpose of validation.
struct HostLimits {
  int max_ranks = 64;                // most ranks on one host
  int num_hosts = 1;                 // number of hosts of the run
  int ranks_started = 0;             // ranks that a launcher starts, one command each; 0: commands start their ranks
  Purpose purpose = Purpose::Train;  // Plan: data.paths is not checked

  int64_t all_ranks() const { return int64_t{max_ranks} * num_hosts; }
};
// Returns the limits of hosts that run any number of ranks.
constexpr HostLimits any_hosts(Purpose purpose = Purpose::Train) {
  return {.max_ranks = std::numeric_limits<int>::max(), .purpose = purpose};
}

// Returns a problem for every field that breaks its own rule, then for every broken rule between fields, then for every
// refused combination of features (combine.h), then for every faulty group of parameters (trained.h). The result
// is empty if the run is valid. A problem's `nearest` is a value of its key that repairs the problem and breaks as few
// other rules as possible. Of two equally near values it is the smaller.
std::vector<Problem> problems(const RunSpec& spec, const HostLimits& limits = {});

// Returns true if problems() would find any. It is faster, as it computes no nearest values.
bool has_problems(const RunSpec& spec, const HostLimits& limits);

// Does the same for a spec with keys that could not be read or whose values are still to be chosen. Rules that read a
// key of `unread` are not checked. For a key of `open`, only its own rule is checked, not the rules with other fields.
std::vector<Problem> problems(const RunSpec& spec, const HostLimits& limits, std::set<std::string> unread,
                              const std::set<std::string>& open = {});

// Returns a problem for each refused pair among the features `on`, except pairs that involve a key of `faulty`. The
// problem is reported for the key of the pair's first feature, with the key's value in `spec`. Its nearest value is the
// default, which turns the feature off.
std::vector<Problem> refused_pairs(const std::vector<Feature>& on, const RunSpec& spec,
                                   const std::set<std::string>& faulty = {}, Purpose purpose = Purpose::Train);

}  // namespace braid::spec
