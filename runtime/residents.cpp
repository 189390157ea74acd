#include "cairn/runtime/support/residents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <type_traits>

#include "cairn/core/error.h"
#include "cairn/core/graph.h"
#include "cairn/core/precision.h"
#include "cairn/core/support/bf16.h"
#include "cairn/runtime/support/element.h"
#include "cairn/runtime/support/loops.h"

namespace cairn::runtime {
namespace {

using core::Resident;

constexpr std::int64_t kAlignment = 256;

double standard_normal(std::uint64_t bits) {
  // This is the Box-Muller method. The argument of the logarithm is above 0, because unit_interval() is below 1.
  const double radius = std::sqrt(-2 * std::log(1 - unit_interval(bits)));
  return radius * std::cos(2 * std::numbers::pi * unit_interval(mix(bits, 1)));
}

/// Returns the position encoding of Vaswani et al., section 3.5. It is the sine (channel 2i) or the cosine (channel 2i
/// + 1) of position / 10000^(2i/C).
double position_encoding(std::int64_t element, std::int64_t channels) {
  const std::int64_t row = element / channels;
  const auto position = static_cast<double>(row);
  const std::int64_t channel = element % channels;
  const std::int64_t even = channel - channel % 2;
  const double exponent = static_cast<double>(even) / static_cast<double>(channels);
  const double angle = position / std::pow(10000.0, exponent);
  return channel % 2 == 0 ? std::sin(angle) : std::cos(angle);
}

class Filler {
 public:
  Filler(const Resident& resident, std::int32_t index, std::uint64_t seed)
      : resident_(resident), index_(resident.master_of < 0 ? index : resident.master_of), seed_(seed) {}

  template <class T>
  void fill_numbers(T* values) const {
    const std::int64_t count = core::element_count(resident_.shape);
    const std::int64_t channels = resident_.shape.empty() ? 1 : resident_.shape.back();
    switch (resident_.init) {
      case Resident::Init::zeros:
        return set(values, count, [](std::int64_t) { return 0.0; });
      case Resident::Init::ones:
        return set(values, count, [](std::int64_t) { return 1.0; });
      case Resident::Init::normal:
        return set(values, count, [this](std::int64_t i) { return resident_.scale * standard_normal(bits(i)); });
      case Resident::Init::uniform:
        return set(values, count, [this](std::int64_t i) { return resident_.scale * unit_interval(bits(i)); });
      case Resident::Init::norm_params:
        return set(values, count, [=](std::int64_t i) { return i < channels ? 1.0 : 0.0; });
      case Resident::Init::sinusoid:
        return set(values, count, [=](std::int64_t i) { return position_encoding(i, channels); });
      case Resident::Init::constant:
        return set(values, count, [this](std::int64_t) { return resident_.scale; });
    }
  }

  void fill_integers(std::int32_t* values) const {
    const std::int64_t count = core::element_count(resident_.shape);
    switch (resident_.init) {
      case Resident::Init::zeros:
        return set(values, count, [](std::int64_t) { return 0; });
      case Resident::Init::ones:
        return set(values, count, [](std::int64_t) { return 1; });
      case Resident::Init::uniform:
        return fill_below(values, count);
      default:
        throw core::InputError(
            fmt::format("resident '{}' is int32, which only zeros, ones and uniform can initialise", resident_.name));
    }
  }

 private:
  std::uint64_t bits(std::int64_t element) const {
    return random_bits(seed_, static_cast<std::uint64_t>(index_), static_cast<std::uint64_t>(element));
  }

  template <class T, class F>
  static void set(T* values, std::int64_t count, const F& value) {
    for_elements(count, [=](std::int64_t i) {
      if constexpr (std::is_same_v<T, core::Bf16>) {
        values[i] = core::Bf16(static_cast<float>(value(i)));
      } else {
        values[i] = static_cast<T>(value(i));
      }
    });
  }

  void fill_below(std::int32_t* values, std::int64_t count) const {
    if (!(resident_.scale >= 1 && resident_.scale <= std::numeric_limits<std::int32_t>::max())) {
      throw core::InputError(fmt::format("resident '{}' draws integers below {}; the scale must be from 1 to 2^31 - 1",
                                         resident_.name, resident_.scale));
    }
    const auto limit = static_cast<std::uint64_t>(resident_.scale);
    set(values, count, [this, limit](std::int64_t i) { return bits(i) % limit; });
  }

  const Resident& resident_;
  std::int32_t index_;
  std::uint64_t seed_;
};

}  // namespace

void fill_resident(const Resident& resident, std::int32_t index, std::uint64_t seed, std::span<std::byte> bytes) {
  const Filler filler(resident, index, seed);
  switch (resident.type) {
    case core::ElementType::f32:
      return filler.fill_numbers(reinterpret_cast<float*>(bytes.data()));
    case core::ElementType::bf16:
      return filler.fill_numbers(reinterpret_cast<core::Bf16*>(bytes.data()));
    case core::ElementType::i32:
      return filler.fill_integers(reinterpret_cast<std::int32_t*>(bytes.data()));
  }
}

std::int64_t index_limit(const core::Graph& graph, core::NodeId v) {
  const core::Op& op = *graph.op(v);
  const std::vector<core::Shape> shapes = core::arg_shapes(graph, v);
  switch (op.kind) {
    case core::OpKind::embedding:
      return shapes[1][0];
    case core::OpKind::embedding_grad:
      return op.shape[0];
    case core::OpKind::maxpool_with_indices_grad:
      return op.attrs.kernel * op.attrs.kernel;
    default:  // the labels of a loss
      return shapes[0].empty() ? 1 : shapes[0].back();
  }
}

void check_range(std::string_view what, const std::int32_t* values, std::int64_t count, std::int64_t limit) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (values[i] < 0 || values[i] >= limit) {
      throw core::Error(fmt::format("{} {} at position {} is outside 0 to {}", what, values[i], i, limit - 1));
    }
  }
}

void check_indices(const core::Graph& graph, std::int32_t index, std::span<const std::byte> bytes) {
  const core::Resident& resident = graph.residents()[index];
  if (resident.type != core::ElementType::i32) return;
  const auto* values = reinterpret_cast<const std::int32_t*>(bytes.data());
  const std::int64_t count = core::element_count(resident.shape);
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    const core::Op* op = graph.op(v);
    if (op == nullptr || std::find(op->args.begin(), op->args.end(), core::Operand::resident(index)) == op->args.end())
      continue;
    try {
      check_range("value", values, count, index_limit(graph, v));
    } catch (const core::Error& error) {
      throw core::InputError(
          fmt::format("node '{}' reads resident '{}': {}", graph.name(v), resident.name, error.what()));
    }
  }
}

std::vector<bool> executed_residents(const core::Graph& graph) {
  std::vector<bool> executed;
  for (const Resident& resident : graph.residents()) executed.push_back(resident.role != Resident::Role::optimizer);
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    const core::Op* op = graph.op(v);
    if (op == nullptr) continue;
    for (const std::size_t i : core::updated_args(op->kind))
      executed[static_cast<std::size_t>(op->args[i].index)] = true;
  }
  return executed;
}

bool updates_weights(const core::Graph& graph) {
  for (core::NodeId v = 0; v < graph.node_count(); ++v) {
    if (graph.op(v) != nullptr && core::is_update(graph.op(v)->kind)) return true;
  }
  return false;
}

ResidentLayout::ResidentLayout(const core::Graph& graph) {
  const std::vector<bool> executed = executed_residents(graph);
  const auto residents = graph.residents();
  for (std::size_t i = 0; i < residents.size(); ++i) {
    offsets.push_back(executed[i] ? bytes : -1);
    if (executed[i]) bytes += core::align_up(residents[i].bytes(), kAlignment);
  }
}

std::int64_t Residents::bytes_needed(const core::Graph& graph) { return ResidentLayout(graph).bytes; }

Residents::Residents(const core::Graph& graph, std::uint64_t seed) : arena_(bytes_needed(graph), kAlignment) {
  const ResidentLayout layout(graph);
  const auto residents = graph.residents();
  tensors_.resize(residents.size());
  for (std::size_t i = 0; i < residents.size(); ++i) {
    if (layout.offsets[i] < 0) continue;
    const std::int64_t bytes = residents[i].bytes();
    tensors_[i] = {arena_.at(layout.offsets[i], bytes), static_cast<std::size_t>(bytes)};
  }
  fill(graph, seed);
}

void Residents::fill(const core::Graph& graph, std::uint64_t seed) {
  const auto residents = graph.residents();
  for (std::size_t i = 0; i < residents.size(); ++i) {
    if (tensors_[i].empty()) continue;
    fill_resident(residents[i], static_cast<std::int32_t>(i), seed, tensors_[i]);
    check_indices(graph, static_cast<std::int32_t>(i), tensors_[i]);
  }
}

}  // namespace cairn::runtime
