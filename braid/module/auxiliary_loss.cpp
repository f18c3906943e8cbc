// Auxiliary losses. Each thread has a pointer to its innermost scope.
#include "braid/module/auxiliary_loss.h"

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid {
namespace {

thread_local AuxiliaryLossScope* innermost_scope = nullptr;

}  // namespace

AuxiliaryLossScope::AuxiliaryLossScope() : outer_(innermost_scope) { innermost_scope = this; }
AuxiliaryLossScope::~AuxiliaryLossScope() { innermost_scope = outer_; }

void AuxiliaryLossScope::add(const at::Tensor& loss, double weight) {
  const at::Tensor weighted = loss.reshape({}).mul(weight);
  total_ = total_.defined() ? total_.add(weighted) : weighted;
  weighted_.push_back(weighted);
}

void contribute_auxiliary_loss(const at::Tensor& loss, double weight) {
  if (!loss.defined() || loss.numel() != 1) {
    const std::string value = loss.defined() ? cat("a tensor of ", loss.sizes()) : "an undefined tensor";
    throw ConfigError({{"auxiliary loss", value, "must be one number for a microbatch", ""}});
  }
  if (innermost_scope) return innermost_scope->add(loss, weight);
  if (!loss.requires_grad()) return;
  throw ConfigError({{"auxiliary loss", "", "must be contributed in a ModulePipeline or an AuxiliaryLossScope", ""}});
}

}  // namespace braid
