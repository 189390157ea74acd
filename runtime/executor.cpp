#include "cairn/runtime/executor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "cairn/core/error.h"
#include "cairn/core/support/bf16.h"
#include "cairn/core/support/text.h"
#include "cairn/runtime/support/element.h"
#include "cairn/runtime/support/residents.h"

namespace cairn::runtime {
namespace {

using core::Bf16;
using core::ElementType;
using core::Resident;

/// Returns the text with which messages name a resident tensor, with its type and shape: "resident 'w' (f32 [3, 4])".
std::string describe(const Resident& resident) {
  return fmt::format("resident '{}' ({} [{}])", resident.name, core::to_string(resident.type),
                     fmt::join(resident.shape, ", "));
}

/// Checks that `values` has the shape, the number of elements and the type of the tensor that `what` names. For a bf16
/// tensor, values may also be fp32.
template <class T>
void check_view(const std::string& what, ElementType type, const core::Shape& shape, const BasicTensorView<T>& values) {
  if (!values.shape.empty() && values.shape != shape)
    throw core::InputError(fmt::format("{} has the shape [{}], but values of the shape [{}] are given", what,
                                       fmt::join(shape, ", "), fmt::join(values.shape, ", ")));
  const std::int64_t elements = core::element_count(shape);
  if (values.elements != elements)
    throw core::InputError(fmt::format("{} has {} elements, but {} are given", what, elements, values.elements));
  const bool converted = type == ElementType::bf16 && values.type == ElementType::f32;
  if (values.type != type && !converted)
    throw core::InputError(fmt::format("{} does not take elements of type {}", what, core::to_string(values.type)));
}

template <class T>
std::int64_t find_nan(const void* data, std::int64_t elements) {
  const T* begin = static_cast<const T*>(data);
  const T* end = begin + elements;
  const T* found = std::find_if(begin, end, [](T x) { return std::isnan(static_cast<float>(x)); });
  return found == end ? -1 : found - begin;
}

void check_values(const core::Graph& graph, std::int32_t index, const TensorView& values) {
  const Resident& resident = graph.residents()[static_cast<std::size_t>(index)];
  if (values.type == ElementType::i32) {
    const auto bytes = static_cast<std::size_t>(resident.bytes());
    check_indices(graph, index, {static_cast<const std::byte*>(values.data), bytes});
    return;
  }
  const std::int64_t at = values.type == ElementType::bf16 ? find_nan<Bf16>(values.data, values.elements)
                                                           : find_nan<float>(values.data, values.elements);
  if (at >= 0) throw core::InputError(fmt::format("element {} for {} is NaN", at, describe(resident)));
}

/// Converts elements from type From to type To, one of which is fp32 and the other bf16, and stores them in `to`.
template <class From, class To>
void convert(const void* from, void* to, std::int64_t elements) {
  for (std::int64_t i = 0; i < elements; ++i)
    static_cast<To*>(to)[i] = To(static_cast<float>(static_cast<const From*>(from)[i]));
}

/// Converts the elements of `values` to type To. Returns a view of the converted elements, which are stored in `kept`.
template <class From, class To>
TensorView converted(const TensorView& values, std::vector<To>& kept) {
  kept.resize(static_cast<std::size_t>(values.elements));
  convert<From, To>(values.data, kept.data(), values.elements);
  return {kept.data(), std::is_same_v<To, Bf16> ? ElementType::bf16 : ElementType::f32, values.elements};
}

/// Calls read(), which must fill the view that it gets with bf16 elements. Converts these elements to fp32 and stores
/// them in `values`.
template <class Read>
void read_as_floats(const MutableTensorView& values, const Read& read) {
  std::vector<Bf16> stored(static_cast<std::size_t>(values.elements));
  read(MutableTensorView(stored.data(), ElementType::bf16, values.elements));
  convert<Bf16, float>(stored.data(), values.data, values.elements);
}

/// Returns the index of the resident tensor with the fp32 copy that an update keeps of `weight`. Returns -1 if there is
/// no such copy, or if no update changes it, because then an execution does not store the copy's values. Throws
/// InputError if no op of the step uses the weight itself. O(residents + nodes).
std::int32_t master_of(const core::Graph& graph, std::int32_t weight) {
  const std::vector<bool> executed = executed_residents(graph);
  const auto residents = graph.residents();
  if (!executed[static_cast<std::size_t>(weight)])
    throw core::InputError(fmt::format("resident '{}' only counts as memory; no op of the step uses it",
                                       residents[static_cast<std::size_t>(weight)].name));
  const auto it = std::ranges::find(residents, weight, &Resident::master_of);
  if (it == residents.end() || !executed[static_cast<std::size_t>(it - residents.begin())]) return -1;
  return static_cast<std::int32_t>(it - residents.begin());
}

}  // namespace

std::int32_t find_resident(const core::Graph& graph, std::string_view name) {
  const auto residents = graph.residents();
  const auto is_it = [&](const Resident& resident) { return resident.name == name; };
  const auto it = std::ranges::find_if(residents, is_it);
  if (it == residents.end()) {
    std::vector<std::string_view> names;
    for (const Resident& resident : residents) names.push_back(resident.name);
    throw core::InputError(
        fmt::format("'{}' has no resident tensor '{}'{}", graph.name(), name, core::did_you_mean(name, names)));
  }
  if (std::any_of(it + 1, residents.end(), is_it))
    throw core::InputError(
        fmt::format("'{}' has several resident tensors '{}'; give each its own name", graph.name(), name));
  return static_cast<std::int32_t>(it - residents.begin());
}

void Executor::require_values(std::string_view name, const TensorView& values) const {
  const core::Graph& graph = program().graph;
  const std::int32_t index = find_resident(graph, name);
  const Resident& resident = graph.residents()[static_cast<std::size_t>(index)];
  const bool for_both = master_of(graph, index) >= 0 && values.type == ElementType::f32;
  check_view(describe(resident), for_both ? ElementType::f32 : resident.type, resident.shape, values);
  if (!values.on_device) check_values(graph, index, values);
}

void Executor::give(std::string_view name, const TensorView& values, bool staged) {
  require_values(name, values);
  const core::Graph& graph = program().graph;
  const std::int32_t index = find_resident(graph, name);
  const Resident& resident = graph.residents()[static_cast<std::size_t>(index)];
  const std::int32_t master = master_of(graph, index);
  const auto give_one = [&](std::int32_t to, const TensorView& given) {
    staged ? stage_resident(to, given) : write_resident(to, given);
  };
  if (values.on_device) {
    give_one(index, values);
    if (master >= 0) give_one(master, values);
    return;
  }
  if (values.type == resident.type) {
    give_one(index, values);
    std::vector<float> exact;
    if (master >= 0) give_one(master, converted<Bf16, float>(values, exact));
    return;
  }
  std::vector<Bf16> rounded;
  give_one(index, converted<float, Bf16>(values, rounded));
  if (master >= 0) give_one(master, values);
}

void Executor::set(std::string_view name, const TensorView& values) { give(name, values, false); }
void Executor::stage(std::string_view name, const TensorView& values) { give(name, values, true); }

void Executor::get(std::string_view name, const MutableTensorView& values) {
  const core::Graph& graph = program().graph;
  std::int32_t index = find_resident(graph, name);
  const std::string what = describe(graph.residents()[static_cast<std::size_t>(index)]);
  const std::int32_t master = master_of(graph, index);
  if (master >= 0 && values.type == ElementType::f32) index = master;
  const Resident& resident = graph.residents()[static_cast<std::size_t>(index)];
  check_view(what, resident.type, resident.shape, values);
  if (values.type == resident.type || values.on_device) return read_resident(index, values);
  read_as_floats(values, [&](const MutableTensorView& stored) { read_resident(index, stored); });
}

void Executor::get_output(std::string_view node, const MutableTensorView& values, std::int32_t output) {
  if (!has_outputs_)
    throw core::InputError(
        fmt::format("'{}' has no outputs yet, because no step has been completed since its tensors were filled",
                    program().graph.name()));
  const core::Graph& graph = program().graph;
  std::vector<std::string_view> names;
  for (const KeptOutput& kept : program().kept) {
    if (graph.name(kept.node) != node || kept.output != output) {
      names.push_back(graph.name(kept.node));
      continue;
    }
    const core::Op* op = graph.op(kept.node);
    if (op == nullptr || output >= core::output_count(op->kind))
      throw core::InputError(
          fmt::format("output {} of node '{}' has no elements, because no op computes it", output, node));
    const ElementType type = core::output_type(*op, output);
    check_view(fmt::format("output {} of node '{}'", output, node), type, core::output_shape(*op, output), values);
    if (type == values.type || values.on_device) return read_output(kept, values);
    return read_as_floats(values, [&](const MutableTensorView& stored) { read_output(kept, stored); });
  }
  throw core::InputError(fmt::format("'{}' keeps no output {} of a node '{}'{}", graph.name(), output, node,
                                     core::did_you_mean(node, names)));
}

}  // namespace cairn::runtime
