// A schedule as a table, and that what is accepted can be judged, drawn, and written so that it is the same again.
#include "braid/base/errors.h"
#include "braid/schedule/csv.h"
#include "braid/schedule/generators.h"
#include "braid/schedule/validate.h"
#include "tests/fuzz/target.h"

namespace braid::fuzz {

using namespace schedule;

namespace {

void run_schedule_table(const std::string& input) {
  const Schedule schedule = from_csv(input, "table");
  const auto faults = validate(schedule, SendMode::Buffered);
  print(schedule, faults);
  validate(schedule, SendMode::Rendezvous);
  const std::string table = to_csv(schedule);
  check(to_csv(from_csv(table, "table")) == table, "a table that is written out is the same again");
}

std::vector<std::string> schedule_table_seeds() {
  return {"0F0,,0B0\n", "0F0,0F1,,0B0,0B1\n,1F0,1B0,1F1,1B1\n",
          "0F0,0SEND_F0,0RECV_B0,0I0,0W0\n1RECV_F0,1F0,1B0,1SEND_B0\n", "0UNSHARD,0F0,0B0,0RESHARD,0REDUCE_GRAD\n"};
}

}  // namespace

Target schedule_table_target() {
  return {"schedule_table",
          run_schedule_table,
          schedule_table_seeds,
          {"0F0",
           "1F1",
           "0B0",
           "1B1",
           "0I0",
           "0W0",
           "0SEND_F0",
           "1RECV_F0",
           "1SEND_B0",
           "0RECV_B0",
           "0UNSHARD",
           "0RESHARD",
           "0REDUCE_GRAD",
           "0UPDATE0",
           "0RECOMPUTE0",
           "(0F1;0B0)OVERLAP_F_B",
           ",",
           "\n",
           "2147483647F0",
           "0F2147483647",
           " "}};
}

}  // namespace braid::fuzz
