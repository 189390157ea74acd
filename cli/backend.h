#pragma once

#include <string>
#include <string_view>

namespace cairn::cli {

/// The machine that executes.
struct Backend {
  std::string name;    ///< host or cuda
  std::string device;  ///< in words
};

/// `host`, `cuda`, or `auto`: the best that can execute. Throws InputError for another name, DeviceError where the
/// named one is missing.
Backend choose_backend(std::string_view name);

}  // namespace cairn::cli
