// Sums from the likeliest on.
#include "braid/train/token_choice.h"

namespace braid {

size_t chosen_place(std::span<const double> probabilities, double top_p, double draw) {
  size_t count = probabilities.size();
  double mass = 1;
  if (top_p < 1) {
    mass = probabilities[0];
    for (count = 1; count < probabilities.size() && mass < top_p; ++count) mass += probabilities[count];
  }
  size_t place = 0;
  for (double below = probabilities[0]; place + 1 < count && draw * mass >= below; below += probabilities[++place]) {
  }
  return place;
}

}  // namespace braid
