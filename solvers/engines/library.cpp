#include "cairn/solvers/engines/internal/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

namespace cairn::solvers {
namespace {

/// Folders that may hold engines, those first that somebody chose.
std::vector<std::filesystem::path> folders() {
  std::vector<std::filesystem::path> found;
  if (const char* chosen = std::getenv("CAIRN_ENGINES"); chosen != nullptr && *chosen != '\0') return {chosen};
  if (const char* data = std::getenv("XDG_DATA_HOME")) {
    found.emplace_back(std::filesystem::path(data) / "cairn" / "engines");
  } else if (const char* home = std::getenv("HOME")) {
    found.emplace_back(std::filesystem::path(home) / ".local" / "share" / "cairn" / "engines");
  }
  return found;
}

}  // namespace

Library::Library(std::string engine, const std::vector<std::string>& names) : engine_(std::move(engine)) {
  std::vector<std::string> tries;
  for (const std::filesystem::path& folder : folders()) {
    for (const std::string& name : names) {
      // As it lies in the wheel, and straight in the folder.
      for (const char* inside : {"ortools/.libs", ""}) {
        const std::filesystem::path file = folder / inside / name;
        std::error_code ignored;
        if (std::filesystem::exists(file, ignored)) tries.push_back(file.string());
      }
    }
  }
  tries.insert(tries.end(), names.begin(), names.end());
  std::string why;
  for (const std::string& file : tries) {
    handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) return;
    if (why.empty() && file.find('/') != std::string::npos) why = fmt::format(" ({})", dlerror());
  }
  missing_ = fmt::format("{} is not installed{}; scripts/install_engines.sh installs it", engine_, why);
}

void* Library::find(const char* function) {
  void* found = handle_ == nullptr ? nullptr : dlsym(handle_, function);
  if (found == nullptr && missing_.empty())
    missing_ =
        fmt::format("the installed {} has no {}; scripts/install_engines.sh installs one that has", engine_, function);
  return found;
}

}  // namespace cairn::solvers
