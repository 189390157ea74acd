#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cairn/pipeline/train.h"
#include "cairn/runtime/executor.h"

namespace cairn::pipeline {

/// The state of a training run, without the weights and the optimizer state, which an executor holds. From this state
/// and the executor's tensors, the run can continue as if it had not been interrupted.
struct TrainState {
  std::int64_t step = 0;  ///< number of training steps done
  std::vector<float> losses;
  std::vector<TestResult> tests;
};

/// Values of the settings that determine the course of a training run, by name. A run can only be continued with equal
/// settings.
using TrainSettings = std::map<std::string, std::string>;
/// Name of the setting that is a hash of the graph's ops. This setting is checked last, because a difference in any
/// other setting says more exactly what differs.
inline constexpr const char* kOpsSetting = "ops";

/// Writes the state and all weights and optimizer state of `executor` to a file of tensors (core::write_tensors).
void write_checkpoint(const std::string& path, const TrainState& state, const TrainSettings& settings,
                      runtime::Executor& executor);

/// Reads a checkpoint and sets the weights and the optimizer state of `executor`. Throws InputError, which names the
/// file, if the file is damaged, or was written by a training run of another model or with other settings. In that
/// case, the executor is unchanged.
TrainState read_checkpoint(const std::string& path, const TrainSettings& settings, runtime::Executor& executor);

/// Returns the hash for TrainResult::digest: of the bytes of all weights and of the optimizer's state.
std::string digest_of_weights(runtime::Executor& executor);

}  // namespace cairn::pipeline
