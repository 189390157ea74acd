#include "cairn/runtime/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "cairn/core/error.h"
#include "cairn/core/precision.h"
#include "cairn/runtime/support/residents.h"

namespace cairn::runtime {
namespace {

using core::Buffer;
using core::Graph;
using core::NodeId;
using core::OutputRef;
using core::ValueId;

void check_guards(core::Plan plan, std::int64_t guard_bytes) {
  for (Buffer& buffer : plan.buffers) buffer.size += guard_bytes;
  if (const std::string wrong = core::check_overlaps(plan); !wrong.empty()) {
    throw core::InputError(fmt::format("the plan has no room for guards of {} bytes: {}", guard_bytes, wrong));
  }
}

void check_alignment(const Graph& graph, const core::Plan& plan, std::int64_t needed) {
  bool any_op = false;
  for (NodeId v = 0; v < graph.node_count(); ++v) any_op = any_op || graph.op(v) != nullptr;
  if (any_op && plan.alignment % needed != 0) {
    throw core::InputError(
        fmt::format("the plan's alignment is {}, but the kernels need a multiple of {}: plan with an alignment of 256",
                    plan.alignment, needed));
  }
}

/// Finds the buffers of a plan that hold the outputs and the scratch of a given step, and the buffers of evicts and
/// fetches. A returned pointer is nullptr if the plan has no such buffer.
class BuffersByStep {
 public:
  BuffersByStep(const Graph& graph, const core::Schedule& schedule, const core::Plan& plan)
      : scratch_(schedule.steps.size()),
        evicted_(schedule.transfers.evicts.size()),
        fetched_(schedule.transfers.fetches.size()) {
    for (const NodeId v : schedule.steps) begin_.push_back(begin_.back() + graph.output_count(v));
    outputs_.resize(begin_.back());
    for (const Buffer& buffer : plan.buffers) {
      if (buffer.evict >= 0) evicted_[buffer.evict] = &buffer;
      if (buffer.fetch >= 0) {
        fetched_[buffer.fetch] = &buffer;
      } else {
        (buffer.scratch ? scratch_[buffer.first] : outputs_[begin_[buffer.first] + buffer.output]) = &buffer;
      }
    }
  }

  const Buffer& evicted(std::int32_t evict) const { return *evicted_[evict]; }
  const Buffer& fetched(std::int32_t fetch) const { return *fetched_[fetch]; }

  const Buffer* scratch(std::int64_t step) const { return scratch_[step]; }
  std::span<const Buffer* const> outputs(std::int64_t step) const {
    return {outputs_.data() + begin_[step], outputs_.data() + begin_[step + 1]};
  }

 private:
  std::vector<std::size_t> begin_{0};  ///< index in outputs_ of the first output of each step
  std::vector<const Buffer*> outputs_, scratch_, evicted_, fetched_;
};

/// Makes the copies of a program from the transfers of its schedule.
class CopyList {
 public:
  CopyList(const Graph& graph, const core::Schedule& schedule, const core::Plan& plan, const BuffersByStep& buffers)
      : graph_(graph), moves_(schedule.transfers), plan_(plan), buffers_(buffers) {}

  void add_to(Program& program) const {
    const std::size_t evicts = moves_.evicts.size();
    std::vector<Copy> copies;
    for (std::size_t e = 0; e < evicts; ++e) copies.push_back(evict(static_cast<std::int32_t>(e)));
    for (const core::Fetch& each : moves_.fetches) copies.push_back(fetch(each, copies));
    std::vector<std::size_t> order(copies.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](std::size_t i) { return std::tuple(copies[i].start, copies[i].finish, i); });
    std::vector<std::int32_t> place(copies.size());
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<std::int32_t>(i);
    for (const std::size_t i : order) {
      program.copies.push_back(copies[i]);
      Copy& copy = program.copies.back();
      if (!copy.is_evict()) copy.source = place[static_cast<std::size_t>(copy.source)];
    }
    program.copies_by_finish.resize(copies.size());
    std::iota(program.copies_by_finish.begin(), program.copies_by_finish.end(), 0);
    std::ranges::stable_sort(program.copies_by_finish, {}, [&](std::int32_t i) { return program.copies[i].finish; });
    std::vector<bool> freed(copies.size());  // for each evict, whether its last fetch has been found
    for (std::size_t i = copies.size(); i-- > 0;) {
      Copy& copy = program.copies[program.copies_by_finish[i]];
      if (copy.is_evict() || freed[copy.source]) continue;
      copy.frees_host = true;
      freed[copy.source] = true;
    }
    program.host_arena_bytes = plan_.host_bytes;
  }

 private:
  Copy evict(std::int32_t index) const {
    const core::Evict& move = moves_.evicts[index];
    const Buffer& from = buffers_.evicted(index);
    const Buffer& to = plan_.host_buffers[index];
    const std::int64_t bytes = graph_.value_size(move.value);
    Copy copy;
    copy.node = from.node;
    copy.device = {Location::Kind::arena, from.offset, -1, bytes, from.size};
    copy.host = {Location::Kind::host, to.offset, -1, bytes, to.size};
    copy.start = move.start;
    copy.finish = move.finish;
    return copy;
  }

  Copy fetch(const core::Fetch& move, const std::vector<Copy>& copies) const {
    const auto index = static_cast<std::int32_t>(&move - moves_.fetches.data());
    const Buffer& to = buffers_.fetched(index);
    Copy copy = copies[move.evict];
    copy.direction = Copy::Direction::fetch;
    copy.device = {Location::Kind::arena, to.offset, -1, copy.device.bytes, to.size};
    copy.start = move.start;
    copy.finish = move.finish;
    copy.source = move.evict;
    return copy;
  }

  const Graph& graph_;
  const core::Transfers& moves_;
  const core::Plan& plan_;
  const BuffersByStep& buffers_;
};

class Compiler {
 public:
  Compiler(const Graph& graph, const core::Schedule& schedule, const core::Plan& plan, const CompileOptions& options)
      : options_(options),
        graph_(graph),
        schedule_(schedule),
        plan_(plan),
        buffers_(graph, schedule, plan),
        latest_(graph.value_count(), nullptr),
        seen_(graph.node_count(), false),
        executed_(executed_residents(graph)),
        updated_by_(graph.residents().size(), core::kNoNode) {}

  void compile_into(Program& program) {
    CopyList(graph_, schedule_, plan_, buffers_).add_to(program);
    const std::vector<std::vector<Location>> dying = dying_buffers();
    const std::vector<std::int32_t> fetches = fetches_by_finish();
    auto fetch = fetches.begin();
    const auto take_fetched = [&](std::int64_t step) {
      for (; fetch != fetches.end() && schedule_.transfers.fetches[*fetch].finish <= step; ++fetch) take(*fetch);
    };
    for (std::int64_t step = 0; step < schedule_.length(); ++step) {
      take_fetched(step);
      program.instructions.push_back(instruction(step, program));
      Instruction& instruction = program.instructions.back();
      instruction.free_begin = static_cast<std::uint32_t>(program.frees.size());
      instruction.free_count = static_cast<std::uint32_t>(dying[step].size());
      program.frees.insert(program.frees.end(), dying[step].begin(), dying[step].end());
    }
    take_fetched(schedule_.length());
    for (ValueId x = 0; x < graph_.value_count(); ++x) {
      if (!graph_.value_kept(x)) continue;
      program.kept.push_back({graph_.producer(x), graph_.output_ref(x).output, value_location(x)});
    }
  }

 private:
  std::vector<std::int32_t> fetches_by_finish() const {
    const std::vector<core::Fetch>& all = schedule_.transfers.fetches;
    std::vector<std::int32_t> fetches(all.size());
    std::iota(fetches.begin(), fetches.end(), 0);
    std::ranges::stable_sort(fetches, {}, [&](std::int32_t f) { return all[f].finish; });
    return fetches;
  }

  /// Records that later steps read the value of this fetch from the fetch's buffer.
  void take(std::int32_t fetch) {
    const core::Transfers& moves = schedule_.transfers;
    latest_[moves.evicts[moves.fetches[fetch].evict].value] = &buffers_.fetched(fetch);
  }

  Instruction instruction(std::int64_t step, Program& program) {
    const NodeId v = schedule_.steps[step];
    if (!seen_[v]) check_scratch(v);
    check_updates(v, step);
    Instruction out;
    out.node = v;
    out.step = step;
    out.recomputation = seen_[v];
    seen_[v] = true;
    out.input_begin = static_cast<std::uint32_t>(program.inputs.size());
    add_inputs(v, program.inputs);
    out.input_count = static_cast<std::uint32_t>(program.inputs.size()) - out.input_begin;
    if (const Buffer* scratch = buffers_.scratch(step)) out.scratch = location(*scratch, graph_.scratch(v));
    out.output_begin = static_cast<std::uint32_t>(program.outputs.size());
    for (const ValueId x : graph_.outputs(v)) {
      std::int64_t taken_bytes = 0;
      if (const Buffer* buffer = buffers_.outputs(step)[graph_.output_ref(x).output]) {
        if (buffer->alias_of != OutputRef()) {
          check_in_place(x, buffer->alias_of);
          taken_bytes = latest_[graph_.value(buffer->alias_of)]->size;
        }
        latest_[x] = buffer;
      }
      program.outputs.push_back({value_location(x), taken_bytes});
    }
    out.output_count = static_cast<std::uint32_t>(program.outputs.size()) - out.output_begin;
    return out;
  }

  void add_inputs(NodeId v, std::vector<Location>& inputs) const {
    const core::Op* op = graph_.op(v);
    if (op == nullptr) {
      for (const ValueId x : graph_.inputs(v)) inputs.push_back(value_location(x));
      return;
    }
    for (const core::Operand& arg : op->args) {
      const bool resident = arg.kind == core::Operand::Kind::resident;
      inputs.push_back(resident ? resident_location(arg.index) : value_location(graph_.value({arg.index, arg.output})));
    }
  }

  /// Returns where value x is at the current step. A schedule can execute a node several times, so this is the buffer
  /// of the latest execution of the value's node or of the value's latest fetch, whichever came later.
  Location value_location(ValueId x) const {
    const auto [v, output] = graph_.output_ref(x);
    const core::Op* op = graph_.op(v);
    if (op != nullptr && op->writes >= 0 && output == 0) return resident_location(op->writes);
    return latest_[x] == nullptr ? Location{} : location(*latest_[x], graph_.value_size(x));
  }

  Location resident_location(std::int32_t index) const {
    const core::Resident& resident = graph_.residents()[index];
    if (!executed_[index]) {
      throw core::InputError(
          fmt::format("resident '{}' is optimizer state, which only an update of a weight can use", resident.name));
    }
    return {Location::Kind::resident, 0, index, resident.bytes(), resident.bytes()};
  }

  static Location location(const Buffer& buffer, std::int64_t bytes) {
    return {Location::Kind::arena, buffer.offset, -1, bytes, buffer.size};
  }

  /// Returns the buffers that are freed after each step. Leaves out the buffers whose storage an in-place output takes
  /// over, and the buffers that are freed when an evict is complete.
  std::vector<std::vector<Location>> dying_buffers() const {
    std::vector<std::vector<Location>> dying(schedule_.steps.size());
    for (const Buffer& buffer : plan_.buffers) {
      if (buffer.last >= schedule_.length() || buffer.evict >= 0) continue;
      const auto takes_over = [self = OutputRef(buffer.node, buffer.output)](const Buffer* next) {
        return next != nullptr && next->alias_of == self;
      };
      const bool taken = !buffer.scratch && std::ranges::any_of(buffers_.outputs(buffer.last), takes_over);
      if (!taken) dying[buffer.last].push_back(location(buffer, buffer.size));
    }
    return dying;
  }

  /// Checks that v reads no resident tensor that an earlier step has updated, because v needs the values before the
  /// update.
  void check_updates(NodeId v, std::int64_t step) {
    const core::Op* op = graph_.op(v);
    if (op == nullptr) return;
    for (const core::Operand& arg : op->args) {
      if (arg.kind != core::Operand::Kind::resident || updated_by_[arg.index] == core::kNoNode) continue;
      throw core::InputError(
          fmt::format("step {} runs node '{}', which reads '{}', after node '{}' has updated it; add control edges to "
                      "the graph, so "
                      "that the update runs last",
                      step, graph_.name(v), graph_.residents()[arg.index].name, graph_.name(updated_by_[arg.index])));
    }
    if (!core::is_update(op->kind)) return;
    for (const std::size_t i : core::updated_args(op->kind)) updated_by_[op->args[i].index] = v;
    updated_by_[op->writes] = v;
  }

  void check_scratch(NodeId v) const {
    const core::Op* op = graph_.op(v);
    if (op == nullptr) return;
    const std::int64_t needed = options_.scratch_need(graph_, v);
    if (needed > std::max<std::int64_t>(0, graph_.scratch(v))) {
      throw core::InputError(fmt::format("node '{}': op {} needs {} bytes of scratch, but the graph gives it {}",
                                         graph_.name(v), core::to_string(op->kind), needed, graph_.scratch(v)));
    }
  }

  void check_in_place(ValueId x, OutputRef input) const {
    const auto [v, output] = graph_.output_ref(x);
    const core::Op* op = graph_.op(v);
    if (op == nullptr) return;
    for (std::size_t i = 0; i < op->args.size(); ++i) {
      if (op->args[i] != core::Operand::node(input.node, input.output)) continue;
      if (output > 0 || !can_overwrite(op->kind, i)) {
        throw core::InputError(fmt::format("node '{}': op {} cannot run in place of its argument {}; drop `inplace`",
                                           graph_.name(v), core::to_string(op->kind), i));
      }
    }
  }

  const CompileOptions& options_;
  const Graph& graph_;
  const core::Schedule& schedule_;
  const core::Plan& plan_;
  BuffersByStep buffers_;
  std::vector<const Buffer*> latest_;  ///< for each value, its buffer at the current step
  std::vector<bool> seen_;
  std::vector<bool> executed_;      ///< for each resident, whether an execution needs its values
  std::vector<NodeId> updated_by_;  ///< for each resident, the node that has updated it so far
};

}  // namespace

std::span<const Copy> Program::copies_after(std::int64_t step) const {
  const auto found = std::ranges::equal_range(copies, step, {}, &Copy::start);
  return {found.data(), found.size()};
}

std::span<const std::int32_t> Program::copies_due(std::int64_t step) const {
  const auto found =
      std::ranges::equal_range(copies_by_finish, step, {}, [this](std::int32_t i) { return copies[i].finish; });
  return {found.data(), found.size()};
}

bool can_overwrite(core::OpKind kind, std::size_t arg) {
  using core::OpKind;
  switch (kind) {
    case OpKind::add:
    case OpKind::scale:
    case OpKind::relu:
    case OpKind::relu_grad:
    case OpKind::gelu:
    case OpKind::gelu_grad:
    case OpKind::dropout:
    case OpKind::softmax:
    case OpKind::softmax_grad:
    case OpKind::mse_grad:
      return true;
    case OpKind::batchnorm:
    case OpKind::batchnorm_with_stats:
    case OpKind::layernorm:
    case OpKind::layernorm_with_stats:
    case OpKind::cross_entropy_grad:
      return arg == 0;
    case OpKind::batchnorm_grad_input:
    case OpKind::layernorm_grad_input:
      return arg == 0 || arg == 1;
    default:
      return false;
  }
}

std::int64_t host_scratch(const Graph& graph, NodeId v) {
  return core::op_work(*graph.op(v), core::arg_shapes(graph, v)).scratch;
}

Program compile(const Graph& graph, const core::Schedule& schedule, const core::Plan& plan,
                const CompileOptions& options) {
  if (const std::string wrong = core::check_plan(graph, schedule, plan); !wrong.empty()) {
    throw core::InputError(fmt::format("the plan does not fit the schedule: {}", wrong));
  }
  if (options.guard_bytes < 0) {
    throw core::InputError(fmt::format("guards of {} bytes are not possible", options.guard_bytes));
  }
  check_guards(plan, options.guard_bytes);
  check_alignment(graph, plan, options.address_alignment);
  Program program;
  program.graph = graph;
  program.arena_bytes = plan.bytes;
  program.alignment = plan.alignment;
  program.guard_bytes = options.guard_bytes;
  program.tf32 = options.tf32;
  Compiler(graph, schedule, plan, options).compile_into(program);
  return program;
}

}  // namespace cairn::runtime
