#pragma once

#include <string>

namespace cairn::solvers {

struct KeyTree;
struct KeyOrderOptions;
struct KeyOrdersFound;
struct PumpkinProblem;
struct PumpkinOptions;
struct PumpkinAnswer;

/// A device as solvers see it: one function for each of the searches of solvers/order/device/ that it takes over. The
/// answers are those of the host, only sooner. For one thread at a time.
class Accelerator {
 public:
  virtual ~Accelerator() = default;

  virtual std::string device() const = 0;  ///< in words

  /// solve_pumpkin(), in what is free of the device's memory if that is less than allowed. Throws DeviceError where
  /// the device fails.
  virtual PumpkinAnswer pumpkin(const PumpkinProblem& problem, const PumpkinOptions& options) = 0;
  /// search_key_orders(). Throws DeviceError where the device fails.
  virtual KeyOrdersFound key_orders(const KeyTree& tree, const KeyOrderOptions& options) = 0;
};

}  // namespace cairn::solvers
