// The walk: each rank runs until it waits, and is woken by the action it waits for. No clock, no judgement.
#include "braid/schedule/walk.h"

#include "braid/base/errors.h"
#include "braid/schedule/passes.h"

namespace braid {
namespace {

constexpr int kNever = -1;
constexpr size_t kPadding = 8;  // keeps rows of a power of two of microbatches from sharing the lines of a cache
constexpr int kElsewhere = -2;  // ran, but on a rank that does not own the stage: a fault, and no place to wait for

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
        queued_(schedule.num_ranks(), 1) {}

  std::vector<int> run() {
    for (int rank = schedule_.num_ranks() - 1; rank >= 0; --rank) ready_.push_back(rank);
    do {
      while (!ready_.empty()) {
        const int rank = ready_.back();
        ready_.pop_back();
        queued_[rank] = 0;
        while (step(rank)) {
        }
      }
    } while (swept());
    return next_;
  }

 private:
  // Those of one (stage, microbatch) lie side by side. B and I both make the gradient of the input, so they share one.
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

  // A well-formed schedule wakes every rank through wake(). This finds those that a fault kept out of it.
  bool swept() {
    bool moved = false;
    for (int rank = 0; rank < schedule_.num_ranks(); ++rank) moved |= step(rank);
    return moved;
  }

  void wake(int stage, int micro) {
    if (inside(stage)) push(owner(stage, micro));
  }

  void push(int rank) {
    if (queued_[rank]) return;
    queued_[rank] = 1;
    ready_.push_back(rank);
  }

  void complete(const Visit& visit) {
    const Action& action = schedule_.programs[visit.rank][visit.index];
    next_[visit.rank] = visit.index + 1;
    if (action.op <= Op::RecvBackward && action.op != Op::WeightGrad) {
      const bool owned = owner(action.stage, action.micro) == visit.rank;
      done(action.op, action.stage, action.micro) = owned ? visit.index : kElsewhere;
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
        if (done(Op::InputGrad, action.stage, action.micro) == kNever) return false;
        break;
      case Op::SendForward:
        return send(rank, Op::Forward, +1) && woke(action, +1);
      case Op::SendBackward:
        return send(rank, Op::InputGrad, -1) && woke(action, -1);
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

  bool woke(const Action& action, int offset) {
    wake(action.stage + offset, action.micro);
    return true;
  }

  // F, B, I, or a fused pair, which runs when both may.
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
    for (int i = 0; i < count; ++i) {
      const Action& action = program[first + i];
      wake(action.stage + (action.op == Op::Forward ? +1 : -1), action.micro);
    }
    return true;
  }

  // Whether F, B or I has what it needs: its own forward, and the tensor of the stage before (or behind), by a receive
  // when that is elsewhere. Notes in `visit` what it waited for elsewhere.
  bool available(const Action& action, Visit& visit) {
    const bool forward = action.op == Op::Forward;
    if (!forward && done(Op::Forward, action.stage, action.micro) == kNever) return false;
    const int source = action.stage + (forward ? -1 : +1);
    if (!inside(source)) return true;
    const int source_rank = owner(source, action.micro);
    const bool transferred = comms_ && source_rank != visit.rank;
    const Op through = forward ? Op::RecvForward : Op::RecvBackward;
    const int index = transferred ? done(through, action.stage, action.micro) : done(action.op, source, action.micro);
    if (index == kNever) return false;
    if (!transferred && source_rank != visit.rank && index >= 0) {
      visit.after_rank = source_rank;
      visit.after_index = index;
    }
    return true;
  }

  bool send(int rank, Op made_by, int offset) {
    const Action& action = next_action(rank);
    const int stage = action.stage + offset;
    if (!inside(stage) || done(made_by, action.stage, action.micro) == kNever) return false;
    Visit visit{rank, next_[rank]};
    if (mode_ == SendMode::Buffered) {
      complete(visit);
      return true;
    }
    const int peer = owner(stage, action.micro);
    const Op wanted = action.op == Op::SendForward ? Op::RecvForward : Op::RecvBackward;
    if (peer == rank || at_end(peer) || next_action(peer) != Action{wanted, stage, action.micro}) return false;
    visit.after_rank = peer;
    visit.after_index = next_[peer];
    complete(visit);
    complete({peer, visit.after_index, rank, visit.index});
    return true;
  }

  bool receive(int rank, Op sent_by, int offset) {
    const Action& action = next_action(rank);
    const int stage = action.stage + offset;
    if (!inside(stage)) return false;
    const int peer = owner(stage, action.micro);
    if (mode_ == SendMode::Rendezvous) {
      // The sender runs the pair, so let it try now that this receive is reached.
      const Action match{sent_by, stage, action.micro};
      if (peer == rank || at_end(peer) || next_action(peer) != match || !step(peer)) return false;
      push(peer);
      return true;
    }
    const int index = done(sent_by, stage, action.micro);
    if (index == kNever) return false;
    complete(index >= 0 ? Visit{rank, next_[rank], peer, index} : Visit{rank, next_[rank]});
    return true;
  }

  const Schedule& schedule_;
  const SendMode mode_;
  const std::function<void(const Visit&)>& visit_;
  const bool comms_;
  const size_t slots_;        // ops that are kept in done_
  const size_t row_;          // of done_: one stage
  std::vector<int> done_;     // by stage, microbatch and slot: the index in the program that ran it
  std::vector<int> next_;     // by rank
  std::vector<int> ready_;    // ranks that may be able to move
  std::vector<char> queued_;  // by rank: whether it is among them
};

}  // namespace

std::vector<int> walk(const Schedule& schedule, SendMode mode, const std::function<void(const Visit&)>& visit) {
  return Walker(schedule, mode, visit).run();
}

}  // namespace braid
