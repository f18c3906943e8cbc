// Copies between the two layouts. Each is the other's backward.
#include "braid/nn/head_groups.h"

#include <ATen/ops/empty.h>

#include <numeric>

#include "braid/nn/kept.h"

namespace braid::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

constexpr int64_t kAlignment = 64;  // bytes

int64_t num_heads(const HeadGroups& heads) {
  return std::accumulate(heads.counts.begin(), heads.counts.end(), int64_t{0});
}

// Calls body(all, grouped) with views [b, groups, t, heads, width] of each stretch in x_bthd and in x_bgthd.
template <class Body>
void for_stretches(const at::Tensor& x_bthd, const at::Tensor& x_bgthd, const HeadGroups& heads, const Body& body) {
  int64_t at = 0;
  for (const int64_t count : heads.counts) {
    const at::Tensor all =
        x_bthd.narrow(2, at * heads.groups, count * heads.groups).unflatten(2, {heads.groups, count});
    body(all.permute({0, 2, 1, 3, 4}), x_bgthd.narrow(3, at, count));
    at += count;
  }
}

at::Tensor to_groups(const at::Tensor& x_btf, const HeadGroups& heads) {
  const int64_t b = x_btf.size(0), t = x_btf.size(1), count = num_heads(heads),
                step = kAlignment / x_btf.element_size();
  const int64_t extent = t * count * heads.width, padded = (extent + step - 1) / step * step;
  const at::Tensor out = at::empty({b * heads.groups, padded}, x_btf.options())
                             .narrow(1, 0, extent)
                             .unflatten(1, {t, count * heads.width});
  for_stretches(x_btf.reshape({b, t, -1, heads.width}),
                out.unflatten(0, {b, heads.groups}).unflatten(3, {count, heads.width}), heads,
                [](const at::Tensor& all, const at::Tensor& grouped) { grouped.copy_(all); });
  return out;
}

at::Tensor from_groups(const at::Tensor& x_gtf, const HeadGroups& heads) {
  const int64_t b = x_gtf.size(0) / heads.groups, t = x_gtf.size(1), count = num_heads(heads);
  const at::Tensor out = at::empty({b, t, count * heads.groups, heads.width}, x_gtf.options());
  for_stretches(out, x_gtf.reshape({b, heads.groups, t, count, heads.width}), heads,
                [](const at::Tensor& all, const at::Tensor& grouped) { all.copy_(grouped); });
  return out.view({b, t, -1});
}

// detach() makes a base tensor of a view, so that later operations may work in place.
struct Group : Function<Group> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_btf, const HeadGroups& heads) {
    keep(ctx, heads);
    return to_groups(x_btf.detach(), heads).detach();
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    return {from_groups(grads[0], kept<HeadGroups>(ctx)), {}};
  }
};

struct Ungroup : Function<Ungroup> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_gtf, const HeadGroups& heads) {
    keep(ctx, heads);
    return from_groups(x_gtf.detach(), heads).detach();
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    return {to_groups(grads[0], kept<HeadGroups>(ctx)), {}};
  }
};

}  // namespace

at::Tensor group_heads(const at::Tensor& x_btf, const HeadGroups& heads) { return Group::apply(x_btf, heads); }
at::Tensor ungroup_heads(const at::Tensor& x_gtf, const HeadGroups& heads) { return Ungroup::apply(x_gtf, heads); }

}  // namespace braid::nn
