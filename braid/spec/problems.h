// Everything wrong with a run, all at once.
// It judges the structs alone: files, devices and the tokenizer's data are not looked at.
#pragma once

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/spec/combine.h"
#include "braid/spec/run_spec.h"

namespace braid::spec {

// The limits of this machine.
struct HostLimits {
  int max_ranks = 64;                // that may be started on one host
  int num_hosts = 1;                 // of the run
  int ranks_started = 0;             // by a launcher, each a command of its own; 0: commands start their ranks
  Purpose purpose = Purpose::Train;  // what is planned needs no data.paths

  int64_t all_ranks() const { return int64_t{max_ranks} * num_hosts; }
};
// Returns the limits of hosts that run any number of ranks.
constexpr HostLimits any_hosts(Purpose purpose = Purpose::Train) {
  return {.max_ranks = std::numeric_limits<int>::max(), .purpose = purpose};
}

// Every field that breaks its own rule, then every rule between fields that is broken, then every refused combination
// of features (combine.h). Empty: the run is legal. A problem's `nearest` is a value of its key that repairs it and
// breaks as few other rules as can be; of two equally near it is the smaller.
std::vector<Problem> problems(const RunSpec& spec, const HostLimits& limits = {});

// Returns true if there are any. Faster than problems(), as it looks for no nearest values.
bool has_problems(const RunSpec& spec, const HostLimits& limits);

// problems() of a spec of which some keys could not be read: rules that involve a key of `unread` are left out. Of a
// key that is `open`, since its value is still to be chosen, its own rule is judged, and none with other fields.
std::vector<Problem> problems(const RunSpec& spec, const HostLimits& limits, std::set<std::string> unread,
                              const std::set<std::string>& open = {});

// A problem for each refused pair among the features `on`, but for those with a key of `faulty`: at the key of its
// row's first feature, whose value in `spec` is shown and whose nearest value is the default, off. What features a run
// or a program has on, its caller says.
std::vector<Problem> refused_pairs(const std::vector<Feature>& on, const RunSpec& spec,
                                   const std::set<std::string>& faulty = {}, Purpose purpose = Purpose::Train);

}  // namespace braid::spec
