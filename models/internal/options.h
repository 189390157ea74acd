#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cairn/models/registry.h"

namespace cairn::models {

/// Values of one model's options. Throws InputError that names the model, the option and what it takes.
class OptionValues {
 public:
  /// Checks that every given name is one of `options` (suggests the nearest) and every value is within its limits.
  OptionValues(std::string_view model, std::span<const ModelOption> options, const BuildOptions& given);

  std::int64_t operator[](std::string_view name) const;
  /// Returns a percentage as a probability in [0, 1).
  double probability(std::string_view name) const;
  /// Throws unless `name` is a multiple of `divisor`, which `what` explains: "heads (8)".
  void require_multiple(std::string_view name, std::int64_t divisor, std::string_view what) const;

 private:
  std::string model_;
  std::span<const ModelOption> options_;
  const BuildOptions& given_;
};

}  // namespace cairn::models
