#pragma once

#include <cstdlib>
#include <map>
#include <string>

#include "cairn/tests/cli/command.h"

/// The command on a fake device.
namespace cairn::tests {

using test::operator+;
using test::Words;

/// Describes a device by variables of the environment (tests/fake_cuda/command/environment.cpp).
using Device = std::map<std::string, std::string>;

inline test::Outcome run_on(const Device& device, const Words& words) {
  for (const auto& [variable, value] : device) setenv(variable.c_str(), value.c_str(), 1);
  test::Outcome outcome = test::Child(words, "", CAIRN_BINARY_DIR "/tests/cairn_fake_cuda").wait();
  for (const auto& [variable, value] : device) unsetenv(variable.c_str());
  return outcome;
}

}  // namespace cairn::tests
