#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cairn/core/graph.h"
#include "cairn/models/dataset.h"

namespace cairn::models {

/// Values of one input of a training step.
struct InputValues {
  std::string name;  ///< name of the graph's resident tensor
  std::variant<std::vector<float>, std::vector<std::int32_t>> values;
};

/// Holds the values of all inputs of a graph in one training step.
struct Batch {
  std::vector<InputValues> inputs;
  std::int64_t examples = 0;  ///< number of different examples; the rest of the batch repeats the first ones
};

/// Returns the node that computes the loss of a training step: the first kept loss that reads predictions of another
/// node. Returns std::nullopt if there is none. O(nodes).
std::optional<core::NodeId> loss_node(const core::Graph& graph);

/// Divides a data set into batches for the inputs of a graph.
///
/// A data set of images fits two kinds of graphs. The first kind has fp32 images [N, H, W, C] and int32 labels [N];
/// each image of the data set is enlarged to H x W by repeating pixels, and copied to all C channels. The second kind
/// has fp32 inputs [N, K] and fp32 targets [N, M]. Here K must be at least the number of pixels of an image; the
/// remaining inputs are 0. The target is 1 at the index of the label and 0 elsewhere. A text fits a graph with int32
/// tokens [N, S] and labels [N, S], where the label of a character is the next character.
///
/// The content of a batch depends only on the seed and on the batch's number, so a training run can be continued at any
/// step.
class Batches {
 public:
  /// training() moves each image by at most `shift` pixels along each of its two axes, at random, so that the network
  /// learns from more images than the data set has. Throws InputError if the data set does not fit the
  /// graph; the message names the graph's inputs and says which inputs the data set needs. `set` must outlive the
  /// object.
  Batches(const Dataset& set, const core::Graph& graph, std::uint64_t seed, std::int64_t shift = 0);

  std::int64_t batch_size() const { return batch_size_; }
  /// Returns batch `step`, counted from 0. In each epoch, every image of the training part is in one batch. The order
  /// of the images depends on the number of the epoch and on the seed. Passages of a text begin at random places.
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
  /// Returns pixel (x, y) of an example. Pixels that the move brings in from outside of the image have the value of the
  /// darkest pixel of all images.
  float pixel(const Example& example, std::int64_t x, std::int64_t y) const;
  std::int64_t image_of(std::int64_t position) const;
  std::vector<Example> test_examples(std::int64_t index) const;

  const Dataset& set_;
  std::uint64_t seed_;
  std::int64_t shift_;
  float dark_ = 0;  ///< the least value of a pixel
  std::int64_t batch_size_ = 0;
  std::string input_, label_;        ///< names of the resident tensors of the inputs and the labels
  core::Shape shape_, label_shape_;  ///< shapes of these two tensors
  mutable std::int64_t epoch_ = -1;  ///< the epoch whose order of images is in order_
  mutable std::vector<std::int64_t> order_;
};

}  // namespace cairn::models
