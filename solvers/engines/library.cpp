#include "cairn/solvers/engines/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

namespace cairn::solvers {
namespace {

/// Returns the folder that an environment variable names. Relative paths are ignored so that no library of the current
/// folder is loaded.
std::optional<std::filesystem::path> folder_of(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || !std::filesystem::path(value).is_absolute()) return std::nullopt;
  return value;
}

std::optional<std::filesystem::path> engine_folder() {
  if (const char* chosen = std::getenv("CAIRN_ENGINES"); chosen != nullptr && *chosen != '\0')
    return folder_of("CAIRN_ENGINES");
  if (const auto data = folder_of("XDG_DATA_HOME")) return *data / "cairn" / "engines";
  if (const auto home = folder_of("HOME")) return *home / ".local" / "share" / "cairn" / "engines";
  return std::nullopt;
}

/// Returns a sentence for an error message if CAIRN_ENGINES is ignored because it is not an absolute path, otherwise an
/// empty text.
std::string refused() {
  const char* chosen = std::getenv("CAIRN_ENGINES");
  if (chosen == nullptr || *chosen == '\0' || engine_folder()) return "";
  return fmt::format(" (CAIRN_ENGINES '{}' is not an absolute path)", chosen);
}

}  // namespace

Library::Library(std::string engine, const std::vector<std::string>& names) : engine_(std::move(engine)) {
  std::vector<std::string> tries;
  const auto folder = engine_folder();
  for (const std::string& name : names) {
    // The Python wheel of OR-Tools keeps the library in the subfolder ortools/.libs.
    for (const char* inside : {"ortools/.libs", ""}) {
      if (!folder) continue;
      const std::filesystem::path file = *folder / inside / name;
      std::error_code ignored;
      if (std::filesystem::exists(file, ignored)) tries.push_back(file.string());
    }
  }
  tries.insert(tries.end(), names.begin(), names.end());
  std::string why = refused();
  for (const std::string& file : tries) {
    handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) return;
    if (why.empty() && file.find('/') != std::string::npos) why = fmt::format(" ({})", dlerror());
  }
  missing_ = fmt::format("{} is not installed{}; scripts/install_engines.sh installs it", engine_, why);
}

Library::Symbol Library::find(const char* function) {
  void* found = handle_ == nullptr ? nullptr : dlsym(handle_, function);
  if (found == nullptr && missing_.empty())
    missing_ =
        fmt::format("the installed {} has no {}; scripts/install_engines.sh installs one that has", engine_, function);
  return {found};
}

}  // namespace cairn::solvers
