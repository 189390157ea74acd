#include "cairn/cuda/internal/shared_library.h"

#include <dlfcn.h>

namespace cairn::cuda {
namespace {

std::string last_error() {
  const char* text = dlerror();
  return text != nullptr ? text : "unknown error of the loader";
}

}  // namespace

SharedLibrary::SharedLibrary(const std::vector<std::string>& names) {
  for (const std::string folder : {"", CAIRN_CUDA_LIBRARY_DIR "/"}) {
    for (const std::string& name : names) {
      library_ = dlopen((folder + name).c_str(), RTLD_LAZY | RTLD_LOCAL);
      if (library_ != nullptr) {
        why_not_.clear();
        return;
      }
      // The first name's reason is the one to tell: where that library is found but broken, it says what is missing.
      const std::string reason = last_error();
      if (why_not_.empty()) why_not_ = reason;
    }
  }
}

void* SharedLibrary::symbol(const char* name) {
  if (library_ == nullptr) return nullptr;
  void* address = dlsym(library_, name);
  if (address == nullptr && why_not_.empty()) why_not_ = last_error();
  return address;
}

}  // namespace cairn::cuda
