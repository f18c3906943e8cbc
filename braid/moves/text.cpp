#include "braid/moves/text.h"

#include <algorithm>

#include "braid/base/text.h"

namespace braid::moves {

std::string to_csv(const Trace& trace, const Table& table) {
  std::string text = "after,move,chunk,bytes,before\n";
  auto load = table.loads.begin();
  auto eviction = table.evictions.begin();
  for (int use = -1; use < table.num_uses(); ++use) {
    for (; eviction != table.evictions.end() && eviction->after == use; ++eviction) {
      text += cat(use, eviction->fate == Fate::Write ? ",write," : ",drop,", eviction->chunk, ",",
                  trace.chunks[eviction->chunk].bytes, ",\n");
    }
    for (; load != table.loads.end() && load->after == use; ++load) {
      text += cat(use, ",load,", load->chunk, ",", trace.chunks[load->chunk].bytes, ",", load->before, "\n");
    }
  }
  return text;
}

std::string grid(const Trace& trace, const Table& table) {
  const int num_uses = table.num_uses();
  std::vector<std::string> rows(trace.chunks.size(), std::string(num_uses, '.'));
  for (const int chunk : table.initial) std::fill(rows[chunk].begin(), rows[chunk].end(), '-');
  // Each chunk's row changes at its moves, so those of later uses overwrite those of earlier ones.
  auto load = table.loads.begin();
  auto eviction = table.evictions.begin();
  for (int use = -1; use < num_uses; ++use) {
    for (; eviction != table.evictions.end() && eviction->after == use; ++eviction) {
      std::string& row = rows[eviction->chunk];
      std::fill(row.begin() + use + 1, row.end(), '.');
    }
    for (; load != table.loads.end() && load->after == use; ++load) {
      std::string& row = rows[load->chunk];
      std::fill(row.begin() + use + 1, row.begin() + load->before, '<');
      std::fill(row.begin() + load->before, row.end(), '-');
    }
  }
  for (int use = 0; use < num_uses; ++use) {
    for (const int chunk : trace.uses[use % table.uses_per_step].chunks) rows[chunk][use] = 'U';
  }
  std::string text;
  const size_t width = std::to_string(trace.chunks.size() - 1).size();
  for (size_t chunk = 0; chunk < rows.size(); ++chunk) {
    const std::string number = std::to_string(chunk);
    text += cat("chunk ", std::string(width - number.size(), ' '), number, " ");
    for (const char cell : rows[chunk]) text += {' ', cell};
    text += "\n";
  }
  return text;
}

}  // namespace braid::moves
