// A round of a collective over Gloo: a stretch of its elements, exchanged between all members at once.
//
//   kind             gives on the line First to member m   gets from m, into       and then
//   all_reduce       little, or of two ranks: the stretch  scratch                 combines all, once its own is given
//                    else: share m of the stretch          scratch                 combines share `rank`, and on the
//                                                                                  line Second gives it to all
//     by the engine  nothing                               nothing                 EngineAllReduce
//   reduce_scatter   the stretch of chunk m                scratch                 combines all
//   all_to_all       the stretch of chunk m                chunk m
//   all_gather       the stretch                           chunk m
//   broadcast        the root: the stretch                 from the root alone
//   barrier          nothing                               nothing
//   split            the stretch                           chunk m
//
// What is given on the line First carries the call, by which members see that theirs differ.
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <functional>
#include <span>

#include "braid/comm/gloo/match_table.h"
#include "braid/comm/gloo/operation.h"
#include "braid/comm/local/combine.h"

namespace braid::comm::gloo {

// What all rounds of a collective have in common.
struct RoundTask {
  std::shared_ptr<const Group> group;
  Call call;
  at::Tensor tensors[2];  // kept alive
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  comm::local::Combine combine = nullptr;
  int64_t element_bytes = 1;
  int64_t capacity = 1;  // elements of a chunk in a round
  int64_t rounds = 1;
  enum class Sum { Whole, Shares, Engine } sum = Sum::Whole;  // of all_reduce

  int64_t scratch_bytes() const;  // of a round
};

class Round final : public std::enable_shared_from_this<Round>, private Message::Owner {
 public:
  struct Ways {
    MatchTable& post;
    std::function<void(const at::Tensor&, std::function<void()> done)> engine_sum;
    std::function<void()> done;  // the last thing that a round calls
    int tag;                     // of its parcels, the same on all members
  };
  // `task` outlives this; `scratch` has its scratch_bytes().
  Round(const RoundTask& task, int64_t number, at::Tensor scratch, Ways ways);

  void start();

  // Of the line First: world ranks whose part has not come, and one whose part never will, or -1.
  std::vector<int> missing() const;
  int lost() const;
  const at::Tensor& scratch() const { return scratch_; }

 private:
  struct Share {
    int64_t begin, end;  // elements of the stretch
  };
  struct Place {
    std::byte* data;
    int64_t count;  // elements
  };

  Share share(int member) const;
  Place given(int member) const;
  Place place_of(int member) const;
  void make(Route::Line line);
  void add_parcel(Route::Line line, Message::Side side, int member, const Place& place);
  void post(std::deque<Message>& parcels);
  void parcel_done(const Message& parcel) override;
  bool awaits(Message::Side side) const;
  void got_line();
  void after_first();
  void combine(int64_t begin, int64_t end, std::byte* out);
  void leave_one();
  std::byte* scratch_of(int member) const;

  const RoundTask& task_;
  const int64_t first_, count_;  // elements of a chunk: the stretch
  at::Tensor scratch_;
  const Ways ways_;
  std::deque<Message> lines_[2];
  int line_ = 0;
  std::atomic<int> awaited_{0};  // parcels of the line that what follows waits for, and one until all are posted
  std::atomic<int> open_{1};     // parcels that are not done, and one until nothing else is to do
};

}  // namespace braid::comm::gloo
