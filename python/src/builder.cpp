#include "cairn/models/builder.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "cairn/core/error.h"
#include "cairn/models/autodiff.h"
#include "cairn/models/registry.h"
#include "cairn/python/src/bindings.h"

namespace cairn::python {
namespace {

using core::Shape;
using models::ModelBuilder;

/// The Python class Symbol: a tensor of a model that is being built.
struct Symbol {
  models::Tensor tensor;
  std::uint64_t builder = 0;  ///< Builder::number_ of the Builder that made the tensor
};

/// The Python class Builder. A Symbol is only valid in the Builder that made it, so tensors of other Builders are
/// rejected.
class Builder {
 public:
  Builder(std::string name, std::string optimizer, const models::UpdateOptions& update)
      : model_(std::move(name), options_of(std::move(optimizer), update)), number_(++count_) {}

  ModelBuilder& model() {
    if (number_ == 0) throw core::InputError("this builder has built its graph already; make another one");
    return model_;
  }
  const models::Tensor& of(const Symbol& symbol) const {
    if (symbol.builder != number_) throw core::InputError("a tensor of another builder was given");
    return symbol.tensor;
  }
  std::optional<models::Tensor> of(const std::optional<Symbol>& symbol) const {
    return symbol ? std::optional(of(*symbol)) : std::nullopt;
  }
  Symbol symbol(models::Tensor tensor) const { return {std::move(tensor), number_}; }

  core::Graph training_step(const Symbol& loss) {
    ModelBuilder& builder = model();
    core::Graph graph = models::training_step(builder, of(loss));
    number_ = 0;
    return graph;
  }

 private:
  static models::BuildOptions options_of(std::string optimizer, const models::UpdateOptions& update) {
    models::BuildOptions options;
    options.optimizer = std::move(optimizer);
    options.update = update;
    return options;
  }

  static inline std::atomic<std::uint64_t> count_ = 0;
  ModelBuilder model_;
  std::uint64_t number_;  ///< identifies this Builder among all; 0 after the graph has been built
};

Symbol add_weight(Builder& b, const std::string& name, Shape shape, const std::string& init, double scale) {
  using Init = core::Resident::Init;
  constexpr std::pair<const char*, Init> kInits[] = {
      {"normal", Init::normal}, {"zeros", Init::zeros}, {"ones", Init::ones}, {"norm", Init::norm_params}};
  for (const auto& [word, value] : kInits) {
    if (init == word) return b.symbol(b.model().weight(name, std::move(shape), value, scale));
  }
  throw core::InputError(fmt::format("init='{}' must be normal, zeros, ones or norm", init));
}

using BuilderClass = nb::class_<Builder>;

/// Adds a method to the Python class Builder for an op that takes one tensor and some numbers.
template <class... Numbers, class... Arguments>
void bind_unary(BuilderClass& builder, const char* name,
                models::Tensor (ModelBuilder::*op)(const std::string&, const models::Tensor&, Numbers...),
                const Arguments&... arguments) {
  builder.def(
      name,
      [op](Builder& b, const std::string& node, const Symbol& x, std::decay_t<Numbers>... numbers) {
        return b.symbol((b.model().*op)(node, b.of(x), std::move(numbers)...));
      },
      "name"_a, "x"_a, arguments...);
}

/// Adds a method to the Python class Builder for an op that takes two tensors.
void bind_binary(BuilderClass& builder, const char* name,
                 models::Tensor (ModelBuilder::*op)(const std::string&, const models::Tensor&, const models::Tensor&),
                 const char* first, const char* second, const char* help) {
  builder.def(
      name,
      [op](Builder& b, const std::string& node, const Symbol& x, const Symbol& y) {
        return b.symbol((b.model().*op)(node, b.of(x), b.of(y)));
      },
      "name"_a, nb::arg(first), nb::arg(second), help);
}

void bind_tensors(BuilderClass& builder) {
  builder
      .def(
          "data",
          [](Builder& b, const std::string& name, Shape shape) {
            return b.symbol(b.model().data(name, std::move(shape)));
          },
          "name"_a, "shape"_a, "Adds an input of float32 elements.")
      .def(
          "indices",
          [](Builder& b, const std::string& name, Shape shape, std::int64_t bound) {
            return b.symbol(b.model().indices(name, std::move(shape), bound));
          },
          "name"_a, "shape"_a, "bound"_a, "Adds an input of int32 elements from 0 to bound - 1: labels or token ids.")
      .def("weight", &add_weight, "name"_a, "shape"_a, "init"_a = "normal", "scale"_a = 1.0,
           "Adds a weight. It begins with normally distributed elements of the standard deviation `scale`, with zeros "
           "or\n"
           "ones, or, with init='norm' and the shape [2, C], as the parameters of a norm: ones, then zeros.");
}

void bind_ops(BuilderClass& builder) {
  using M = ModelBuilder;
  bind_unary(builder, "relu", &M::relu);
  bind_unary(builder, "gelu", &M::gelu);
  bind_unary(builder, "scale", &M::scale, "alpha"_a);
  bind_unary(builder, "mean_pool", &M::mean_pool, "Computes the mean over all axes between the first and the last.");
  bind_unary(builder, "maxpool", &M::maxpool, "kernel"_a, "stride"_a, "pad"_a = 0);
  bind_unary(builder, "upsample", &M::upsample, "Doubles height and width of images by repeating pixels.");
  bind_unary(builder, "permute", &M::permute, "perm"_a, "Axis i of the result is axis perm[i] of x.");
  bind_unary(builder, "softmax", &M::softmax, "causal"_a = false, "Computes the softmax over the last axis.");
  bind_unary(builder, "dropout", &M::dropout, "p"_a, "Drops each element with probability p.");
  bind_binary(builder, "add", &M::add, "a", "b", "Adds two tensors of the same shape.");
  bind_binary(builder, "concat", &M::concat, "a", "b", "Joins two tensors on the last axis.");
  bind_binary(builder, "batchnorm", &M::batchnorm, "x", "params",
              "Normalises each channel over the batch. params has the shape [2, C]: gamma, then beta.");
  bind_binary(builder, "layernorm", &M::layernorm, "x", "params",
              "Normalises each row over its channels. params has the shape [2, C]: gamma, then beta.");
  bind_binary(builder, "cross_entropy", &M::cross_entropy, "logits", "labels", "Computes the mean cross entropy.");
  bind_binary(builder, "mse", &M::mse, "y", "target", "Computes the mean squared error.");
}

void bind_products(BuilderClass& builder) {
  builder
      .def(
          "linear",
          [](Builder& b, const std::string& name, const Symbol& x, const Symbol& w, const std::optional<Symbol>& bias,
             bool transposed, double alpha, Shape shape) {
            return b.symbol(
                b.model().project(name, b.of(x), b.of(w), {b.of(bias), transposed, alpha, std::move(shape)}));
          },
          "name"_a, "x"_a, "w"_a, "bias"_a = nb::none(), "transposed"_a = false, "alpha"_a = 1.0, "shape"_a = Shape(),
          "Computes alpha * x w + bias for w of the shape [in, out], or [out, in] if it is transposed. Reads x as rows "
          "of\n"
          "`in` elements, whatever its axes are. By default, the result has the shape of x with `out` as its last "
          "extent.")
      .def(
          "matmul",
          [](Builder& b, const std::string& name, const Symbol& x, const Symbol& y, bool trans_a, bool trans_b,
             double alpha) {
            return b.symbol(b.model().batched_matmul(name, b.of(x), b.of(y), {trans_a, trans_b, alpha}));
          },
          "name"_a, "a"_a, "b"_a, "trans_a"_a = false, "trans_b"_a = false, "alpha"_a = 1.0,
          "Multiplies the matrices of the last two axes. The other axes must be equal.")
      .def(
          "conv2d",
          [](Builder& b, const std::string& name, const Symbol& x, const Symbol& w, const std::optional<Symbol>& bias,
             std::int64_t stride,
             std::int64_t pad) { return b.symbol(b.model().conv2d(name, b.of(x), b.of(w), b.of(bias), stride, pad)); },
          "name"_a, "x"_a, "w"_a, "bias"_a = nb::none(), "stride"_a = 1, "pad"_a = 0,
          "Computes the convolution of images [N, H, W, C] with a weight [out, height, width, C].")
      .def(
          "embedding",
          [](Builder& b, const std::string& name, const Symbol& ids, const Symbol& table,
             const std::optional<Symbol>& positions) {
            return b.symbol(b.model().embedding(name, b.of(ids), b.of(table), b.of(positions)));
          },
          "name"_a, "ids"_a, "table"_a, "positions"_a = nb::none(),
          "Looks up the rows of a table [V, C] for ids [N, S], and adds the positions [S, C].");
}

}  // namespace

void bind_builder_of_models(nb::module_& module) {
  nb::class_<Symbol>(module, "Symbol", "A tensor of a model that a models.Builder is building.")
      .def_prop_ro(
          "shape", [](const Symbol& s) { return tuple_of(s.tensor.shape); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def("__repr__", [](const Symbol& s) {
        return fmt::format("<cairn.Symbol {}>", nb::repr(tuple_of(s.tensor.shape)).c_str());
      });
  BuilderClass builder(module, "ModelBuilder", "The base of models.Builder.");
  builder.def(nb::init<std::string, std::string, const models::UpdateOptions&>(), "name"_a, "optimizer"_a, "update"_a);
  bind_tensors(builder);
  bind_ops(builder);
  bind_products(builder);
  builder.def("training_step", &Builder::training_step, "loss"_a,
              "Adds the backward pass and the optimizer, and returns the graph. The builder is empty afterwards.");
}

}  // namespace cairn::python
