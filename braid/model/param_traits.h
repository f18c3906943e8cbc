// The properties of a parameter that do not depend on its layout: initial values, weight decay, linear map.
#pragma once

namespace braid::model {

// The kind of initial values. For the element with flattened *global* index i, Normal takes draw i of stream_key(seed,
// name). So the values do not depend on the layout.
struct Init {
  enum class Kind { Zeros, Ones, Normal } kind = Kind::Zeros;
  double std = 0;
  bool operator==(const Init&) const = default;
};

enum class WeightDecay { Yes, No };

// Yes: a matrix that maps features to features, which an optimizer may update as a whole. No: all other parameters,
// such as a table whose rows belong to tokens or positions.
enum class LinearMap { Yes, No };

// No: a frozen parameter, which keeps the values that training begins with. It has no gradient.
enum class Trained { Yes, No };

}  // namespace braid::model
