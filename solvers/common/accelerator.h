#pragma once

#include <string>

namespace cairn::solvers {

struct KeyTree;
struct KeyOrderOptions;
struct KeyOrdersFound;
struct PumpkinProblem;
struct PumpkinOptions;
struct PumpkinAnswer;

/// A device as solvers see it, with one function for each search of solvers/order/device/ that it can take over. The
/// answers are those of the host, only sooner. For one thread at a time.
class Accelerator {
 public:
  virtual ~Accelerator() = default;

  virtual std::string device() const = 0;  ///< name in words

  /// solve_pumpkin(), within the device's free memory if that is less than allowed. Throws DeviceError if the device
  /// fails.
  virtual PumpkinAnswer pumpkin(const PumpkinProblem& problem, const PumpkinOptions& options) = 0;
  /// search_key_orders(). Throws DeviceError if the device fails.
  virtual KeyOrdersFound key_orders(const KeyTree& tree, const KeyOrderOptions& options) = 0;
};

}  // namespace cairn::solvers
