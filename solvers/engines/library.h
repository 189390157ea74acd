#pragma once

#include <string>
#include <vector>

namespace cairn::solvers {

/// A shared library, opened on first use and never closed.
class Library {
 public:
  /// Opens the library. Tries each of the file names in the folder that CAIRN_ENGINES names, in the folder where
  /// scripts/install_engines.sh puts libraries, and among the system's libraries.
  Library(std::string engine, const std::vector<std::string>& names);

  /// Returns one line on why the library cannot be used and how to fix that. The line is empty if the library can be
  /// used.
  const std::string& missing() const { return missing_; }
  /// Sets `function` to a function of the library. If the library lacks the function, sets nullptr; missing() then
  /// names the function.
  template <class Function>
  void load(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(find(name));
  }

 private:
  void* find(const char* function);

  std::string engine_, missing_;
  void* handle_ = nullptr;
};

}  // namespace cairn::solvers
