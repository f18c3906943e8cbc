// The tensors that two runs are compared by: inputs of a microbatch, values of ops, parameters, loss and gradient norm.
#pragma once

#include <compare>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "braid/model/graph.h"
#include "braid/nn/value_observer.h"
#include "braid/spec/run_spec.h"

namespace braid::verify {

struct Subject {
  std::string op;          // the op that makes it: "blocks.3 linear attention.qkv"
  std::string reader;      // the op whose backward makes its gradient; empty if it is no value
  std::string tensor;      // "output bt(kmd)", or the name of a parameter
  double longest_sum = 1;  // terms of the longest sum in these ops
};

// The list of a model's subjects, in the order in which forward makes them. All of a run's ranks read it.
class Subjects {
 public:
  explicit Subjects(const RunSpec& spec);

  // The inputs of a microbatch. Samples: the hash of all samples of the step.
  enum Input { kTokens, kRows, kTargets, kDocuments, kDropoutKey, kSamples };

  int of_value(const nn::MadeValue& value) const { return values_.at(key_of(value)); }
  int of_param(const std::string& name) const { return params_.at(name); }
  int loss() const { return loss_; }
  int norm() const { return loss_ + 1; }
  const Subject& operator[](int number) const { return all_[static_cast<size_t>(number)]; }
  const model::ModelGraph& graph() const { return graph_; }

 private:
  using Key = std::tuple<int, int, nn::ValueKind>;
  static Key key_of(const nn::MadeValue& value) { return {value.block, value.value, value.kind}; }
  int add(Subject subject);
  void add_values(const RunSpec& spec, int block);
  void add_params(const RunSpec& spec, int block);

  const model::ModelGraph graph_;
  std::vector<Subject> all_;
  std::map<Key, int> values_;
  std::map<std::string, int> params_;
  int loss_ = 0;
};

}  // namespace braid::verify
