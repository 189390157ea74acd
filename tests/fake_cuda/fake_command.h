#pragma once

#include <cstdlib>
#include <map>
#include <string>

#include "cairn/tests/cli/command.h"

/// These helpers run the command on a fake device.
namespace cairn::tests {

/// Environment variables and their values, which describe a device (see tests/fake_cuda/command/environment.cpp).
using Device = std::map<std::string, std::string>;

inline Outcome run_on(const Device& device, const Words& words) {
  for (const auto& [variable, value] : device) setenv(variable.c_str(), value.c_str(), 1);
  Outcome outcome = Child(words, "", CAIRN_BINARY_DIR "/tests/cairn_fake_cuda").wait();
  for (const auto& [variable, value] : device) unsetenv(variable.c_str());
  return outcome;
}

/// Runs the command with --json on the device, and returns the JSON object that the command prints.
inline Json json_on(const Device& device, const Words& words) {
  const Outcome outcome = run_on(device, words + Words{"--json"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.json();
}

}  // namespace cairn::tests
