// The walk. Each rank runs until it waits for an action, and that action wakes it. The walk has no clock and checks no
// rules.
#include "braid/schedule/walk.h"

#include <limits>
#include <utility>

#include "braid/schedule/passes.h"

namespace braid::schedule {
namespace {

// The state of an action that others wait for. If it has run, the state is its index in the program of its stage's
// owner, or kElsewhere. If not, it names the first rank that waits for the action (encoded by there()), or is kNever.
constexpr int kElsewhere = -1;  // ran on a rank that does not own the stage, a fault; visits cannot name it
constexpr int kNever = std::numeric_limits<int>::min();  // has not run, and no rank waits for it
constexpr int kRuns = 0;                                 // in waits_before_: the rank does not wait

constexpr size_t kPadding = 8;  // keeps rows apart in the cache if the number of microbatches is a power of two
constexpr int kBlock = 256;     // ranks per block, whose next actions and dependencies fit into a cache
constexpr int kNoBlock = -1;

bool ran(int known) { return known >= kElsewhere; }

// Prefetches the next cache line. The walk reads thousands of ranks in turn, more streams than a processor prefetches
// by itself.
template <class T>
void fetch_next_line(const T& here) {
  __builtin_prefetch(&here + 64 / sizeof(T));
}

class Walker {
 public:
  Walker(const Schedule& schedule, SendMode mode, const std::function<void(const Visit&)>& visit)
      : schedule_(schedule),
        mode_(mode),
        visit_(visit),
        comms_(has_comms(schedule)),
        slots_(comms_ ? 6 : 2),
        row_(slots_ * (static_cast<size_t>(schedule.num_microbatches) + kPadding)),
        done_(row_ * schedule.num_stages, kNever),
        next_(schedule.num_ranks(), 0),
        waits_before_(schedule.num_ranks(), kRuns),
        queued_(schedule.num_ranks(), 0) {}

  std::vector<int> run() {
    for (int rank = 0; rank < schedule_.num_ranks(); ++rank) push(rank);
    std::vector<int> firsts;
    do {
      for (; !later_.empty(); firsts.clear()) {
        firsts.swap(later_);
        shift_ = kBlock / 2 - shift_;
        for (const int rank : firsts) run_block(rank);
      }
    } while (swept());
    return next_;
  }

 private:
  // Neighbours wait for each other so often that all ranks advance in lockstep. A walk over all ranks in turn would
  // never find a program in the cache, so ranks run in blocks. A block runs until both its ends wait for other blocks.
  // By then its middle, which gets furthest, has advanced by half as many microbatches as the block has ranks. The next
  // blocks are shifted by half a block, so that these ends are in their middle.
  int block_of(int rank) const { return (rank + shift_) / kBlock; }

  void run_block(int first) {
    block_ = block_of(first);
    for (ready_.push_back(first); !ready_.empty();) {
      const int rank = ready_.back();
      ready_.pop_back();
      queued_[rank] = 0;
      while (step(rank)) {
      }
    }
    block_ = kNoBlock;
  }

  // Returns an op's index among the states of its (stage, microbatch), which are adjacent. B and I both compute the
  // input gradient, so they share one.
  static size_t slot(Op op) {
    switch (op) {
      case Op::Forward:
        return 0;
      case Op::FullBackward:
      case Op::InputGrad:
        return 1;
      default:
        return 2 + static_cast<size_t>(op) - static_cast<size_t>(Op::SendForward);
    }
  }

  bool at_end(int rank) const { return next_[rank] == static_cast<int>(schedule_.programs[rank].size()); }
  const Action& next_action(int rank) const { return schedule_.programs[rank][next_[rank]]; }
  bool inside(int stage) const { return stage >= 0 && stage < schedule_.num_stages; }
  int& done(Op op, int stage, int micro) { return done_[row_ * stage + slots_ * micro + slot(op)]; }
  int owner(int stage, int micro) const {
    return schedule_.mirrored() && micro >= schedule_.mirror_from ? schedule_.mirror_rank[stage]
                                                                  : schedule_.stage_rank[stage];
  }

  // Tries every rank once more. A rank is woken only when an action runs for the first time, so this finds the sends
  // and receives that a faulty schedule repeats.
  bool swept() {
    bool moved = false;
    for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
      if (!step(rank)) continue;
      moved = true;
      push(rank);
    }
    return moved;
  }

  void push(int rank) {
    if (queued_[rank]) return;
    queued_[rank] = 1;
    (block_of(rank) == block_ ? ready_ : later_).push_back(rank);
  }

  // Returns true if an action ran. If not, puts the rank first in the list of ranks that wait for it, unless the rank
  // is in a list already.
  bool there(int rank, int& known) {
    if (ran(known)) return true;
    if (waits_before_[rank] == kRuns) {
      waits_before_[rank] = known;
      known = kElsewhere - 1 - rank;
    }
    return false;
  }

  void wake(int known) {
    while (known != kNever) {
      const int rank = kElsewhere - 1 - known;
      known = std::exchange(waits_before_[rank], kRuns);
      push(rank);
    }
  }

  void complete(const Visit& visit) {
    const Action& action = schedule_.programs[visit.rank][visit.index];
    next_[visit.rank] = visit.index + 1;
    if (action.op <= Op::RecvBackward && action.op != Op::WeightGrad) {
      const bool owned = owner(action.stage, action.micro) == visit.rank;
      int& known = done(action.op, action.stage, action.micro);
      if (!ran(known)) wake(known);
      known = owned ? visit.index : kElsewhere;
      fetch_next_line(known);
      fetch_next_line(action);
    }
    visit_(visit);
  }

  // Runs the rank's next action, or fused pair, if it can.
  bool step(int rank) {
    if (at_end(rank)) return false;
    const Action& action = next_action(rank);
    switch (action.op) {
      case Op::Forward:
      case Op::FullBackward:
      case Op::InputGrad:
        return compute(rank);
      case Op::WeightGrad:
        if (!there(rank, done(Op::InputGrad, action.stage, action.micro))) return false;
        break;
      case Op::SendForward:
        return send(rank, Op::Forward, +1);
      case Op::SendBackward:
        return send(rank, Op::InputGrad, -1);
      case Op::RecvForward:
        return receive(rank, Op::SendForward, -1);
      case Op::RecvBackward:
        return receive(rank, Op::SendBackward, +1);
      case Op::ReduceGrad:
      case Op::Unshard:
      case Op::Reshard:
      case Op::Recompute:
      case Op::Update:
        break;
    }
    complete({rank, next_[rank]});
    return true;
  }

  // Runs F, B, I, or a fused pair, if it can. A fused pair runs when both actions can.
  bool compute(int rank) {
    const Program& program = schedule_.programs[rank];
    const int first = next_[rank];
    const int count = pair_begins(program, first) ? 2 : 1;
    Visit visits[2];
    for (int i = 0; i < count; ++i) {
      visits[i] = {rank, first + i};
      if (!available(program[first + i], visits[i])) return false;
    }
    for (int i = 0; i < count; ++i) complete(visits[i]);
    return true;
  }

  // Returns true if F, B or I has its inputs. These are its own forward (for B and I) and the tensor of the
  // neighbouring stage, which comes by a receive if the schedule has transfers and that stage is on another rank. Notes
  // in `visit` the action on another rank for which it waited.
  bool available(const Action& action, Visit& visit) {
    const bool forward = action.op == Op::Forward;
    if (!forward && !there(visit.rank, done(Op::Forward, action.stage, action.micro))) return false;
    const int source = action.stage + (forward ? -1 : +1);
    if (!inside(source)) return true;
    const int source_rank = owner(source, action.micro);
    const bool transferred = comms_ && source_rank != visit.rank;
    const Op through = forward ? Op::RecvForward : Op::RecvBackward;
    int& index = transferred ? done(through, action.stage, action.micro) : done(action.op, source, action.micro);
    if (!there(visit.rank, index)) return false;
    if (!transferred && source_rank != visit.rank && index >= 0) {
      visit.after_rank = source_rank;
      visit.after_index = index;
    }
    return true;
  }

  bool send(int rank, Op made_by, int offset) {
    const Action& action = next_action(rank);
    const int stage = action.stage + offset;
    if (!inside(stage) || !there(rank, done(made_by, action.stage, action.micro))) return false;
    Visit visit{rank, next_[rank]};
    if (mode_ == SendMode::Buffered) {
      complete(visit);
      return true;
    }
    const int peer = owner(stage, action.micro);
    const Op wanted = action.op == Op::SendForward ? Op::RecvForward : Op::RecvBackward;
    if (peer == rank || at_end(peer) || next_action(peer) != Action{wanted, stage, action.micro}) {
      there(rank, done(wanted, stage, action.micro));
      return false;
    }
    visit.after_rank = peer;
    visit.after_index = next_[peer];
    complete(visit);
    complete({peer, visit.after_index, rank, visit.index});
    push(peer);
    return true;
  }

  bool receive(int rank, Op sent_by, int offset) {
    const Action& action = next_action(rank);
    const int stage = action.stage + offset;
    if (!inside(stage)) return false;
    if (mode_ == SendMode::Rendezvous) {
      // The sender runs both actions. It is woken, because this receive is now the next action of its rank.
      int& known = done(action.op, action.stage, action.micro);
      if (!ran(known)) wake(std::exchange(known, kNever));
      return false;
    }
    const int peer = owner(stage, action.micro);
    int& index = done(sent_by, stage, action.micro);
    if (!there(rank, index)) return false;
    complete(index >= 0 ? Visit{rank, next_[rank], peer, index} : Visit{rank, next_[rank]});
    return true;
  }

  const Schedule& schedule_;
  const SendMode mode_;
  const std::function<void(const Visit&)>& visit_;
  const bool comms_;
  const size_t slots_;     // number of states for each stage and microbatch
  const size_t row_;       // number of states for each stage
  std::vector<int> done_;  // by stage, microbatch and slot: the state of the action
  std::vector<int> next_;  // by rank: index of its next action
  // By rank: the state in which it found the action for which it waits, which names the next waiting rank; or kRuns.
  std::vector<int> waits_before_;
  std::vector<char> queued_;  // by rank: whether it is in ready_ or later_
  std::vector<int> ready_;    // ranks to run in this block
  std::vector<int> later_;    // ranks to run in the next round of blocks
  int block_ = kNoBlock;
  int shift_ = 0;  // shift of the blocks in ranks: half a block and 0 alternately
};

}  // namespace

std::vector<int> walk(const Schedule& schedule, SendMode mode, const std::function<void(const Visit&)>& visit) {
  return Walker(schedule, mode, visit).run();
}

}  // namespace braid::schedule
