// Views of the fused projection go straight into LibTorch's attention, whose CPU kernel is the flash one for every type
// and for grouped heads too: it never forms the t x t scores, and its backward gives the same bits every time.
#include "braid/nn/attention.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include "braid/base/errors.h"

namespace braid {
namespace {

// h query heads and k key and value heads of d features.
struct Heads {
  at::Tensor q_bthd, k_btkd, v_btkd;
};

at::Tensor causal_attention(const Heads& heads) {
  const bool grouped = heads.q_bthd.size(2) != heads.k_btkd.size(2);
  return at::scaled_dot_product_attention(heads.q_bthd.transpose(1, 2), heads.k_btkd.transpose(1, 2),
                                          heads.v_btkd.transpose(1, 2), {}, 0.0, /*is_causal=*/true, {}, grouped)
      .transpose(1, 2);
}

// Tokens of each run of one document, over all sequences in order.
std::vector<int64_t> document_extents(const at::Tensor& documents_bt) {
  const at::Tensor host = documents_bt.cpu().contiguous();
  const int64_t b = host.size(0), t = host.size(1);
  const int64_t* document = host.const_data_ptr<int64_t>();
  std::vector<int64_t> extents;
  for (int64_t i = 0; i < b * t; ++i) {
    const bool begins = i % t == 0 || document[i] != document[i - 1];
    check(i % t == 0 || document[i] >= document[i - 1], "the documents of a sequence lie one after another");
    if (begins) extents.push_back(0);
    ++extents.back();
  }
  return extents;
}

// Each document by itself: no mask, and no work on scores that a mask would hide. split's backward is one copy.
at::Tensor document_attention(const Heads& heads, const at::Tensor& documents_bt) {
  const auto extents = document_extents(documents_bt);
  if (static_cast<int64_t>(extents.size()) == documents_bt.size(0)) return causal_attention(heads);
  const auto runs = [&](const at::Tensor& x_bthd) {
    return x_bthd.flatten(0, 1).unsqueeze(0).split_with_sizes(extents, 1);
  };
  const auto q = runs(heads.q_bthd), k = runs(heads.k_btkd), v = runs(heads.v_btkd);
  std::vector<at::Tensor> y;
  for (size_t i = 0; i < extents.size(); ++i) y.push_back(causal_attention({q[i], k[i], v[i]}));
  return at::cat(y, 1);
}

}  // namespace

at::Tensor Attention::forward(const at::Tensor& x_btc, const Microbatch& microbatch) const {
  const int64_t b = x_btc.size(0), t = x_btc.size(1), h = options_.local_heads;
  const int64_t k = options_.local_kv_heads > 0 ? options_.local_kv_heads : h;
  at::Tensor qkv_btf = qkv_.forward(x_btc, microbatch);
  if (options_.rotary) qkv_btf = options_.rotary->rotate_(qkv_btf, h + k);
  // split_with_sizes, whose backward is one copy; three slices would each make a gradient of full size.
  const auto parts = qkv_btf.view({b, t, h + 2 * k, -1}).split_with_sizes({h, k, k}, 2);
  const Heads heads{parts[0], parts[1], parts[2]};
  const at::Tensor y_bthd =
      microbatch.documents_bt.defined() ? document_attention(heads, microbatch.documents_bt) : causal_attention(heads);
  return projection_.forward(y_bthd.reshape({b, t, -1}), microbatch);
}

}  // namespace braid
