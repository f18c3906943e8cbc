// Sharded parameters: units, what a rank owns, memory that comes and goes, gradients by unit.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "braid/base/errors.h"
#include "braid/layout/param_spec.h"
#include "braid/param/param_store.h"
#include "braid/param/unit_sink.h"

namespace braid::param::sharding_test {
namespace {

constexpr int64_t kAlign = ParamStore::kAlign;

layout::ParamSpec spec_of(const std::string& name, int64_t elements, int use = 0, int uses = 1) {
  return {name, mesh::replicated({elements}), {model::Init::Kind::Normal, 0.5}, model::WeightDecay::Yes, use, uses};
}

// wte is used by the first and the last block.
std::vector<layout::BlockSpec> blocks() {
  return {{"embedding", {spec_of("wte", 1500, 0, 2), spec_of("wpe", 10)}},
          {"middle", {spec_of("a", 3000), spec_of("b", 1)}},
          {"head", {spec_of("ln", 7), spec_of("wte", 1500, 1, 2)}}};
}

ParamStore store_of(Sharded what, int part, int parts, Reduction reduction = Reduction::Fast,
                    at::ScalarType type = at::kFloat) {
  return {blocks(), StoreOptions{reduction, type, 7, {what, part, parts}}};
}

TEST(Sharding, UnitsAreBlocksWithoutTiedParametersAndTiedOnesAlone) {
  const ParamStore store = store_of(Sharded::Optimizer, 0, 3);
  ASSERT_EQ(store.units().size(), 4u);
  const int64_t step = 3 * kAlign, ends[] = {step, 2 * step, 4 * step, 5 * step};
  for (int u = 0; u < 4; ++u) {
    EXPECT_EQ(store.units()[u].begin, u == 0 ? 0 : ends[u - 1]);
    EXPECT_EQ(store.units()[u].end, ends[u]);
  }
  EXPECT_EQ(store.gathered_by_block(0), (std::vector<int>{0, 1}));
  EXPECT_EQ(store.gathered_by_block(1), (std::vector<int>{2}));
  EXPECT_EQ(store.gathered_by_block(2), (std::vector<int>{0, 3}));
  EXPECT_EQ(store.num_flat(), 5 * step);
  EXPECT_EQ(store.num_owned(), 5 * kAlign);
}

// The first parameter names a unit in messages, a frozen one too.
TEST(Sharding, FrozenParametersOfABlockAreAUnitOfTheirOwn) {
  std::vector<layout::BlockSpec> with_frozen = blocks();
  with_frozen[1].params[1].trained = model::Trained::No;
  const ParamStore store(with_frozen, {Reduction::Fast, at::kFloat, 7, {Sharded::Parameters, 0, 2}});
  EXPECT_EQ(store.gathered_by_block(1), (std::vector<int>{2, 4}));
  EXPECT_EQ(store.first_param(2).name, "a");
  EXPECT_EQ(store.first_param(4).name, "b");
}

TEST(Sharding, PartsTogetherAreTheWholeBufferWithTheSameValues) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const Sharded what : {Sharded::Optimizer, Sharded::Gradients, Sharded::Parameters}) {
      const ParamStore whole = store_of(Sharded::Optimizer, 0, 2, Reduction::Fast, type);
      int64_t owned = 0;
      for (int part = 0; part < 2; ++part) {
        const ParamStore store = store_of(what, part, 2, Reduction::Fast, type);
        int64_t place = 0;
        for (const OwnedRange& range : store.owned()) {
          EXPECT_EQ(range.place, place);
          place += range.length();
          EXPECT_TRUE(range.data.detach().equal(whole.flat_data().detach().narrow(0, range.begin, range.length())));
          EXPECT_TRUE(range.master.to(type).equal(range.data.detach()));
        }
        EXPECT_EQ(place, store.num_owned());
        owned += place;
      }
      EXPECT_EQ(owned, whole.num_flat());
    }
  }
}

TEST(Sharding, ValuesAreThoseOfAStoreThatSharesNothing) {
  ParamStore alone(blocks(), Reduction::Fast, at::kFloat, 7);
  ParamStore shared = store_of(Sharded::Gradients, 1, 4);
  for (const Parameter& param : alone.params()) {
    EXPECT_TRUE(param.data.detach().equal(shared[param.name].data.detach())) << param.name;
  }
}

// Expects that the memory of the parameters a and b is released.
void expect_released(const at::Tensor& view) {
  EXPECT_EQ(view.storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get(), nullptr);
  for (const auto& use : std::vector<std::function<void()>>{[&] { view.sum(); }, [&] { view.zero_(); }}) {
    try {
      use();
      ADD_FAILURE() << "nothing was refused";
    } catch (const c10::Error& error) {
      EXPECT_NE(std::string(error.what()).find("a, b are sharded: they are whole"), std::string::npos);
    }
  }
}

TEST(Sharding, MemoryOfAUnitComesAndGoesUnderTheSameViews) {
  ParamStore store = store_of(Sharded::Parameters, 0, 2);
  const at::Tensor view = store["a"].data.detach();
  expect_released(view);
  store.allocate_unit(2);
  store.unit_data(2).fill_(3);
  EXPECT_TRUE(view.equal(at::full({3000}, 3.0f)));
  store.free_unit(2);
  expect_released(view);
  expect_released(view.view({30, 100}).t());
  store.allocate_unit(2);
  store.unit_data(2).fill_(4);
  EXPECT_TRUE(view.equal(at::full({3000}, 4.0f)));
}

TEST(Sharding, GradientsStayWholeInReproducibleMode) {
  const ParamStore store = store_of(Sharded::Parameters, 1, 2, Reduction::Reproducible);
  EXPECT_FALSE(store.shards_gradients());
  const Parameter& wte = store.params()[0];
  ASSERT_EQ(wte.use_grads.size(), 2u);
  // The second use of a tied parameter is cut as the first is: as long as its unit.
  EXPECT_EQ(store.flat_grads().numel(), store.num_flat() + store.units()[0].length());
}

TEST(UnitSink, HandsOutAUnitWhenItsLastContributionCloses) {
  ParamStore store = store_of(Sharded::Gradients, 0, 2);
  UnitSink sink(store);
  std::vector<int> heard;
  at::Tensor first;
  sink.on_unit = [&](int unit, int, const at::Tensor& gradient) {
    heard.push_back(unit);
    if (unit == 0) first = gradient.clone();
    sink.recycle(gradient.fill_(99));  // what comes next in this memory must not show it
  };
  const auto add = [&](const char* name, int use, int micro, float value) {
    const GradSlot slot = sink.open(store[name], use, micro);
    at::Tensor target = slot.target;
    slot.beta == 0 ? target.fill_(value) : target.add_(value);
    sink.close(store[name], use, micro);
  };
  sink.begin_step(2);
  add("wte", 1, 0, 1);
  add("ln", 0, 0, 1);
  add("a", 0, 0, 1);
  EXPECT_EQ(heard, (std::vector{3}));
  add("wte", 1, 1, 2);
  add("wte", 0, 0, 10);
  EXPECT_TRUE(first.narrow(0, 0, 1500).equal(at::full({1500}, 11.0f)));
  EXPECT_TRUE(first.narrow(0, 1500, first.numel() - 1500).equal(at::zeros_like(first.narrow(0, 1500, 548))));
  add("wte", 0, 1, 20);
  EXPECT_TRUE(first.narrow(0, 0, 1500).equal(at::full({1500}, 22.0f)));
  EXPECT_EQ(first[1500].item<float>(), 0);
  EXPECT_EQ(heard, (std::vector{3, 0, 0}));
}

}  // namespace
}  // namespace braid::param::sharding_test
