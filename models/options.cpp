#include "cairn/models/internal/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include "cairn/core/error.h"
#include "cairn/core/support/text.h"

namespace cairn::models {
namespace {

// Largest value of an option that has no limit of its own. It is far above the values of any real model, and so low
// that the product of two values does not overflow.
constexpr std::int64_t kLargest = 1'000'000'000;
// Largest number of layers. It is lower than kLargest, because every layer adds nodes to the graph.
constexpr std::int64_t kMostLayers = 10'000;
constexpr std::int64_t kMostRepeats = 100;  // largest depth-multiplier, by which the number of blocks is multiplied

std::int64_t maximum(std::string_view name) {
  if (name.ends_with("dropout")) return 99;
  if (name == "depth-multiplier") return kMostRepeats;
  return name == "layers" || name == "depth" ? kMostLayers : kLargest;
}

const ModelOption* find(std::span<const ModelOption> options, std::string_view name) {
  const auto it = std::find_if(options.begin(), options.end(), [&](const auto& option) { return option.name == name; });
  return it == options.end() ? nullptr : &*it;
}

}  // namespace

OptionValues::OptionValues(std::string_view model, std::span<const ModelOption> options, const BuildOptions& given)
    : model_(model), options_(options), given_(given) {
  for (const auto& [name, value] : given.values) {
    const ModelOption* option = find(options, name);
    if (option == nullptr) {
      std::vector<std::string_view> names;
      std::vector<std::string> spelled;
      for (const ModelOption& known : options) {
        names.push_back(known.name);
        spelled.push_back(core::option(known.name));
      }
      throw core::InputError(fmt::format("{} has no option {}; it takes {}{}", model_, core::option(name),
                                         fmt::join(spelled, ", "), core::did_you_mean(name, names)));
    }
    if (value < option->minimum || value > maximum(name)) {
      throw core::InputError(fmt::format("{}: {} is out of range; use {} to {}", model_,
                                         core::option(name, std::to_string(value)), option->minimum, maximum(name)));
    }
  }
}

std::int64_t OptionValues::operator[](std::string_view name) const {
  const ModelOption* option = find(options_, name);
  if (option == nullptr) throw std::logic_error(fmt::format("{} declares no option {}", model_, name));
  const auto it = given_.values.find(name);
  return it == given_.values.end() ? option->default_value : it->second;
}

double OptionValues::probability(std::string_view name) const { return static_cast<double>((*this)[name]) / 100.0; }

void OptionValues::require_multiple(std::string_view name, std::int64_t divisor, std::string_view what) const {
  const std::int64_t value = (*this)[name];
  if (value % divisor != 0) {
    throw core::InputError(fmt::format("{}: {} is not a multiple of {}; try {}", model_,
                                       core::option(name, std::to_string(value)), what,
                                       (value / divisor + 1) * divisor));
  }
}

void check_optimizer(std::string_view optimizer) {
  static constexpr std::array<std::string_view, 5> kOptimizers{"none", "momentum", "adam", "sgd", "adamw"};
  if (std::ranges::find(kOptimizers, optimizer) == kOptimizers.end())
    throw core::InputError(fmt::format("unknown optimizer '{}': use none, momentum, adam, sgd or adamw{}", optimizer,
                                       core::did_you_mean(optimizer, kOptimizers)));
}

}  // namespace cairn::models
