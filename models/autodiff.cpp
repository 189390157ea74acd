#include "cairn/models/autodiff.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/models/internal/options.h"
#include "cairn/models/internal/updates.h"

namespace cairn::models {

using core::NodeId;
using core::Op;
using core::OpAttrs;
using core::Operand;
using core::OpKind;
using core::Resident;
using core::Shape;

namespace {

class Backward {
 public:
  Backward(ModelBuilder& model, NodeId loss)
      : model_(model), loss_(loss), wanted_(loss + 1), nodes_(loss + 1), weights_(model.resident_count()) {
    if (has_updates(model.options())) updates_.emplace(model, loss);
    find_wanted();
    count_weight_uses();
  }

  void run() {
    for (NodeId v = loss_; v >= 0; --v) {
      if (v == loss_ || nodes_[v].sum) differentiate(v);
      // The updates of weights are added after all backward nodes of v, because some of these nodes still read the
      // weights.
      for (const std::int32_t weight : complete_) updates_->add(weight, *weights_[weight].sum, v);
      complete_.clear();
    }
    if (updates_) updates_->finish();
  }

 private:
  /// The gradient with respect to one node or weight. The gradient is a sum, with one contribution for each use of the
  /// node or weight.
  struct Gradient {
    std::optional<Operand> sum;  ///< sum of the contributions so far
    int contributions = 0;
    int expected = 0;  ///< for a weight, the number of all contributions, past and future
  };

  bool is_weight(const Operand& x) const {
    return x.kind == Operand::Kind::resident && model_.resident(x.index).role == Resident::Role::weight;
  }
  /// Returns whether the gradient with respect to x is needed to compute the gradient of some weight.
  bool wanted(const Operand& x) const { return x.kind == Operand::Kind::node ? wanted_[x.index] : is_weight(x); }

  void find_wanted() {
    for (NodeId v = 0; v <= loss_; ++v) {
      for (const Operand& arg : model_.op(v).args) wanted_[v] = wanted_[v] || wanted(arg);
    }
  }

  void count_weight_uses() {
    std::vector<bool> reached(loss_ + 1);
    reached[loss_] = true;
    for (NodeId v = loss_; v >= 0; --v) {
      if (!reached[v]) continue;
      // The node that computes the gradient of a norm's input also accounts for the dependence of the statistics on
      // this input. So a node of statistics contributes nothing of its own.
      const OpKind kind = model_.op(v).kind;
      const bool contributes = kind != OpKind::batchnorm_stats && kind != OpKind::layernorm_stats;
      for (const Operand& arg : model_.op(v).args) {
        if (arg.kind == Operand::Kind::node) {
          reached[arg.index] = true;
        } else if (contributes && is_weight(arg)) {
          ++weights_[arg.index].expected;
        }
      }
    }
  }

  /// Appends the node that computes v's contribution to the gradient with respect to x, if that gradient is needed. The
  /// node has x's shape.
  void contribute(NodeId v, const Operand& x, std::string_view what, OpKind kind, std::vector<Operand> args,
                  OpAttrs attrs = {}) {
    if (!wanted(x)) return;
    Op op{kind, model_.shape(x), std::move(args), std::move(attrs)};
    std::string name = fmt::format("{}/{}", model_.node_name(v), what);
    if (x.kind == Operand::Kind::node) {
      accumulate(x.index, model_.append(std::move(name), std::move(op), v).operand);
    } else {
      accumulate_weight(v, x.index, std::move(name), std::move(op));
    }
  }

  void accumulate(NodeId u, const Operand& part) {
    Gradient& gradient = nodes_[u];
    ++gradient.contributions;
    if (!gradient.sum) {
      gradient.sum = part;
      return;
    }
    Op add{OpKind::add, model_.op(u).shape, {*gradient.sum, part}, {}};
    gradient.sum = model_.append(sum_name(model_.node_name(u), gradient), std::move(add), u).operand;
  }

  void accumulate_weight(NodeId v, std::int32_t weight, std::string name, Op op) {
    Gradient& gradient = weights_[weight];
    ++gradient.contributions;
    if (gradient.expected == 1) {
      gradient.sum = append_weight_gradient(v, weight, std::move(name), std::move(op));
      return;
    }
    const Operand part = model_.append(std::move(name), std::move(op), v).operand;
    if (!gradient.sum) {
      gradient.sum = part;
      return;
    }
    Op add{OpKind::add, model_.resident(weight).shape, {*gradient.sum, part}, {}};
    std::string add_name = sum_name(model_.resident(weight).name, gradient);
    gradient.sum = gradient.contributions == gradient.expected
                       ? append_weight_gradient(v, weight, std::move(add_name), std::move(add))
                       : model_.append(std::move(add_name), std::move(add), v).operand;
  }

  static std::string sum_name(const std::string& name, const Gradient& gradient) {
    return gradient.contributions == 2 ? name + "/grad_sum"
                                       : fmt::format("{}/grad_sum{}", name, gradient.contributions - 1);
  }

  Operand append_weight_gradient(NodeId v, std::int32_t weight, std::string name, Op op) {
    if (!updates_ && !model_.options().weight_grads_in_arena) {
      const Resident& of = model_.resident(weight);
      op.writes = model_.add_resident(
          {.name = of.name + ".grad", .shape = of.shape, .role = Resident::Role::weight_grad, .gradient_of = weight});
    }
    const Operand gradient = model_.append(std::move(name), std::move(op), v).operand;
    if (!updates_ || model_.options().weight_grads_in_arena) model_.keep(gradient.index);
    if (updates_) complete_.push_back(weight);
    return gradient;
  }

  void differentiate(NodeId v) {
    const Op op = model_.op(v);  // a copy, because appending nodes moves the existing ones in memory
    const Operand dy = nodes_[v].sum.value_or(Operand{});
    const Operand y = Operand::node(v);
    const auto& args = op.args;
    switch (op.kind) {
      case OpKind::matmul:
        return matmul(v, op, dy);
      case OpKind::add:
        return add(op, dy);
      case OpKind::scale:
        return contribute(v, args[0], "grad_input", OpKind::scale, {dy}, op.attrs);
      case OpKind::relu:
        return contribute(v, args[0], "grad_input", OpKind::relu_grad, {dy, y});
      case OpKind::gelu:
        return contribute(v, args[0], "grad_input", OpKind::gelu_grad, {dy, args[0]});
      case OpKind::conv2d:
        return conv2d(v, op, dy);
      case OpKind::batchnorm:
        return batchnorm(v, op, dy);
      case OpKind::layernorm:
        return layernorm(v, op, dy);
      case OpKind::maxpool:
        return contribute(v, args[0], "grad_input", OpKind::maxpool_grad, {dy, args[0]}, op.attrs);
      case OpKind::mean_pool:
        return contribute(v, args[0], "grad_input", OpKind::mean_pool_grad, {dy});
      case OpKind::upsample:
        return contribute(v, args[0], "grad_input", OpKind::upsample_grad, {dy});
      case OpKind::concat:
        return concat(v, op, dy);
      case OpKind::permute:
        return permute(v, op, dy);
      case OpKind::softmax:
        return contribute(v, args[0], "grad_input", OpKind::softmax_grad, {dy, y});
      case OpKind::embedding:
        return embedding(v, op, dy);
      case OpKind::dropout:
        return contribute(v, args[0], "grad_input", OpKind::dropout, {dy}, op.attrs);
      case OpKind::cross_entropy:
        if (v == loss_) return contribute(v, args[0], "grad_input", OpKind::cross_entropy_grad, {args[0], args[1]});
        break;
      case OpKind::mse:
        if (v == loss_ && !wanted(args[1])) {
          return contribute(v, args[0], "grad_input", OpKind::mse_grad, {args[0], args[1]});
        }
        break;
      default:
        break;
    }
    throw core::InputError(
        fmt::format("node '{}': no derivative of {} is known here; the loss must be a cross_entropy "
                    "or an mse against data",
                    model_.node_name(v), to_string(op.kind)));
  }

  /// Adds the gradients of a matrix product C = alpha op(A) op(B) + bias, where op() can be a transposition: dA = alpha
  /// dC op(B)^T and dB = alpha op(A)^T dC. If a factor is stored transposed, the gradient of this factor is computed in
  /// transposed form, too.
  void matmul(NodeId v, const Op& op, const Operand& dy) {
    const OpAttrs& f = op.attrs;
    const Operand& a = op.args[0];
    const Operand& b = op.args[1];
    const auto product = [&](std::int64_t m, std::int64_t n, std::int64_t k, bool trans_a, bool trans_b) {
      return OpAttrs{
          .batch = f.batch, .m = m, .n = n, .k = k, .trans_a = trans_a, .trans_b = trans_b, .alpha = f.alpha};
    };
    if (op.args.size() > 2) sum_rows(v, op.args[2], "grad_bias", dy, f.batch * f.m, f.n);

    const std::string_view name_b = is_weight(b) ? "grad_weight" : "grad_b";
    if (f.trans_b) {
      contribute(v, b, name_b, OpKind::matmul, {dy, a}, product(f.n, f.k, f.m, true, f.trans_a));
    } else {
      contribute(v, b, name_b, OpKind::matmul, {a, dy}, product(f.k, f.n, f.m, !f.trans_a, false));
    }
    const std::string_view name_a = is_weight(b) ? "grad_input" : "grad_a";
    if (f.trans_a) {
      contribute(v, a, name_a, OpKind::matmul, {b, dy}, product(f.k, f.m, f.n, f.trans_b, true));
    } else {
      contribute(v, a, name_a, OpKind::matmul, {dy, b}, product(f.m, f.k, f.n, false, !f.trans_b));
    }
  }

  void sum_rows(NodeId v, const Operand& x, std::string_view what, const Operand& dy, std::int64_t rows,
                std::int64_t cols) {
    contribute(v, x, what, OpKind::reduce_rows, {dy}, {.rows = rows, .cols = cols});
  }

  /// Differentiates a sum. The gradient of each term is dy itself, so no node is added for it.
  void add(const Op& op, const Operand& dy) {
    for (const Operand& arg : op.args) {
      if (is_weight(arg)) {
        throw core::InputError(fmt::format("weight '{}' is a term of an add; give it to the op as its bias",
                                           model_.resident(arg.index).name));
      }
      if (wanted(arg)) accumulate(arg.index, dy);
    }
  }

  void conv2d(NodeId v, const Op& op, const Operand& dy) {
    if (op.args.size() > 2) {
      const std::int64_t channels = op.shape.back();
      sum_rows(v, op.args[2], "grad_bias", dy, core::element_count(op.shape) / channels, channels);
    }
    contribute(v, op.args[1], "grad_weight", OpKind::conv2d_grad_weight, {dy, op.args[0]}, op.attrs);
    contribute(v, op.args[0], "grad_input", OpKind::conv2d_grad_input, {dy, op.args[1]}, op.attrs);
  }

  /// Adds the gradients of a batch norm. The output depends on x directly, and also through the statistics of x. The
  /// node grad_input computes both parts of the gradient of x. For the second part, it reads the gradient of the
  /// parameters, because that holds the necessary sums over rows.
  void batchnorm(NodeId v, const Op& op, const Operand& dy) {
    const Operand& x = op.args[0];
    const Operand& stats = op.args[1];
    const Operand& params = op.args[2];
    if (!is_weight(params))
      throw core::InputError(fmt::format("node '{}': its parameters must be a weight", model_.node_name(v)));
    const NodeId dparams = model_.node_count();
    contribute(v, params, "grad_params", OpKind::batchnorm_grad_params, {dy, x, stats}, op.attrs);
    contribute(v, x, "grad_input", OpKind::batchnorm_grad_input, {dy, x, stats, params, Operand::node(dparams)},
               op.attrs);
  }

  void layernorm(NodeId v, const Op& op, const Operand& dy) {
    const Operand& x = op.args[0];
    const Operand& stats = op.args[1];
    const Operand& params = op.args[2];
    contribute(v, params, "grad_params", OpKind::layernorm_grad_params, {dy, x, stats}, op.attrs);
    contribute(v, x, "grad_input", OpKind::layernorm_grad_input, {dy, x, stats, params}, op.attrs);
  }

  void concat(NodeId v, const Op& op, const Operand& dy) {
    contribute(v, op.args[0], "grad_a", OpKind::slice, {dy});
    contribute(v, op.args[1], "grad_b", OpKind::slice, {dy}, {.offset = model_.shape(op.args[0]).back()});
  }

  void permute(NodeId v, const Op& op, const Operand& dy) {
    OpAttrs attrs;
    attrs.perm.resize(op.attrs.perm.size());
    for (std::size_t i = 0; i < op.attrs.perm.size(); ++i) attrs.perm[op.attrs.perm[i]] = static_cast<std::int64_t>(i);
    contribute(v, op.args[0], "grad_input", OpKind::permute, {dy}, std::move(attrs));
  }

  void embedding(NodeId v, const Op& op, const Operand& dy) {
    if (op.args.size() > 2) {
      const std::int64_t cols = core::element_count(model_.shape(op.args[2]));
      sum_rows(v, op.args[2], "grad_positions", dy, core::element_count(op.shape) / cols, cols);
    }
    contribute(v, op.args[1], "grad_table", OpKind::embedding_grad, {dy, op.args[0]});
  }

  ModelBuilder& model_;
  NodeId loss_;
  std::vector<bool> wanted_;            ///< for each forward node, whether it depends on a weight
  std::vector<Gradient> nodes_;         ///< gradient with respect to each forward node
  std::vector<Gradient> weights_;       ///< gradient with respect to each resident; used only for weights
  std::optional<Updates> updates_;      ///< none: the graph does not update weights
  std::vector<std::int32_t> complete_;  ///< weights whose gradients are complete, and whose updates are to be added
};

void add_optimizer_state(ModelBuilder& model) {
  const std::string optimizer = model.options().optimizer.empty() ? "adam" : model.options().optimizer;
  check_optimizer(optimizer);
  if (optimizer == "none" || has_updates(model.options())) return;
  const std::int64_t copies = optimizer == "adam" ? 2 : 1;
  const std::int32_t count = model.resident_count();
  for (std::int32_t i = 0; i < count; ++i) {
    const Resident& weight = model.resident(i);
    if (weight.role != Resident::Role::weight) continue;
    Resident state{
        .name = fmt::format("{}.{}", weight.name, optimizer), .shape = weight.shape, .role = Resident::Role::optimizer};
    state.shape.insert(state.shape.begin(), copies);
    model.add_resident(std::move(state));
  }
}

}  // namespace

void backward(ModelBuilder& model, const Tensor& loss) {
  const bool is_node = loss.operand.kind == Operand::Kind::node;
  const OpKind kind = is_node ? model.op(loss.operand.index).kind : OpKind::add;
  if (!core::is_loss(kind)) {
    throw core::InputError("backward starts from a loss: a cross_entropy or an mse node");
  }
  model.keep(loss.operand.index);
  Backward(model, loss.operand.index).run();
}

core::Graph training_step(ModelBuilder& model, const Tensor& loss) {
  ModelBuilder whole = model;  // a copy, so that a failure leaves no half of a backward pass in `model`
  backward(whole, loss);
  add_optimizer_state(whole);
  core::Graph graph = whole.build();
  model = std::move(whole);
  return graph;
}

}  // namespace cairn::models
