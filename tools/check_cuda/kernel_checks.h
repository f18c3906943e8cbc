// The checks of the kernels (verdict.h): one function for each contract.
#pragma once

#include "braid/base/text.h"
#include "tools/check_cuda/verdict.h"

namespace braid::cuda_check {

void check_norm(const Setting& setting, Verdict& verdict);
void check_join(const Setting& setting, Verdict& verdict);
void check_gelu(const Setting& setting, Verdict& verdict);
void check_swiglu(const Setting& setting, Verdict& verdict);
void check_rotary(const Setting& setting, Verdict& verdict);

void check_loss(const Setting& setting, Verdict& verdict);
void check_row_sum(const Setting& setting, Verdict& verdict);
void check_embedding_gradient(const Setting& setting, Verdict& verdict);
void check_weight_gradient(const Setting& setting, Verdict& verdict);
void check_dropout_mask(const Setting& setting,
                        Verdict& verdict);  // compares nothing on the CPU, which has no such one

void check_adamw(const Setting& setting, Verdict& verdict);
void check_sgd(const Setting& setting, Verdict& verdict);
void check_gradient_norm(const Setting& setting, Verdict& verdict);

}  // namespace braid::cuda_check
