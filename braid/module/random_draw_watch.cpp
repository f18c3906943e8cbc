// LibTorch tags what may draw; a composite operation shows what it draws with beneath it and is passed over. Arguments
// are not looked at: RecordFunction::inputs() asserts in programs built with assertions against a LibTorch built
// without.
#include "braid/module/random_draw_watch.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <ATen/record_function.h>

#include <algorithm>

namespace braid::modules {
namespace {

// Callbacks carry nothing of ours, so a thread knows its watch.
thread_local RandomDrawWatch* watching = nullptr;

bool may_draw(const at::RecordFunction& call) {
  const auto name = call.operator_name();
  if (!name) return false;
  const auto op = c10::Dispatcher::singleton().findSchema(*name);
  return op && op->hasTag(at::Tag::nondeterministic_seeded) &&
         !op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

at::Tensor generator_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

}  // namespace

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

}  // namespace braid::modules
