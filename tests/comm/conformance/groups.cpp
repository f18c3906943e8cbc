// The guarantees of every backend for messages and for groups made by split.
#include "braid/base/errors.h"
#include "braid/comm/agree.h"
#include "tests/comm/conformance.h"
#include "tests/comm/values.h"

namespace braid::comm::tests::groups {
namespace {

Work send(Communicator& group, const at::Tensor& tensor, int peer, int tag) {
  P2p one{P2p::Kind::Send, tensor, peer, tag};
  return group.batch({&one, 1});
}

Work receive(Communicator& group, const at::Tensor& tensor, int peer, int tag) {
  P2p one{P2p::Kind::Recv, tensor, peer, tag};
  return group.batch({&one, 1});
}

at::Tensor number(double value) {
  at::Tensor tensor = empty<double>(1);
  *tensor.mutable_data_ptr<double>() = value;
  return tensor;
}

double number_in(const at::Tensor& tensor) { return *tensor.const_data_ptr<double>(); }

// The sum over the group of `mine`.
double sum(Communicator& group, double mine) {
  at::Tensor tensor = number(mine);
  group.all_reduce(tensor, ReduceOp::Sum).wait_host();
  return number_in(tensor);
}

TEST_P(Groups, messages_match_by_tag_and_in_order_within_a_tag) {
  GetParam().run(2, [](Communicator& group) {
    std::vector<Work> works;
    if (group.rank() == 0) {
      for (int i = 0; i < 6; ++i) works.push_back(send(group, number(i), 1, i % 2));
    } else {
      std::vector<at::Tensor> got;
      for (int tag : {1, 1, 0, 0, 1, 0}) {
        got.push_back(number(-1));
        works.push_back(receive(group, got.back(), 0, tag));
      }
      for (size_t i = works.size(); i-- > 0;) works[i].wait_host();
      std::vector<double> values;
      for (const at::Tensor& tensor : got) values.push_back(number_in(tensor));
      EXPECT_EQ(values, (std::vector<double>{1, 3, 0, 2, 5, 4}));
    }
    for (Work& work : works) work.wait_host();
  });
}

TEST_P(Groups, neighbours_that_both_send_first_do_not_deadlock) {
  GetParam().run(2, [](Communicator& group) {
    int peer = 1 - group.rank();
    for (int round = 0; round < 20; ++round) {
      at::Tensor out = number(10 * round + group.rank()), in = number(-1);
      Work sent = send(group, out, peer, 0);
      receive(group, in, peer, 0).wait_host();
      sent.wait_host();
      EXPECT_EQ(number_in(in), 10 * round + peer);
    }
  });
}

TEST_P(Groups, a_rank_sends_to_itself_and_nothing_is_a_message_too) {
  GetParam().run(2, [](Communicator& group) {
    at::Tensor out = number(7 + group.rank()), in = number(-1);
    Work sent = send(group, out, group.rank(), 5);
    receive(group, in, group.rank(), 5).wait_host();
    sent.wait_host();
    EXPECT_EQ(number_in(in), 7 + group.rank());
    at::Tensor nothing = empty<float>(0);
    P2p both[] = {{P2p::Kind::Recv, nothing, 1 - group.rank(), 0}, {P2p::Kind::Send, nothing, 1 - group.rank(), 0}};
    group.batch(both).wait_host();
    group.batch({}).wait_host();
  });
}

TEST_P(Groups, messages_and_collectives_do_not_order_each_other) {
  GetParam().run(2, [](Communicator& group) {
    at::Tensor message = number(group.rank() == 0 ? 3 : -1), total = number(1 + group.rank());
    if (group.rank() == 0) {
      Work sent = send(group, message, 1, 0);
      group.all_reduce(total, ReduceOp::Sum).wait_host();
      sent.wait_host();
    } else {
      Work reduced = group.all_reduce(total, ReduceOp::Sum);
      receive(group, message, 0, 0).wait_host();
      reduced.wait_host();
    }
    EXPECT_EQ(number_in(message), 3);
    EXPECT_EQ(number_in(total), 3);
  });
}

// One forward one backward: stage s adds s on the way up and multiplies on the way down, so that every stage sees which
// microbatch and how far it has come. Tags are the microbatch, plus `micros` on the way down.
struct Pipeline {
  Communicator& group;
  int micros;
  std::vector<Work> sends = {};

  void forward(int micro) {
    at::Tensor x = number(100 * micro);
    if (group.rank() > 0) receive(group, x, group.rank() - 1, micro).wait_host();
    int below = group.rank() * (group.rank() - 1) / 2;
    EXPECT_EQ(number_in(x), 100 * micro + below);
    if (group.rank() + 1 < group.size()) {
      sends.push_back(send(group, number(number_in(x) + group.rank()), group.rank() + 1, micro));
    }
  }

  void backward(int micro) {
    at::Tensor gradient = number(micro + 1);
    int above = group.size() - 1 - group.rank();
    if (above > 0) receive(group, gradient, group.rank() + 1, micros + micro).wait_host();
    EXPECT_EQ(number_in(gradient), (micro + 1) << above);
    if (group.rank() > 0) {
      sends.push_back(send(group, number(2 * number_in(gradient)), group.rank() - 1, micros + micro));
    }
  }

  void step() {
    int warmup = std::min(micros, group.size() - 1 - group.rank());
    for (int micro = 0; micro < warmup; ++micro) forward(micro);
    for (int micro = warmup; micro < micros; ++micro) {
      forward(micro);
      backward(micro - warmup);
    }
    for (int micro = micros - warmup; micro < micros; ++micro) backward(micro);
    for (Work& work : sends) work.wait_host();
    sends.clear();
  }
};

TEST_P(Groups, one_forward_one_backward_crosses_without_deadlock) {
  for (int stages : {2, 3, 4}) {
    for (int micros : {2, 4, 8}) {
      GetParam().run(stages, [=](Communicator& group) {
        Pipeline pipeline{group, micros};
        for (int step = 0; step < 3; ++step) pipeline.step();
      });
    }
  }
}

TEST_P(Groups, split_orders_by_key_then_by_rank) {
  GetParam().run(6, [](Communicator& world) {
    int colour = world.rank() % 2 == 0 ? -7 : 9;
    auto reversed = world.split(colour, -world.rank(), cat("half ", colour));
    EXPECT_EQ(reversed->size(), 3);
    EXPECT_EQ(reversed->rank(), 2 - world.rank() / 2);
    EXPECT_EQ(reversed->name(), cat("half ", colour));
    EXPECT_EQ(&reversed->queue(), &world.queue());
    auto tied = world.split(colour, 0, "tied");
    EXPECT_EQ(tied->rank(), world.rank() / 2);
    EXPECT_EQ(sum(*reversed, world.rank()), world.rank() % 2 == 0 ? 0 + 2 + 4 : 1 + 3 + 5);
    EXPECT_EQ(sum(*tied, 1), 3);
    EXPECT_EQ(sum(world, 1), 6);
  });
}

TEST_P(Groups, groups_nest_and_work_side_by_side) {
  GetParam().run(8, [](Communicator& world) {
    int rank = world.rank();
    auto half = world.split(rank / 4, rank, "half");
    auto pair = half->split(half->rank() / 2, rank, "pair");
    auto across = world.split(rank % 4, rank, "across");
    for (int round = 0; round < 10; ++round) {
      at::Tensor a = number(rank), b = number(rank), c = number(rank);
      Work first = pair->all_reduce(a, ReduceOp::Sum);
      Work second = across->all_reduce(b, ReduceOp::Sum);
      Work third = half->all_reduce(c, ReduceOp::Sum);
      third.wait_host();
      second.wait_host();
      first.wait_host();
      EXPECT_EQ(number_in(a), rank / 2 * 4 + 1);
      EXPECT_EQ(number_in(b), rank % 4 * 2 + 4);
      EXPECT_EQ(number_in(c), rank / 4 * 16 + 6);
    }
  });
}

TEST_P(Groups, a_group_of_one_is_the_identity) {
  GetParam().run(3, [](Communicator& world) {
    auto alone = world.split(world.rank(), 0, "alone");
    EXPECT_EQ(alone->size(), 1);
    EXPECT_EQ(alone->rank(), 0);
    at::Tensor x = number(0.1 + world.rank()), y = number(-1), z = number(-1), w = number(-1);
    for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min}) alone->all_reduce(x, op).wait_host();
    alone->broadcast(x, 0).wait_host();
    if (dynamic_cast<HostQueue*>(&alone->queue())) {
      const at::Tensor elsewhere = x.to(at::kMeta);  // as on a device, which this machine need not have
      alone->all_reduce(elsewhere, ReduceOp::Sum).wait_host();
      alone->broadcast(elsewhere, 0).wait_host();
    }
    alone->barrier().wait_host();
    alone->reduce_scatter(y, x, ReduceOp::Sum).wait_host();
    alone->all_gather(z, y).wait_host();
    alone->all_to_all(w, z).wait_host();
    EXPECT_EQ(number_in(w), 0.1 + world.rank());
  });
}

// Whatever has sent a chunk has no room for what comes in its place.
TEST_P(Groups, all_to_all_in_place_is_refused) {
  for (const int ranks : {1, 2}) {
    for (const int64_t begin : {0, 1}) {
      try {
        GetParam().run(ranks, [&](Communicator& world) {
          const at::Tensor x = empty<float>(2 * ranks + 1);
          const at::Tensor out = x.narrow(0, begin, 2 * ranks), in = x.narrow(0, 0, 2 * ranks);
          world.all_to_all(out, in).wait_host();
        });
        ADD_FAILURE() << ranks << " ranks, begin " << begin;
      } catch (const CommError& error) {
        EXPECT_EQ(error.failure().why, "all_to_all: `out` and `in` share memory");
      }
    }
  }
}

TEST_P(Groups, agreements_are_the_same_on_all_ranks) {
  for (const int ranks : {1, 2, 5}) {
    GetParam().run(ranks, [ranks](Communicator& world) {
      const int rank = world.rank();
      const std::string own(static_cast<size_t>(rank) * 1000, static_cast<char>('a' + rank));
      EXPECT_EQ(agree(world, "most", int64_t{rank}, ReduceOp::Max), ranks - 1);
      EXPECT_EQ(agree(world, "sums", std::vector<double>{0.5, -1.0 * rank}, ReduceOp::Sum),
                (std::vector<double>{0.5 * ranks, -ranks * (ranks - 1) / 2.0}));
      EXPECT_EQ(agree(world, "fewest", -1.5 * rank, ReduceOp::Min), -1.5 * (ranks - 1));
      EXPECT_TRUE(agree_any(world, "last", rank == ranks - 1));
      EXPECT_EQ(agree_all(world, "first", rank == 0), ranks == 1);
      const std::vector<std::string> texts = gather_texts(world, "texts", own);
      const std::vector<std::string> at_rank_0 = gather_texts_at_rank_0(world, "texts", own);
      for (int r = 0; r < ranks; ++r) EXPECT_EQ(texts.at(r), std::string(r * 1000, static_cast<char>('a' + r)));
      EXPECT_EQ(at_rank_0, rank == 0 ? texts : std::vector<std::string>());
      for (int root = 0; root < ranks; ++root) {
        EXPECT_EQ(broadcast_text(world, "a text", own, root), texts[root]);
        EXPECT_EQ(broadcast(world, "a number", 0.1 * rank, root), 0.1 * root);
        EXPECT_EQ(broadcast(world, "numbers", std::vector<int>(rank, 7), root), std::vector<int>(root, 7));
      }
      EXPECT_EQ(gather(world, "ranks", rank).at(ranks - 1), ranks - 1);
      EXPECT_EQ(gather(world, "lists", std::vector<int>(rank, 7)).at(ranks - 1), std::vector<int>(ranks - 1, 7));
    });
  }
}

// The operations are the same; what they are for is not.
TEST_P(Groups, ranks_that_agree_on_different_things_fail) {
  using Agreement = std::function<void(Communicator&, std::string_view)>;
  const std::vector<Agreement> all = {
      [](Communicator& world, std::string_view what) { agree(world, what, int64_t{3}, ReduceOp::Max); },
      [](Communicator& world, std::string_view what) { agree(world, what, 3.0, ReduceOp::Sum); },
      [](Communicator& world, std::string_view what) { gather(world, what, 3); },
      [](Communicator& world, std::string_view what) { gather_texts(world, what, "three"); },
      [](Communicator& world, std::string_view what) { broadcast(world, what, 3); },
  };
  for (const Agreement& agreement : all) {
    try {
      GetParam().run(3, [&](Communicator& world) {
        agreement(world, world.rank() == 1 ? "time to stop" : "time to save");
        world.barrier().wait_host();
      });
      ADD_FAILURE() << "no CommError";
    } catch (const CommError& error) {
      for (const char* what : {" for time to stop", " for time to save"}) {
        EXPECT_NE(error.failure().why.find(what), std::string::npos) << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace braid::comm::tests::groups
