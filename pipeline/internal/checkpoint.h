#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cairn/pipeline/train.h"
#include "cairn/runtime/executor.h"

namespace cairn::pipeline {

/// Everything that a training needs in order to continue as if it had not been interrupted, other than the values of
/// weights and optimizer state, which are in an executor.
struct TrainState {
  std::int64_t step = 0;  ///< number of steps done
  std::vector<float> losses;
  std::vector<TestResult> tests;
};

/// Settings that determine the course of a training, by name. A training can only be continued with the same settings.
using TrainSettings = std::map<std::string, std::string>;
/// Name of the setting that is a hash of the graph's ops. It is checked last, because the others say more exactly what
/// differs.
inline constexpr const char* kOpsSetting = "ops";

/// Writes the state and all weights and optimizer state of `executor` to a file of tensors (core::write_tensors).
void write_checkpoint(const std::string& path, const TrainState& state, const TrainSettings& settings,
                      runtime::Executor& executor);

/// Reads a checkpoint and sets the weights and the optimizer state of `executor`. Throws InputError, which names the
/// file, if it is damaged or was written by a training of another model or with other settings. In that case, the
/// executor is unchanged.
TrainState read_checkpoint(const std::string& path, const TrainSettings& settings, runtime::Executor& executor);

/// Returns TrainResult::digest.
std::string digest_of_weights(runtime::Executor& executor);

}  // namespace cairn::pipeline
