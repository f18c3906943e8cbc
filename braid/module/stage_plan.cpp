// Cuts the layers into stages and checks the conditions. It reads no values of tensors.
#include "braid/module/stage_plan.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "braid/base/text.h"
#include "braid/module/layer_facts.h"

namespace braid::modules {
namespace {

// The layers that stash and pop a tensor; -1: none.
struct SkipSpan {
  std::string name;
  int stashed = -1, popped = -1;
};

std::string key_of(const Layer& layer) { return cat("layers.", layer.name); }

class SkipReader {
 public:
  SkipReader(const LayerList& layers, std::vector<Problem>& problems) : layers_(layers), problems_(problems) {
    for (int index = 0; index < layers.size(); ++index) read(index);
    for (const SkipSpan& skip : skips_) {
      if (skip.popped < 0) complain(skip.stashed, "stash", skip.name, "is never popped");
    }
  }
  std::vector<SkipSpan> skips() && { return std::move(skips_); }

 private:
  void read(int index) {
    for (const auto& name : layers_[index].options.pop) {
      SkipSpan* skip = find(name);
      if (!skip) {
        complain(index, "pop", name,
                 stashed_later(name, index) ? "is popped before it is stashed" : "is never stashed");
      } else if (skip->popped >= 0) {
        complain(index, "pop", name, cat("is popped already, by layer ", layers_[skip->popped].name));
      } else {
        skip->popped = index;
      }
    }
    for (const auto& name : layers_[index].options.stash) {
      if (const SkipSpan* skip = find(name)) {
        complain(index, "stash", name, cat("is stashed already, by layer ", layers_[skip->stashed].name));
      } else {
        skips_.push_back({name, index});
      }
    }
  }
  SkipSpan* find(const std::string& name) {
    const auto found = std::find_if(skips_.begin(), skips_.end(), [&](const auto& skip) { return skip.name == name; });
    return found == skips_.end() ? nullptr : &*found;
  }
  bool stashed_later(const std::string& name, int index) const {
    for (; index < layers_.size(); ++index) {
      const auto& stashed = layers_[index].options.stash;
      if (std::find(stashed.begin(), stashed.end(), name) != stashed.end()) return true;
    }
    return false;
  }
  void complain(int index, const char* what, const std::string& name, std::string rule) {
    problems_.push_back({cat(key_of(layers_[index]), ".", what), name, std::move(rule), ""});
  }

  const LayerList& layers_;
  std::vector<Problem>& problems_;
  std::vector<SkipSpan> skips_;
};

std::vector<std::string> carried_over(const std::vector<SkipSpan>& skips, int border) {
  std::vector<std::string> names;
  for (const SkipSpan& skip : skips) {
    if (skip.stashed < border && skip.popped >= border) names.push_back(skip.name);
  }
  return names;
}

std::string listed(const std::vector<int>& numbers) {
  std::vector<std::string> words;
  for (const int number : numbers) words.push_back(std::to_string(number));
  return joined(words);
}

std::vector<int> even_balance(int num_layers, int num_stages) {
  std::vector<int> balance(num_stages, num_layers / num_stages);
  for (int stage = 0; stage < num_layers % num_stages; ++stage) ++balance[stage];
  return balance;
}

void check_balance(const std::vector<int>& balance, int num_layers, int num_stages, std::vector<Problem>& problems) {
  const std::string even = num_layers >= num_stages ? listed(even_balance(num_layers, num_stages)) : "";
  const auto complain = [&](std::string rule) {
    problems.push_back({"balance", listed(balance), std::move(rule), even});
  };
  if (static_cast<int>(balance.size()) != num_stages) {
    complain(cat("must have one number per stage of the schedule (", num_stages, ")"));
  }
  if (std::any_of(balance.begin(), balance.end(), [](int layers) { return layers < 1; })) {
    complain("must give every stage a layer");
  }
  if (const int sum = std::accumulate(balance.begin(), balance.end(), 0); sum != num_layers) {
    complain(cat("must add up to the number of layers (", num_layers, "), not ", sum));
  }
}

// The first rank and layer that have the module, the parameter or the parameter's values at an address.
struct Owner {
  int rank;
  std::string layer;
};
using Owners = std::map<const void*, Owner>;

void check_shared(const Layer& layer, int rank, Owners& owners, std::vector<Problem>& problems) {
  const auto check_one = [&](const void* address, const char* what) {
    const Owner& owner = owners.try_emplace(address, Owner{rank, layer.name}).first->second;
    if (owner.rank == rank) return false;
    const std::string rule = cat("shares a ", what, " with layer ", owner.layer, " of rank ", owner.rank,
                                 ", which must be on the same rank as this one (", rank, ")");
    problems.push_back({key_of(layer), "", rule, ""});
    return true;
  };
  for (const auto* module : modules(layer)) {
    if (check_one(module, "module")) return;
  }
  for (const auto& parameter : parameters(layer)) {
    if (check_one(parameter.unsafeGetTensorImpl(), "parameter")) return;
    if (parameter.nbytes() > 0 && check_one(parameter.const_data_ptr(), "parameter's memory")) return;
  }
}

}  // namespace

std::vector<StagePlan> plan_stages(const LayerList& layers, int num_stages, const std::vector<int>& balance,
                                   std::vector<Problem>& problems) {
  const size_t before = problems.size();
  for (Problem& problem : name_problems(layers)) problems.push_back(std::move(problem));
  const auto skips = SkipReader(layers, problems).skips();
  if (layers.size() < num_stages) {
    problems.push_back({"layers", std::to_string(layers.size()),
                        cat("must be at least the schedule's stages (", num_stages, ")"), ""});
  } else if (!balance.empty()) {
    check_balance(balance, layers.size(), num_stages, problems);
  }
  if (problems.size() > before) return {};
  std::vector<StagePlan> plan;
  int first = 0;
  for (const int count : balance.empty() ? even_balance(layers.size(), num_stages) : balance) {
    plan.push_back({first, first + count, carried_over(skips, first), carried_over(skips, first + count)});
    first += count;
  }
  return plan;
}

Problem drawing_problem(const Layer& layer, const std::string& what) {
  return {key_of(layer), what,
          "draws from the random generator of the process, which ranks share; must draw numbers of its own, keyed by "
          "seed, step, microbatch and place, or ranks must be processes",
          "braid::KeyedDropout"};
}

std::vector<Problem> sharing_problems(const LayerList& layers, const std::vector<StagePlan>& plan,
                                      const Schedule& schedule, RankKind ranks) {
  std::vector<Problem> problems;
  for (int index = 0; index < layers.size() && ranks == RankKind::Thread; ++index) {
    for (const auto& module : drawing_modules(layers[index])) {
      problems.push_back(drawing_problem(layers[index], module));
    }
  }
  Owners owners;
  for (size_t stage = 0; stage < plan.size(); ++stage) {
    const int rank = schedule.stage_rank[stage];
    for (int index = plan[stage].first; index < plan[stage].last; ++index) {
      check_shared(layers[index], rank, owners, problems);
    }
  }
  return problems;
}

LayerClaim::LayerClaim(const LayerList& layers, const std::vector<StagePlan>& stages) {
  std::vector<Problem> problems;
  for (const StagePlan& stage : stages) {
    for (int index = stage.first; index < stage.last; ++index) {
      if (layers[index].claimed->exchange(true)) {
        problems.push_back({key_of(layers[index]), "", "is run by another pipeline; must be of a list of its own", ""});
      } else {
        held_.push_back(layers[index].claimed);
      }
    }
  }
  if (problems.empty()) return;
  for (const auto& claim : held_) claim->store(false);
  throw ConfigError(std::move(problems));
}

LayerClaim::~LayerClaim() {
  for (const auto& claim : held_) claim->store(false);
}

}  // namespace braid::modules
