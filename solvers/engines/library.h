#pragma once

#include <string>
#include <vector>

namespace cairn::solvers {

/// A shared library, opened the first time it is asked for and never closed.
class Library {
 public:
  /// Looks for each of the file names in CAIRN_ENGINES (a folder), where scripts/install_engines.sh puts libraries, and
  /// among the system's.
  Library(std::string engine, const std::vector<std::string>& names);

  /// Why it cannot be used and how that is mended, in one line; empty where it can.
  const std::string& missing() const { return missing_; }
  /// nullptr: not there. Then missing() says so.
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
