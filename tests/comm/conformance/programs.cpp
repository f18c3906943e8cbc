// Random programs of mixed collectives and messages on the world and on a random split of it, with works left in
// flight, and the same programs played serially.
//
// Every rank has registers of int64 (exact, wrapping). A step names a group, an operation and two registers; all ranks
// draw the same steps from the seed. Register lengths divide by every group size.
#include <array>
#include <random>

#include "tests/comm/conformance.h"
#include "tests/comm/values.h"

namespace braid::comm::tests::programs {
namespace {

inline constexpr int kRegisters = 4;
inline constexpr int64_t kLength = 420;  // divides by 1 to 7

using Registers = std::array<std::vector<int64_t>, kRegisters>;

struct Step {
  enum class Op { AllReduce, ReduceScatter, AllGather, AllToAll, Broadcast, Shift };
  Op op;
  ReduceOp reduce;
  bool on_world;
  int a, b;    // different registers
  int choice;  // modulo the group's size: the root, or how far a message goes
};

struct RandomProgram {
  int ranks;
  std::vector<int> colours;  // by rank: the split
  std::vector<Step> steps;
};

RandomProgram random_program(uint64_t seed) {
  std::mt19937_64 draw(seed);
  auto below = [&draw](int limit) { return static_cast<int>(draw() % limit); };
  RandomProgram program{1 + below(7), {}, {}};
  for (int rank = 0; rank < program.ranks; ++rank) program.colours.push_back(below(3));
  int length = 4 + below(12);
  for (int i = 0; i < length; ++i) {
    int a = below(kRegisters), b = (a + 1 + below(kRegisters - 1)) % kRegisters;
    program.steps.push_back(
        {static_cast<Step::Op>(below(6)), static_cast<ReduceOp>(below(3)), below(2) == 0, a, b, below(7)});
  }
  return program;
}

Registers initial_registers(int rank) {
  Registers registers;
  for (int r = 0; r < kRegisters; ++r) {
    for (int64_t i = 0; i < kLength; ++i) registers[r].push_back(value<int64_t>(r, rank, i));
  }
  return registers;
}

// One step of one group, given its members' registers by rank in the group.
void play(const Step& step, const std::vector<Registers*>& members) {
  int n = static_cast<int>(members.size());
  int64_t chunk = kLength / n;
  std::vector<std::vector<int64_t>> in;
  for (const Registers* registers : members) in.push_back((*registers)[step.a]);
  auto combination = [&](int64_t i) {
    std::vector<int64_t> level;
    for (const auto& values : in) level.push_back(values[i]);
    return tree(level, step.reduce);
  };
  for (int rank = 0; rank < n; ++rank) {
    std::vector<int64_t>& a = (*members[rank])[step.a];
    std::vector<int64_t>& b = (*members[rank])[step.b];
    for (int64_t i = 0; i < kLength; ++i) {
      switch (step.op) {
        case Step::Op::AllReduce:
          a[i] = combination(i);
          break;
        case Step::Op::ReduceScatter:
          b[i] = i < chunk ? combination(rank * chunk + i) : b[i];
          break;
        case Step::Op::AllGather:
          b[i] = in[i / chunk][i % chunk];
          break;
        case Step::Op::AllToAll:
          b[i] = in[i / chunk][rank * chunk + i % chunk];
          break;
        case Step::Op::Broadcast:
          a[i] = in[step.choice % n][i];
          break;
        case Step::Op::Shift:
          b[i] = in[(rank + n - step.choice % n) % n][i];
          break;
      }
    }
  }
}

std::vector<Registers> play(const RandomProgram& program) {
  std::vector<Registers> all;
  for (int rank = 0; rank < program.ranks; ++rank) all.push_back(initial_registers(rank));
  for (const Step& step : program.steps) {
    for (int colour = 0; colour < (step.on_world ? 1 : 3); ++colour) {
      std::vector<Registers*> members;
      for (int rank = 0; rank < program.ranks; ++rank) {
        if (step.on_world || program.colours[rank] == colour) members.push_back(&all[rank]);
      }
      if (!members.empty()) play(step, members);
    }
  }
  return all;
}

// A rank that runs a program: works stay in flight until a register is used again.
class Player {
 public:
  Player(Communicator& world, const RandomProgram& program)
      : world_(world), row_(world.split(program.colours[world.rank()], 0, "row")) {
    Registers initial = initial_registers(world.rank());
    for (int r = 0; r < kRegisters; ++r) {
      registers_[r] = empty<int64_t>(kLength);
      fill<int64_t>(registers_[r], [&](int64_t i) { return initial[r][i]; });
    }
  }

  void run(const Step& step) {
    Communicator& group = step.on_world ? world_ : *row_;
    in_flight_[step.a].order_before(world_.queue());
    in_flight_[step.b].order_before(world_.queue());
    in_flight_[step.a] = in_flight_[step.b] = issue(group, step);
  }

  void expect_at_end(const Registers& expected) {
    for (int r = kRegisters - 1; r >= 0; --r) {
      in_flight_[r].wait_host();
      EXPECT_TRUE(holds<int64_t>(registers_[r], [&](int64_t i) { return expected[r][i]; })) << "register " << r;
    }
  }

 private:
  Work issue(Communicator& group, const Step& step) {
    const at::Tensor &a = registers_[step.a], &b = registers_[step.b];
    int n = group.size(), far = step.choice % n;
    int64_t chunk = kLength / n;
    P2p shift[] = {{P2p::Kind::Recv, b, (group.rank() + n - far) % n, far},
                   {P2p::Kind::Send, a, (group.rank() + far) % n, far}};
    switch (step.op) {
      case Step::Op::AllReduce:
        return group.all_reduce(a, step.reduce);
      case Step::Op::ReduceScatter:
        return group.reduce_scatter(b.narrow(0, 0, chunk), a, step.reduce);
      case Step::Op::AllGather:
        return group.all_gather(b, a.narrow(0, 0, chunk));
      case Step::Op::AllToAll:
        return group.all_to_all(b, a);
      case Step::Op::Broadcast:
        return group.broadcast(a, far);
      case Step::Op::Shift:
        return group.batch(shift);
    }
    return {};
  }

  Communicator& world_;
  std::unique_ptr<Communicator> row_;
  std::array<at::Tensor, kRegisters> registers_;
  std::array<Work, kRegisters> in_flight_;
};

TEST_P(Programs, agree_with_the_serial_model) {
  int count = kTsan ? 60 : full_run() ? 60 * GetParam().num_programs : GetParam().num_programs;
  for (int seed = 0; seed < count && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    RandomProgram program = random_program(seed);
    std::vector<Registers> expected = play(program);
    GetParam().run(program.ranks, [&](Communicator& world) {
      Player player(world, program);
      for (const Step& step : program.steps) player.run(step);
      player.expect_at_end(expected[world.rank()]);
    });
  }
}

}  // namespace
}  // namespace braid::comm::tests::programs
