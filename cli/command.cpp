#include "cairn/cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <new>

#include "cairn/cli/output.h"
#include "cairn/core/text.h"
#include "cairn/pipeline/problem.h"

namespace cairn::cli {
namespace {

std::atomic<bool> interrupted{false};

extern "C" void on_interrupt(int signal) {
  interrupted.store(true, std::memory_order_relaxed);
  std::signal(signal, SIG_DFL);
}

}  // namespace

const std::atomic<bool>& catch_interrupt() {
  // Ctrl-C; timeout, docker stop and Slurm; a terminal that is gone, which nohup has ignored.
  static const bool installed = [] {
    std::signal(SIGINT, on_interrupt);
    std::signal(SIGTERM, on_interrupt);
    if (std::signal(SIGHUP, on_interrupt) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
    return true;
  }();
  (void)installed;
  return interrupted;
}

Failure current_failure() {
  try {
    throw;
  } catch (const Failure& failure) {
    return failure;
  } catch (const core::InputError& error) {
    return {kBadInput, error.what()};
  } catch (const core::DeviceError& error) {
    return {kDevice, error.what()};
  } catch (const core::InterruptedError& error) {
    return {catch_interrupt() ? kInterrupted : kNotFound, error.what()};
  } catch (const pipeline::DefectError& error) {
    return {kDefect, error.what()};
  } catch (const std::bad_alloc&) {
    return {kDevice, "out of memory; try a smaller graph or a smaller --batch"};
  } catch (const std::exception& error) {
    return {kDefect, fmt::format("internal failure: {}; please report this", error.what())};
  }
}

int print_failure(const Failure& failure, bool json) {
  std::string message = failure.what();
  std::replace(message.begin(), message.end(), '\n', ' ');  // where it quotes input
  print_error(message);
  if (json) {
    Json object = failure.details;
    object["error"] = message;
    object["exit_code"] = failure.exit_code;
    print_json(object);
  }
  return failure.exit_code;
}

void print_error(const std::string& message) {
  const bool colour = stderr_is_terminal() && std::getenv("NO_COLOR") == nullptr;
  std::cerr << (stderr_is_terminal() ? "\r\033[K" : "")  // a progress line may stand there
            << (colour ? "cairn: \033[31merror:\033[0m " : "cairn: error: ") << core::printable(message) << std::endl;
}

}  // namespace cairn::cli
