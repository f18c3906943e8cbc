#include "braid/param/saved_graph.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>
#include <torch/csrc/autograd/variable.h>

#include <mutex>

#include "braid/base/errors.h"

namespace braid::param {
namespace {

// Memory smaller than this stays.
constexpr size_t kLeastBytes = disk::kBlockBytes;

SavedGraph*& graph_of_thread() {
  thread_local SavedGraph* graph = nullptr;
  return graph;
}

}  // namespace

// A view of memory that was moved.
class MovedTensor {
 public:
  MovedTensor(std::shared_ptr<Swapped> memory, const at::Tensor& tensor)
      : memory_(std::move(memory)),
        sizes_(tensor.sizes().vec()),
        strides_(tensor.strides().vec()),
        offset_(tensor.storage_offset()),
        options_(tensor.options()) {}

  at::Tensor tensor() const {
    const c10::AutoGradMode no_grad(false);
    return at::empty({0}, options_).set_(memory_->memory(), offset_, sizes_, strides_);
  }

 private:
  const std::shared_ptr<Swapped> memory_;
  const std::vector<int64_t> sizes_, strides_;
  const int64_t offset_;
  const at::TensorOptions options_;
};

class MovingHooks final : public torch::autograd::SavedVariableHooks {
 public:
  explicit MovingHooks(SavedGraph& graph) : graph_(graph) {}

  void call_pack_hook(const at::Tensor& tensor) override {
    if (auto memory = graph_.out(tensor)) {
      moved_ = std::make_unique<MovedTensor>(std::move(memory), tensor);
    } else {
      kept_ = tensor.detach();  // an output that holds its graph would keep itself
      version_ = kept_._version();
    }
  }
  at::Tensor call_unpack_hook() override {
    if (moved_) return moved_->tensor();
    if (kept_._version() != version_) throw RunError("a tensor that backward needs was changed in place");
    return kept_;
  }

 private:
  SavedGraph& graph_;  // used only while its scope is there
  std::unique_ptr<MovedTensor> moved_;
  at::Tensor kept_;
  int64_t version_ = 0;
};

namespace {

class MovingEngine final : public torch::autograd::Engine {
 public:
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    SavedGraph* const graph = graph_of_thread();
    return graph ? std::make_unique<MovingHooks>(*graph) : nullptr;
  }
};

// Never destroyed, like LibTorch's own engine: threads may still use it.
torch::autograd::Engine& moving_engine() {
  static auto* const engine = new MovingEngine;
  return *engine;
}

}  // namespace

SavedGraph::Scope::Scope(SavedGraph& graph) : before_(std::exchange(graph_of_thread(), &graph)) {
  static std::once_flag installed;
  std::call_once(installed, [] { torch::autograd::set_default_engine_stub(moving_engine); });
}

SavedGraph::Scope::~Scope() { graph_of_thread() = before_; }

bool SavedGraph::moves_here() { return graph_of_thread() != nullptr; }

bool SavedGraph::moves(const at::Tensor& tensor) const {
  if (!tensor.defined() || !tensor.device().is_cpu() || tensor.layout() != at::kStrided) return false;
  if (tensor.is_conj() || tensor.is_neg()) return false;  // their memory alone does not say what they are
  const c10::Storage& memory = tensor.storage();
  return memory.nbytes() >= kLeastBytes && moves_(memory);
}

std::shared_ptr<Swapped> SavedGraph::out(const at::Tensor& tensor) {
  if (!moves(tensor)) return nullptr;
  const Contents contents{c10::weak_intrusive_ptr(tensor.storage().getWeakStorageImpl()), tensor._version()};
  std::weak_ptr<Swapped>& saved = saved_[contents];
  std::shared_ptr<Swapped> memory = saved.lock();
  if (memory) return memory;
  memory = space_->out(tensor.storage(), last_.lock());
  saved = memory;
  if (memory) last_ = memory;
  return memory;
}

void SavedGraph::move_input(at::Tensor& input) {
  const at::Tensor moved = std::exchange(input, {});
  if (auto memory = out(moved)) {
    input_ = std::make_shared<const MovedTensor>(std::move(memory), moved);
  } else {
    input = moved;
  }
}

at::Tensor SavedGraph::input() { return std::exchange(input_, nullptr)->tensor(); }

void SavedGraph::start_in() {
  bool reads = false;
  for (const auto& [contents, saved] : saved_) {
    const auto memory = saved.lock();
    if (!memory) continue;
    if (memory->is_in_memory()) {
      memory->start_in();
    } else {
      reads = true;
    }
  }
  if (reads) space_->finish();
  for (const auto& [contents, saved] : saved_) {
    if (const auto memory = saved.lock()) memory->start_in();
  }
}

namespace {

// Returns a tensor whose elements share one.
at::Tensor shape_of(const at::Tensor& tensor) {
  const c10::AutoGradMode no_grad(false);
  return at::zeros({}, tensor.options().requires_grad(false)).expand(tensor.sizes()).detach();
}

}  // namespace

at::Tensor root_like(const at::Tensor& output) {
  return torch::autograd::make_variable(shape_of(output), torch::autograd::impl::gradient_edge(output));
}

void free_leaf(const at::Tensor& leaf) { leaf.set_data(shape_of(leaf)); }

}  // namespace braid::param
