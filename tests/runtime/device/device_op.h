#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "cairn/core/op.h"
#include "cairn/core/support/bf16.h"
#include "cairn/runtime/device/ops.h"
#include "cairn/tests/catch.h"
#include "cairn/tests/runtime/tensors.h"
#include "cairn/tests/support/fiber_machine.h"
#include "cairn/tests/support/host_library.h"
#include "cairn/tests/support/stored_values.h"

/// These functions run the device kernels of ops on a simulated device (FiberMachine), and compare the results with
/// those of the host's kernels in double.
namespace cairn::tests {

/// The bytes of a tensor on a device. Their address is a multiple of 256 bytes. The margin behind them shows if a
/// kernel writes beyond the tensor.
class DeviceBytes {
 public:
  static constexpr std::size_t kMargin = 256;
  explicit DeviceBytes(std::int64_t bytes)
      : bytes_(static_cast<std::size_t>(bytes)), storage_(bytes_ + 256 + kMargin, std::byte{0xFF}) {}

  std::byte* data() {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
    return storage_.data() + ((address + 255) / 256 * 256 - address);
  }
  std::vector<std::byte> bytes() { return {data(), data() + bytes_}; }
  bool margin_is_whole() {
    const std::byte* end = data() + bytes_;
    const std::byte* last = storage_.data() + storage_.size();
    return std::all_of(end, last, [](std::byte b) { return b == std::byte{0xFF}; });
  }

 private:
  std::size_t bytes_;
  std::vector<std::byte> storage_;
};

inline void write_values(std::byte* to, ElementType type, const Tensor& tensor) {
  for (std::size_t i = 0; i < tensor.values.size(); ++i) {
    const auto value = static_cast<float>(tensor.values[i]);
    const core::Bf16 rounded(value);
    if (type == ElementType::bf16) {
      std::memcpy(to + 2 * i, &rounded, 2);
    } else {
      std::memcpy(to + 4 * i, &value, 4);
    }
  }
  if (!tensor.integers.empty()) std::memcpy(to, tensor.integers.data(), 4 * tensor.integers.size());
}

/// Executes an op by run_op(). This is the default `execute` of run_on().
struct RunOp {
  void operator()(FiberMachine& machine, runtime::device::Call& call) const { runtime::device::run_op(machine, call); }
};

/// Runs one op on `machine` and returns its outputs. Before the run, outputs and scratch are filled with NaN. Checks
/// that the op writes nothing beyond them. `storage` is f32 or bf16. `over` is the index of an argument: if it is
/// given, the first output is in the memory of this argument, and the op must need no scratch.
template <class Run = RunOp>
std::vector<std::vector<std::byte>> run_all_on(FiberMachine& machine, Op op, const std::vector<Tensor>& args,
                                               ElementType storage, bool library_convolutions = false,
                                               const Run& execute = {}, std::optional<std::size_t> over = {}) {
  const std::vector<Shape> shapes = shapes_of(args);
  core::check_op(op, shapes);
  op.type = core::output_type(op.kind, storage);
  std::vector<DeviceBytes> memory;
  std::vector<runtime::device::Tensor> tensors, sizes;
  memory.reserve(args.size());
  for (std::size_t i = 0; i < args.size(); ++i) {
    const ElementType type = core::arg_type(op.kind, i, storage);
    memory.emplace_back(core::element_bytes(type) * core::element_count(args[i].shape));
    write_values(memory[i].data(), type, args[i]);
    tensors.push_back({memory[i].data(), type, args[i].shape});
    sizes.push_back({nullptr, type, args[i].shape});
  }
  HostLibrary library(library_convolutions);
  runtime::device::Call counting{op, sizes, nullptr, library, false, {}};
  execute(machine, counting);
  const std::int64_t scratch_bytes = counting.scratch.used();
  DeviceBytes scratch(scratch_bytes);
  std::vector<DeviceBytes> outputs;
  for (std::int32_t k = 0; k < core::output_count(op.kind); ++k) outputs.emplace_back(core::output_bytes(op, k));
  if (over) {
    CHECK(scratch_bytes == 0);
    std::swap(outputs[0], memory[*over]);
  }
  std::vector<void*> more;
  for (std::size_t k = 1; k < outputs.size(); ++k) more.push_back(outputs[k].data());
  runtime::device::Call call{op, tensors, outputs[0].data(), library, false, {scratch.data(), scratch_bytes}, more};
  execute(machine, call);
  CHECK(call.scratch.used() == scratch_bytes);
  CHECK(scratch.margin_is_whole());
  std::vector<std::vector<std::byte>> result;
  for (DeviceBytes& output : outputs) {
    CHECK(output.margin_is_whole());
    result.push_back(output.bytes());
  }
  return result;
}

/// Returns the first output of run_all_on().
template <class Run = RunOp>
std::vector<std::byte> run_on(FiberMachine& machine, const Op& op, const std::vector<Tensor>& args, ElementType storage,
                              bool library_convolutions = false, const Run& execute = {}) {
  return run_all_on(machine, op, args, storage, library_convolutions, execute).front();
}

/// Returns the values of the op's first output on a simulated device that stores tensors as fp32.
inline Values values_on_device(const Op& op, const std::vector<Tensor>& args, Threads threads = Threads::forward) {
  FiberMachine machine(threads);
  return stored_values(run_on(machine, op, args, ElementType::f32), ElementType::f32);
}

/// Checks, with fp32 storage, that the op gives the same bits if its first output takes the memory of an argument.
/// Tries this for each of the first `inputs` arguments.
inline void check_in_place(const Op& op, const std::vector<Tensor>& args, std::size_t inputs) {
  for (const Threads threads : {Threads::one, Threads::forward, Threads::reverse}) {
    FiberMachine machine(threads);
    const std::vector<std::byte> expected = run_on(machine, op, args, ElementType::f32);
    for (std::size_t over = 0; over < inputs; ++over)
      CHECK(run_all_on(machine, op, args, ElementType::f32, false, RunOp(), over).front() == expected);
  }
}

/// Returns the arguments with their values rounded to the types in which the device stores them.
inline std::vector<Tensor> stored(const Op& op, std::vector<Tensor> args, ElementType storage) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    const bool half = core::arg_type(op.kind, i, storage) == ElementType::bf16;
    for (double& value : args[i].values) {
      const auto single = static_cast<float>(value);
      value = static_cast<double>(half ? static_cast<float>(core::Bf16(single)) : single);
    }
  }
  return args;
}

/// Checks that the op on a simulated device agrees with the host's kernel in double, for fp32 and for bf16 storage.
/// Teams have one thread, or many threads that run in one of two orders. Both orders must give the same bits.
template <class Run = RunOp>
void check_device_op(const Op& op, const std::vector<Tensor>& args, double tolerance = 2e-5,
                     bool library_convolutions = false, const Run& execute = {}) {
  for (const ElementType storage : {ElementType::f32, ElementType::bf16}) {
    const ElementType type = core::output_type(op.kind, storage);
    INFO("op " << core::to_string(op.kind) << " of " << runtime::row_count(args[0].shape) << " rows of "
               << runtime::last_extent(args[0].shape) << " stored as " << core::to_string(storage));
    const Values expected = run<double>(op, stored(op, args, storage));
    const double allowed = type == ElementType::bf16 ? tolerance + 1.0 / 128 : tolerance;
    const auto run_with = [&](Threads threads) {
      FiberMachine machine(threads);
      return run_on(machine, op, args, storage, library_convolutions, execute);
    };
    check_close(stored_values(run_with(Threads::one), type), expected, allowed);
    const std::vector<std::byte> bytes = run_with(Threads::forward);
    check_close(stored_values(bytes, type), expected, allowed);
    CHECK(run_with(Threads::reverse) == bytes);
  }
}

}  // namespace cairn::tests
