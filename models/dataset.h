#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::models {

/// A small data set that is part of this library, divided into a training part and a test part.
struct Dataset {
  enum class Kind : std::uint8_t {
    images,  ///< greyscale images, each with a label
    text,    ///< one text, as a sequence of characters
  };
  std::string_view name;
  Kind kind = Kind::images;

  /// Number of possible labels, or of different characters.
  std::int64_t classes = 0;
  /// Number of examples (images or characters). The first `training` examples are for training, and all later examples
  /// for tests.
  std::int64_t examples = 0, training = 0;
  /// For images, the label of each image. For a text, its characters in order, each as an index in `alphabet`.
  std::vector<std::int32_t> labels;

  std::int64_t height = 0, width = 0;  ///< pixels of an image
  /// The images' pixels, row by row. Their mean is 0 and their standard deviation 1 over the training part.
  std::vector<float> pixels;
  std::string alphabet;  ///< the different characters of a text, in ascending order
};

struct DatasetInfo {
  std::string_view name;
  std::string_view summary;  ///< what the data set holds, where it comes from, and its licence
};
std::span<const DatasetInfo> datasets();

/// Returns the data set named `name`. Throws InputError if there is none; the message suggests the nearest name.
Dataset load_dataset(std::string_view name);

}  // namespace cairn::models
