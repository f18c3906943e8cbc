// Facts about torch's modules: parameters, buffers, random draws, training mode.
#include "braid/module/layer_facts.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <ATen/record_function.h>
#include <c10/util/Type.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/rnn.h>

#include <algorithm>
#include <set>
#include <typeinfo>

#include "braid/base/text.h"
#include "braid/module/microbatch_listener.h"

namespace braid::modules {

namespace {

// The innermost watch of a thread. RecordFunction's callbacks take no argument of their own that could hold it.
thread_local RandomDrawWatch* watching = nullptr;

// Returns true if LibTorch's tags say that the operation may draw random numbers. Composite operations are skipped,
// because the operations that they call are recorded too. Arguments are not read: RecordFunction::inputs() asserts in a
// program built with assertions against a LibTorch built without them.
bool may_draw(const at::RecordFunction& call) {
  const auto name = call.operator_name();
  if (!name) return false;
  const auto op = c10::Dispatcher::singleton().findSchema(*name);
  return op && op->hasTag(at::Tag::nondeterministic_seeded) &&
         !op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

}  // namespace

at::Tensor generator_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_generator_state(const at::Tensor& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

struct RandomDrawWatch::Observer {
  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& call) {
    if (watching && may_draw(call)) {
      auto& operations = watching->operations_;
      const std::string name = call.name();
      if (std::find(operations.begin(), operations.end(), name) == operations.end()) operations.push_back(name);
    }
    return nullptr;
  }
};

RandomDrawWatch::RandomDrawWatch() : state_(generator_state()), outer_(watching) {
  watching = this;
  callback_ =
      at::addThreadLocalCallback(at::RecordFunctionCallback(&Observer::begin).scopes({at::RecordScope::FUNCTION}));
}

RandomDrawWatch::~RandomDrawWatch() {
  at::removeCallback(callback_);
  watching = outer_;
}

std::vector<std::string> RandomDrawWatch::operations() const {
  return operations_.empty() || generator_state().equal(state_) ? std::vector<std::string>() : operations_;
}

namespace {

using torch::nn::Module;

std::vector<std::shared_ptr<Module>> all(const Layer& layer) {
  return layer.module ? layer.module->modules() : std::vector<std::shared_ptr<Module>>();
}

// Returns p of a module that is one of `Dropouts`, 0 for others.
template <class... Dropouts>
double dropout_probability(const Module& module) {
  double p = 0;
  const auto ask = [&](const auto* dropout) {
    if (dropout) p = dropout->options.p();
  };
  (ask(dynamic_cast<const Dropouts*>(&module)), ...);
  return p;
}

// Returns the dropout of a recurrent module; 0 with one layer, because it drops only between layers.
template <class... Recurrents>
double recurrent_probability(const Module& module) {
  double p = 0;
  const auto ask = [&](const auto* recurrent) {
    if (recurrent && recurrent->options_base.num_layers() > 1) p = recurrent->options_base.dropout();
  };
  (ask(dynamic_cast<const Recurrents*>(&module)), ...);
  return p;
}

double drawing_probability(const Module& module) {
  using namespace torch::nn;
  if (const auto* attention = dynamic_cast<const MultiheadAttentionImpl*>(&module)) return attention->options.dropout();
  return dropout_probability<DropoutImpl, Dropout2dImpl, Dropout3dImpl, AlphaDropoutImpl, FeatureAlphaDropoutImpl>(
             module) +
         recurrent_probability<RNNImpl, LSTMImpl, GRUImpl>(module);
}

// Returns the name that users know: torch::nn::Dropout for "torch::nn::DropoutImpl". Module::name() is not used,
// because its first call writes to the module, which thread ranks share.
std::string public_name(const Module& module) {
  const std::string name = c10::demangle(typeid(module).name());
  return name.ends_with("Impl") ? name.substr(0, name.size() - 4) : name;
}

void push_once(Tensors& tensors, std::set<const void*>& seen, const at::Tensor& tensor) {
  if (tensor.defined() && seen.insert(tensor.unsafeGetTensorImpl()).second) tensors.push_back(tensor);
}

}  // namespace

Tensors parameters(const Layer& layer) {
  Tensors result;
  std::set<const void*> seen;
  if (layer.module) {
    for (const auto& tensor : layer.module->parameters()) push_once(result, seen, tensor);
  }
  for (const auto& tensor : layer.options.parameters) push_once(result, seen, tensor);
  return result;
}

Tensors buffers(const Layer& layer) {
  Tensors result;
  std::set<const void*> seen;
  if (layer.module) {
    for (const auto& tensor : layer.module->buffers()) push_once(result, seen, tensor);
  }
  return result;
}

Tensors buffers(const LayerList& layers) {
  Tensors result;
  for (int index = 0; index < layers.size(); ++index) {
    for (const at::Tensor& tensor : buffers(layers[index])) result.push_back(tensor);
  }
  return result;
}

std::vector<const Module*> modules(const Layer& layer) {
  std::vector<const Module*> result;
  for (const auto& module : all(layer)) result.push_back(module.get());
  return result;
}

std::vector<MicrobatchListener*> listeners(const Layer& layer) {
  std::vector<MicrobatchListener*> result;
  for (const auto& module : all(layer)) {
    if (auto* listener = dynamic_cast<MicrobatchListener*>(module.get())) result.push_back(listener);
  }
  return result;
}

std::vector<std::string> drawing_modules(const Layer& layer) {
  std::vector<std::string> result;
  for (const auto& module : all(layer)) {
    const double p = drawing_probability(*module);
    if (p > 0) result.push_back(cat(public_name(*module), "(p=", p, ")"));
    if (dynamic_cast<const torch::nn::RReLUImpl*>(module.get())) result.push_back(public_name(*module));
  }
  return result;
}

ModuleModes::ModuleModes(const Layer& layer) : modules_(all(layer)) {
  for (const auto& module : modules_) training_.push_back(module->is_training());
}

// Parents come before children, because train() also sets the modules within.
void ModuleModes::restore() const {
  for (size_t i = 0; i < modules_.size(); ++i) {
    if (modules_[i]->is_training() != (training_[i] != 0)) modules_[i]->train(training_[i] != 0);
  }
}

EvaluationMode::EvaluationMode(const Layer& layer) : before_(layer) {
  if (layer.module) layer.module->eval();
}

}  // namespace braid::modules
