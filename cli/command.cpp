#include "cairn/cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <new>

#include "cairn/cli/output.h"
#include "cairn/core/support/text.h"
#include "cairn/report/support/words.h"

namespace cairn::cli {
namespace {

std::atomic<bool> interrupted{false};

constexpr std::int64_t kNanoseconds = 1'000'000'000;
std::atomic<std::int64_t> first_signal{0};  // time of the first signal in ns; 0: there was no signal
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "a signal handler may not wait for a lock");

/// Handles a signal that asks the command to stop. Only calls functions that POSIX permits in signal handlers.
extern "C" void on_interrupt(int signal) {
  interrupted.store(true, std::memory_order_relaxed);
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t at = now.tv_sec * kNanoseconds + now.tv_nsec;
  std::int64_t first = 0;
  // Service managers, `timeout` and terminals may send a signal twice for one request: to the process and to its
  // process group. So a second signal counts only if it comes at least a second after the first.
  if (first_signal.compare_exchange_strong(first, at) || at - first < kNanoseconds) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

const std::atomic<bool>& catch_interrupt() {
  // SIGINT comes from Ctrl-C. SIGTERM comes from timeout, docker stop and Slurm. SIGHUP comes from a closed terminal.
  // If nohup has made the process ignore SIGHUP, it must stay ignored.
  static const bool installed = [] {
    std::signal(SIGINT, on_interrupt);
    std::signal(SIGTERM, on_interrupt);
    if (std::signal(SIGHUP, on_interrupt) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
    return true;
  }();
  (void)installed;
  return interrupted;
}

std::string one_line(std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  return message;
}

namespace {

/// Inserts a line break if the first line of the message (the verdict) is longer than report::kVerdictColumns. Breaks
/// the line at the last suitable semicolon, or else at the last suitable space.
std::string with_short_verdict(std::string message) {
  constexpr std::string_view kBetween = "; ";
  const std::string verdict = core::cut_to_width(message, report::kVerdictColumns);
  if (verdict.size() == message.size() || verdict.find('\n') != std::string::npos) return message;
  if (const std::size_t end = verdict.rfind(kBetween); end != std::string::npos)
    return message.replace(end, kBetween.size(), "\n");
  if (const std::size_t end = verdict.rfind(' '); end != std::string::npos) message[end] = '\n';
  return message;
}

}  // namespace

Failure current_failure() {
  try {
    throw;
  } catch (const Failure& failure) {
    return failure;
  } catch (const core::InputError& error) {
    return {kBadInput, one_line(error.what())};
  } catch (const core::DeviceError& error) {
    return {kDevice, one_line(error.what())};
  } catch (const core::InterruptedError& error) {
    return {catch_interrupt() ? kInterrupted : kNotFound, one_line(error.what())};
  } catch (const core::DefectError& error) {
    return {kDefect, one_line(error.what())};
  } catch (const std::bad_alloc&) {
    return {kDevice, "out of memory; try a smaller graph or a smaller --batch"};
  } catch (const std::exception& error) {
    return {kDefect, one_line(fmt::format("internal failure: {}; please report this", error.what()))};
  }
}

int print_failure(const Failure& failure, bool json) {
  const std::string message = failure.what();
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
  std::cerr << (stderr_is_terminal() ? "\r\033[K" : "")  // erases a progress line
            << (colour ? "cairn: \033[31merror:\033[0m " : "cairn: error: ");
  const std::string text = with_short_verdict(message);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::cerr << (begin > 0 ? "  " : "") << core::printable(text.substr(begin, end - begin)) << '\n';
    begin = end + 1;
  }
  std::cerr << std::flush;
}

}  // namespace cairn::cli
