#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/models/dataset.h"

namespace cairn::models {

/// Values of one input of a training step.
struct InputValues {
  std::string name;  ///< of the graph's resident tensor
  std::variant<std::vector<float>, std::vector<std::int32_t>> values;
};

/// What the inputs of a graph hold in one step.
struct Batch {
  std::vector<InputValues> inputs;
  std::int64_t examples = 0;  ///< number of different examples; above it, a test batch repeats the first ones
};

/// Divides a data set into batches for the inputs of a graph.
///
/// Images fit a graph with fp32 images [N, H, W, C] and int32 labels [N] (they are enlarged to H x W by repeating
/// pixels, and copied to all C channels), or a graph with fp32 inputs [N, K] and targets [N, M], where K is at least
/// the number of pixels (the others are 0), and targets are 1 for the label and 0 elsewhere. A text fits a graph with
/// int32 tokens [N, S] and labels [N, S], where the label of a character is the next character.
///
/// A batch depends only on the seed and on its number, so a training can be continued at any step.
class Batches {
 public:
  /// `shift` is the largest number of pixels by which training() moves each image, at random in both directions, so
  /// that the network learns from more images than the data set has. Throws InputError, which names the inputs and says
  /// what the data set needs, if it does not fit the graph. `set` must outlive the object.
  Batches(const Dataset& set, const core::Graph& graph, std::uint64_t seed, std::int64_t shift = 0);

  std::int64_t batch_size() const { return batch_size_; }
  /// Returns batch `step`, counted from 0. Every image of the training part stands in one batch of each epoch, in an
  /// order that the epoch's number and the seed determine. Passages of a text begin at random places.
  Batch training(std::int64_t step) const;
  /// Returns the number of batches of the test part.
  std::int64_t test_batches() const;
  Batch test(std::int64_t index) const;
  /// Returns the labels of a test batch, one for each example.
  std::vector<std::int32_t> test_labels(std::int64_t index) const;

 private:
  void find_inputs(const core::Graph& graph);
  /// An image of the data set, moved by `right` and `down` pixels. For a text, the place where a passage begins.
  struct Example {
    std::int64_t index = 0;
    std::int64_t right = 0, down = 0;
  };

  Batch make(const std::vector<Example>& examples) const;
  Batch images(const std::vector<Example>& examples) const;
  Batch vectors(const std::vector<Example>& examples) const;
  Batch passages(const std::vector<Example>& starts) const;
  /// Returns a pixel of an example; those that are moved in from outside are as dark as the darkest of all images.
  float pixel(const Example& example, std::int64_t x, std::int64_t y) const;
  std::int64_t image_of(std::int64_t position) const;
  std::vector<Example> test_examples(std::int64_t index) const;

  const Dataset& set_;
  std::uint64_t seed_;
  std::int64_t shift_;
  float dark_ = 0;  ///< the least value of a pixel
  std::int64_t batch_size_ = 0;
  std::string input_, label_;        ///< names of the resident tensors
  core::Shape shape_, label_shape_;  ///< their shapes
  mutable std::int64_t epoch_ = -1;  ///< the epoch that order_ is for
  mutable std::vector<std::int64_t> order_;
};

}  // namespace cairn::models
