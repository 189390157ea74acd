#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cairn/models/registry.h"

namespace cairn::models {

/// Holds the values of one model's options. All functions throw InputError on a bad option; the message names the
/// model, the option and its valid values.
class OptionValues {
 public:
  /// Checks that every name in `given` is a name of `options`, and that every value is within its limits. For an
  /// unknown name, the error suggests the nearest name.
  OptionValues(std::string_view model, std::span<const ModelOption> options, const BuildOptions& given);

  std::int64_t operator[](std::string_view name) const;
  /// Returns the value of an option that is a percentage, as a probability in [0, 1).
  double probability(std::string_view name) const;
  /// Throws InputError unless the value of `name` is a multiple of `divisor`. `what` describes the divisor in the
  /// message, such as "heads (8)".
  void require_multiple(std::string_view name, std::int64_t divisor, std::string_view what) const;

 private:
  std::string model_;
  std::span<const ModelOption> options_;
  const BuildOptions& given_;
};

/// Throws InputError unless the optimizer is "none", "momentum", "adam", "sgd" or "adamw".
void check_optimizer(std::string_view optimizer);

}  // namespace cairn::models
