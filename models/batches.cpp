#include "cairn/models/batches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/core/op.h"
#include "cairn/core/support/random.h"

namespace cairn::models {
namespace {

using core::ElementType;
using core::Resident;

/// Returns random numbers that depend on the seed and on one more number.
core::Random random_of(std::uint64_t seed, std::int64_t number) {
  core::Random first(seed);
  return core::Random(first.next() + static_cast<std::uint64_t>(number) * 0x9e3779b97f4a7c15ULL);
}

std::int64_t random_below(core::Random& random, std::int64_t limit) {
  return static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(limit));
}

/// Returns the data inputs of the graph that its ops read, other than numbers of the optimizer.
std::vector<const Resident*> inputs_of(const core::Graph& graph) {
  std::vector<const Resident*> inputs;
  for (const Resident& resident : graph.residents()) {
    if (resident.role == Resident::Role::data && core::element_count(resident.shape) > 1) inputs.push_back(&resident);
  }
  return inputs;
}

std::string list(const std::vector<const Resident*>& inputs) {
  std::vector<std::string> texts;
  for (const Resident* input : inputs) {
    texts.push_back(
        fmt::format("'{}' ({} [{}])", input->name, core::to_string(input->type), fmt::join(input->shape, ", ")));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// Returns the number of classes that the losses of the graph distinguish: the last extent of the logits.
std::int64_t classes_of(const core::Graph& graph) {
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    const core::Op* op = graph.op(v);
    if (op == nullptr || op->kind != core::OpKind::cross_entropy || op->args[0].kind != core::Operand::Kind::node)
      continue;
    return graph.op(op->args[0].index)->shape.back();
  }
  return 0;
}

/// Returns the number of test examples that fit into batches: images, or passages that do not overlap.
std::int64_t test_count(const Dataset& set, std::int64_t length) {
  const std::int64_t examples = set.examples - set.training;
  return set.kind == Dataset::Kind::text ? (examples - 1) / length : examples;
}

}  // namespace

Batches::Batches(const Dataset& set, const core::Graph& graph, std::uint64_t seed) : set_(set), seed_(seed) {
  find_inputs(graph);
}

void Batches::find_inputs(const core::Graph& graph) {
  const std::vector<const Resident*> inputs = inputs_of(graph);
  const auto fail = [&](const std::string& why) {
    throw core::InputError(fmt::format("'{}' cannot be trained on {}: {}; its inputs are {}", graph.name(), set_.name,
                                       why, inputs.empty() ? "none" : list(inputs)));
  };
  const bool text = set_.kind == Dataset::Kind::text;
  const char* wanted = text ? "a text needs two inputs of int32 [batch, length]: tokens and labels"
                            : "images need fp32 images [batch, height, width, channels] and int32 labels [batch], or "
                              "fp32 inputs and targets [batch, elements]";
  if (inputs.size() != 2) fail(wanted);
  const Resident &x = *inputs[0], &y = *inputs[1];
  input_ = x.name, label_ = y.name;
  shape_ = x.shape, label_shape_ = y.shape;
  batch_size_ = shape_.front();
  const bool integers = x.type == ElementType::i32, labels = y.type == ElementType::i32;
  if (text) {
    if (!integers || !labels || shape_.size() != 2 || label_shape_ != shape_) fail(wanted);
    if (shape_[1] + 1 > set_.examples - set_.training)
      fail(fmt::format("passages of {} characters are too long; the test part has {}", shape_[1],
                       set_.examples - set_.training));
  } else if (labels) {
    if (integers || shape_.size() != 4 || label_shape_ != core::Shape{batch_size_}) fail(wanted);
    if (shape_[1] < set_.height || shape_[2] < set_.width)
      fail(fmt::format("images must have at least {} x {} pixels", set_.height, set_.width));
  } else {
    if (integers || shape_.size() != 2 || label_shape_.size() != 2 || label_shape_[0] != batch_size_) fail(wanted);
    if (shape_[1] < set_.height * set_.width)
      fail(fmt::format("inputs must have at least {} elements", set_.height * set_.width));
    if (label_shape_[1] < set_.classes) fail(fmt::format("targets must have at least {} elements", set_.classes));
  }
  if (labels && classes_of(graph) < set_.classes)
    fail(fmt::format("it distinguishes {} classes, but the data has {}", classes_of(graph), set_.classes));
}

std::int64_t Batches::image_of(std::int64_t position) const {
  const std::int64_t epoch = position / set_.training;
  if (epoch != epoch_) {
    order_.resize(static_cast<std::size_t>(set_.training));
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
    core::Random random = random_of(seed_, epoch);
    for (std::int64_t i = set_.training - 1; i > 0; --i) std::swap(order_[i], order_[random_below(random, i + 1)]);
    epoch_ = epoch;
  }
  return order_[static_cast<std::size_t>(position % set_.training)];
}

Batch Batches::training(std::int64_t step) const {
  std::vector<std::int64_t> examples;
  core::Random random = random_of(seed_, step);
  for (std::int64_t i = 0; i < batch_size_; ++i) {
    examples.push_back(set_.kind == Dataset::Kind::text ? random_below(random, set_.training - shape_[1])
                                                        : image_of(step * batch_size_ + i));
  }
  Batch batch = make(examples);
  batch.examples = batch_size_;
  return batch;
}

std::int64_t Batches::test_batches() const { return (test_count(set_, shape_[1]) + batch_size_ - 1) / batch_size_; }

std::vector<std::int64_t> Batches::test_examples(std::int64_t index) const {
  const std::int64_t count = test_count(set_, shape_[1]);
  std::vector<std::int64_t> examples;
  for (std::int64_t i = index * batch_size_; i < std::min(count, (index + 1) * batch_size_); ++i) {
    examples.push_back(set_.training + (set_.kind == Dataset::Kind::text ? i * shape_[1] : i));
  }
  return examples;
}

Batch Batches::test(std::int64_t index) const {
  std::vector<std::int64_t> examples = test_examples(index);
  const auto different = std::ssize(examples);
  for (std::int64_t i = different; i < batch_size_; ++i)
    examples.push_back(examples[static_cast<std::size_t>(i % different)]);
  Batch batch = make(examples);
  batch.examples = different;
  return batch;
}

std::vector<std::int32_t> Batches::test_labels(std::int64_t index) const {
  std::vector<std::int32_t> labels;
  for (const std::int64_t example : test_examples(index))
    labels.push_back(set_.labels[static_cast<std::size_t>(example)]);
  return labels;
}

Batch Batches::make(const std::vector<std::int64_t>& examples) const {
  if (set_.kind == Dataset::Kind::text) return passages(examples);
  return shape_.size() == 4 ? images(examples) : vectors(examples);
}

Batch Batches::images(const std::vector<std::int64_t>& examples) const {
  std::vector<float> pixels;
  pixels.reserve(static_cast<std::size_t>(core::element_count(shape_)));
  std::vector<std::int32_t> labels;
  for (const std::int64_t example : examples) {
    const float* image = set_.pixels.data() + example * set_.height * set_.width;
    for (std::int64_t y = 0; y < shape_[1]; ++y) {
      for (std::int64_t x = 0; x < shape_[2]; ++x) {
        const float pixel = image[y * set_.height / shape_[1] * set_.width + x * set_.width / shape_[2]];
        pixels.insert(pixels.end(), static_cast<std::size_t>(shape_[3]), pixel);
      }
    }
    labels.push_back(set_.labels[static_cast<std::size_t>(example)]);
  }
  return {{{input_, std::move(pixels)}, {label_, std::move(labels)}}};
}

Batch Batches::vectors(const std::vector<std::int64_t>& examples) const {
  const std::int64_t pixels = set_.height * set_.width;
  std::vector<float> inputs(static_cast<std::size_t>(core::element_count(shape_)));
  std::vector<float> targets(static_cast<std::size_t>(core::element_count(label_shape_)));
  for (std::size_t i = 0; i < examples.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    std::copy_n(set_.pixels.begin() + examples[i] * pixels, pixels, inputs.begin() + row * shape_[1]);
    targets[static_cast<std::size_t>(row * label_shape_[1] + set_.labels[static_cast<std::size_t>(examples[i])])] = 1;
  }
  return {{{input_, std::move(inputs)}, {label_, std::move(targets)}}};
}

Batch Batches::passages(const std::vector<std::int64_t>& starts) const {
  std::vector<std::int32_t> tokens, labels;
  for (const std::int64_t start : starts) {
    const auto begin = set_.labels.begin() + start;
    tokens.insert(tokens.end(), begin, begin + shape_[1]);
    labels.insert(labels.end(), begin + 1, begin + 1 + shape_[1]);
  }
  return {{{input_, std::move(tokens)}, {label_, std::move(labels)}}};
}

}  // namespace cairn::models
