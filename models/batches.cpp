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

/// Returns a random generator whose numbers depend on `seed` and on `number`.
core::Random random_of(std::uint64_t seed, std::int64_t number) {
  // Seed and number are both hashed, because two generators whose states are close to each other could return
  // overlapping sequences.
  return core::Random(core::Random(seed).next() ^ core::Random(~static_cast<std::uint64_t>(number)).next());
}

std::int64_t random_below(core::Random& random, std::int64_t limit) {
  return static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(limit));
}

/// Returns the resident tensors with the role `data` that hold inputs of the model. Tensors that only updates of
/// weights read, such as the learning rate, are left out.
std::vector<const Resident*> inputs_of(const core::Graph& graph) {
  std::vector<bool> read(graph.residents().size());
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    const core::Op* op = graph.op(v);
    if (op == nullptr || core::is_update(op->kind)) continue;
    for (const core::Operand& arg : op->args) {
      if (arg.kind == core::Operand::Kind::resident) read[static_cast<std::size_t>(arg.index)] = true;
    }
  }
  std::vector<const Resident*> inputs;
  for (std::size_t i = 0; i < read.size(); ++i) {
    const Resident& resident = graph.residents()[i];
    if (read[i] && resident.role == Resident::Role::data) inputs.push_back(&resident);
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

/// Returns the loss whose targets the data set gives: that of loss_node() or, if there is none, the first one. Returns
/// nullptr if the graph has no loss.
const core::Op* loss_of(const core::Graph& graph) {
  if (const std::optional<core::NodeId> node = loss_node(graph)) return graph.op(*node);
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    const core::Op* op = graph.op(v);
    if (op != nullptr && core::is_loss(op->kind)) return op;
  }
  return nullptr;
}

/// Returns the resident tensor that a loss compares the predictions with, or nullptr if an op computes it.
const Resident* targets_of(const core::Graph& graph, const core::Op& loss) {
  const core::Operand& target = loss.args[1];
  return target.kind == core::Operand::Kind::resident ? &graph.residents()[static_cast<std::size_t>(target.index)]
                                                      : nullptr;
}

/// Returns the number of classes that a loss with labels distinguishes: the last extent of the logits; 0 if no op
/// computes them.
std::int64_t classes_of(const core::Graph& graph, const core::Op& loss) {
  const core::Operand& logits = loss.args[0];
  if (loss.kind != core::OpKind::cross_entropy || logits.kind != core::Operand::Kind::node) return 0;
  const core::Shape shape = core::output_shape(*graph.op(logits.index), logits.output);
  return shape.empty() ? 1 : shape.back();
}

/// Returns the number of test examples: all test images, or the number of passages of `length` characters into which
/// the test part of a text can be divided.
std::int64_t test_count(const Dataset& set, std::int64_t length) {
  const std::int64_t examples = set.examples - set.training;
  return set.kind == Dataset::Kind::text ? (examples - 1) / length : examples;
}

}  // namespace

std::optional<core::NodeId> loss_node(const core::Graph& graph) {
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    const core::Op* op = graph.op(v);
    if (op == nullptr || !graph.keep(v) || !core::is_loss(op->kind)) continue;
    if (op->args[0].kind == core::Operand::Kind::node) return v;
  }
  return std::nullopt;
}

Batches::Batches(const Dataset& set, const core::Graph& graph, std::uint64_t seed, std::int64_t shift)
    : set_(set), seed_(seed), shift_(shift), dark_(set.pixels.empty() ? 0 : std::ranges::min(set.pixels)) {
  find_inputs(graph);
}

float Batches::pixel(const Example& example, std::int64_t x, std::int64_t y) const {
  const std::int64_t from_x = x - example.right, from_y = y - example.down;
  if (from_x < 0 || from_x >= set_.width || from_y < 0 || from_y >= set_.height) return dark_;
  return set_.pixels[static_cast<std::size_t>((example.index * set_.height + from_y) * set_.width + from_x)];
}

void Batches::find_inputs(const core::Graph& graph) {
  std::vector<const Resident*> inputs = inputs_of(graph);
  const auto fail = [&](const std::string& why) {
    throw core::InputError(fmt::format("'{}' cannot be trained on {}: {}; its inputs are {}", graph.name(), set_.name,
                                       why, inputs.empty() ? "none" : list(inputs)));
  };
  const bool text = set_.kind == Dataset::Kind::text;
  const char* wanted = text ? "a text needs two inputs of int32 [batch, length]: tokens and labels"
                            : "images need fp32 images [batch, height, width, channels] and int32 labels [batch], or "
                              "fp32 inputs and targets [batch, elements]";
  if (inputs.size() != 2) fail(wanted);
  const core::Op* loss = loss_of(graph);
  if (loss == nullptr) fail("it has no loss");
  if (inputs[0] == targets_of(graph, *loss)) std::swap(inputs[0], inputs[1]);
  const Resident &x = *inputs[0], &y = *inputs[1];
  input_ = x.name, label_ = y.name;
  shape_ = x.shape, label_shape_ = y.shape;
  if (shape_.empty() || label_shape_.empty()) fail(wanted);
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
  const std::int64_t classes = labels ? classes_of(graph, *loss) : set_.classes;
  if (classes < set_.classes)
    fail(fmt::format("it distinguishes {} classes, but the data has {}", classes, set_.classes));
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
  std::vector<Example> examples;
  core::Random random = random_of(seed_, step);
  const auto offset = [&] { return random_below(random, 2 * shift_ + 1) - shift_; };
  for (std::int64_t i = 0; i < batch_size_; ++i) {
    if (set_.kind == Dataset::Kind::text) {
      examples.push_back({random_below(random, set_.training - shape_[1])});
    } else {
      const std::int64_t right = offset(), down = offset();
      examples.push_back({image_of(step * batch_size_ + i), right, down});
    }
  }
  Batch batch = make(examples);
  batch.examples = batch_size_;
  return batch;
}

std::int64_t Batches::test_batches() const { return (test_count(set_, shape_[1]) + batch_size_ - 1) / batch_size_; }

std::vector<Batches::Example> Batches::test_examples(std::int64_t index) const {
  const std::int64_t count = test_count(set_, shape_[1]);
  std::vector<Example> examples;
  for (std::int64_t i = index * batch_size_; i < std::min(count, (index + 1) * batch_size_); ++i) {
    examples.push_back({set_.training + (set_.kind == Dataset::Kind::text ? i * shape_[1] : i)});
  }
  return examples;
}

Batch Batches::test(std::int64_t index) const {
  std::vector<Example> examples = test_examples(index);
  const auto different = std::ssize(examples);
  for (std::int64_t i = different; i < batch_size_; ++i)
    examples.push_back(examples[static_cast<std::size_t>(i % different)]);
  Batch batch = make(examples);
  batch.examples = different;
  return batch;
}

std::vector<std::int32_t> Batches::test_labels(std::int64_t index) const {
  std::vector<std::int32_t> labels;
  for (const Example& example : test_examples(index))
    labels.push_back(set_.labels[static_cast<std::size_t>(example.index)]);
  return labels;
}

Batch Batches::make(const std::vector<Example>& examples) const {
  if (set_.kind == Dataset::Kind::text) return passages(examples);
  return shape_.size() == 4 ? images(examples) : vectors(examples);
}

Batch Batches::images(const std::vector<Example>& examples) const {
  std::vector<float> pixels;
  pixels.reserve(static_cast<std::size_t>(core::element_count(shape_)));
  std::vector<std::int32_t> labels;
  for (const Example& example : examples) {
    for (std::int64_t y = 0; y < shape_[1]; ++y) {
      for (std::int64_t x = 0; x < shape_[2]; ++x) {
        const float value = pixel(example, x * set_.width / shape_[2], y * set_.height / shape_[1]);
        pixels.insert(pixels.end(), static_cast<std::size_t>(shape_[3]), value);
      }
    }
    labels.push_back(set_.labels[static_cast<std::size_t>(example.index)]);
  }
  return {{{input_, std::move(pixels)}, {label_, std::move(labels)}}};
}

Batch Batches::vectors(const std::vector<Example>& examples) const {
  std::vector<float> inputs(static_cast<std::size_t>(core::element_count(shape_)));
  std::vector<float> targets(static_cast<std::size_t>(core::element_count(label_shape_)));
  auto input = inputs.begin(), target = targets.begin();
  for (const Example& example : examples) {
    for (std::int64_t i = 0; i < set_.height * set_.width; ++i)
      input[i] = pixel(example, i % set_.width, i / set_.width);
    target[set_.labels[static_cast<std::size_t>(example.index)]] = 1;
    input += shape_[1];
    target += label_shape_[1];
  }
  return {{{input_, std::move(inputs)}, {label_, std::move(targets)}}};
}

Batch Batches::passages(const std::vector<Example>& starts) const {
  std::vector<std::int32_t> tokens, labels;
  for (const Example& start : starts) {
    const auto begin = set_.labels.begin() + start.index;
    tokens.insert(tokens.end(), begin, begin + shape_[1]);
    labels.insert(labels.end(), begin + 1, begin + 1 + shape_[1]);
  }
  return {{{input_, std::move(tokens)}, {label_, std::move(labels)}}};
}

}  // namespace cairn::models
