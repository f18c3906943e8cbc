// The states of an optimizer on disk: one tensor for each name ("exp_avg"), with the elements of all parameters.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "braid/module/optimizer_on_disk.h"
#include "braid/module/state_places.h"
#include "braid/module/torch_state.h"
#include "braid/param/disk_tensors.h"

namespace braid::modules {

class DiskStates {
 public:
  // As OptimizerOnDisk's.
  DiskStates(torch::optim::Optimizer& optimizer, const OptimizerOnDisk::Options& options);

  const std::vector<StatePlace>& places() const { return places_; }               // of the parameters
  const std::vector<std::string>& names() const { return names_; }                // of the states
  const std::vector<at::Tensor>& tensors() const { return tensors_; }             // by name, 1-D
  int64_t num_elements() const { return braid::modules::num_elements(places_); }  // of each tensor
  param::DiskTensors& disk() const { return *disk_; }

  // Throws ConfigError if the optimizer's parameters, or which states it keeps, have changed.
  void require_unchanged() const;
  // Makes `state` the optimizer's state of a parameter, with the state tensors that are on disk in place of its own.
  void set(const StatePlace& place, TorchState state) const;
  // Returns true if the elements of state tensor `name` are those at its place on the disk, in the parameter's order.
  // They are not if the program has replaced the state, or if set_data() has changed the parameter's strides.
  bool is_in_place(const std::string& name, const at::Tensor& numbers, const StatePlace& place) const;

 private:
  std::vector<std::string> checked(const OptimizerOnDisk::Options& options) const;
  int64_t space_bytes(size_t num_states) const;
  at::Tensor part_of(size_t name, const StatePlace& place) const;
  void add_zeros() const;

  torch::optim::Optimizer& optimizer_;
  const std::vector<StatePlace> places_;
  const std::vector<std::string> names_;
  std::shared_ptr<param::DiskTensors> disk_;
  std::vector<at::Tensor> tensors_;
};

}  // namespace braid::modules
