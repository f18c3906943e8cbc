// Numbers of eight bytes and names, one after another.
#include "braid/ckpt/listing.h"

#include <cstring>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/tensor_bytes.h"

namespace braid::ckpt {
namespace {

void put(std::string& text, int64_t number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  text.append(bytes, sizeof number);
}

void put(std::string& text, const mesh::Index& index) {
  for (const int64_t number : index) put(text, number);
}

class ListingReader {
 public:
  explicit ListingReader(std::string_view text) : text_(text) {}

  bool at_end() const { return text_.empty(); }
  std::string_view bytes(size_t count) {
    check(count <= text_.size(), "a listing is as long as it says");
    const auto taken = text_.substr(0, count);
    text_.remove_prefix(count);
    return taken;
  }
  int64_t number() {
    int64_t value = 0;
    std::memcpy(&value, bytes(sizeof value).data(), sizeof value);
    return value;
  }
  mesh::Index index(size_t dims) {
    mesh::Index index;
    for (size_t d = 0; d < dims; ++d) index.push_back(number());
    return index;
  }

 private:
  std::string_view text_;
};

}  // namespace

std::vector<ListedTensor> listed(const std::vector<PlacedTensor>& tensors) {
  std::vector<ListedTensor> listing;
  for (const auto& [name, placement, local] : tensors) {
    check(local.sizes().equals(placement.local_shape) && local.is_contiguous(),
          cat("tensor ", name, " is contiguous and has its placement's local shape"));
    ListedTensor item{{name, element_type(local.scalar_type()), placement.global_shape}, {}};
    for (const mesh::Piece& piece : placement.pieces) {
      if (!piece.global.empty()) item.boxes.push_back(piece.global);
    }
    listing.push_back(std::move(item));
  }
  return listing;
}

std::string packed(const std::vector<ListedTensor>& listing) {
  std::string text;
  for (const auto& [info, boxes] : listing) {
    put(text, static_cast<int64_t>(info.name.size()));
    text += info.name;
    put(text, static_cast<int64_t>(info.type));
    put(text, static_cast<int64_t>(info.shape.size()));
    put(text, info.shape);
    put(text, static_cast<int64_t>(boxes.size()));
    for (const mesh::Box& box : boxes) {
      put(text, box.begin);
      put(text, box.end);
    }
  }
  return text;
}

std::vector<ListedTensor> unpacked_listing(std::string_view text) {
  std::vector<ListedTensor> listing;
  for (ListingReader reader(text); !reader.at_end();) {
    ListedTensor item;
    item.info.name = reader.bytes(static_cast<size_t>(reader.number()));
    item.info.type = static_cast<ElementType>(reader.number());
    const auto dims = static_cast<size_t>(reader.number());
    item.info.shape = reader.index(dims);
    for (int64_t left = reader.number(); left > 0; --left) {
      mesh::Box box{reader.index(dims), {}};
      box.end = reader.index(dims);
      item.boxes.push_back(std::move(box));
    }
    listing.push_back(std::move(item));
  }
  return listing;
}

}  // namespace braid::ckpt
