#ifdef CAIRN_HAS_CUDNN
#include "cairn/cuda/internal/cudnn_library.h"

#include <cstddef>

#include "cairn/cuda/internal/shared_library.h"

namespace cairn::cuda {
namespace {

Cudnn load() {
  const std::string major = std::to_string(CUDNN_MAJOR);
  SharedLibrary library({"libcudnn.so." + major, "libcudnn.so"});
  Cudnn dnn;
  library.find("cudnnGetVersion", dnn.version);
  library.find("cudnnGetErrorString", dnn.error_string);
  library.find("cudnnCreate", dnn.create);
  library.find("cudnnDestroy", dnn.destroy);
  library.find("cudnnSetStream", dnn.set_stream);
  library.find("cudnnBackendCreateDescriptor", dnn.create_descriptor);
  library.find("cudnnBackendDestroyDescriptor", dnn.destroy_descriptor);
  library.find("cudnnBackendFinalize", dnn.finalize);
  library.find("cudnnBackendSetAttribute", dnn.set_attribute);
  library.find("cudnnBackendGetAttribute", dnn.get_attribute);
  library.find("cudnnBackendExecute", dnn.execute);

  std::string reason = library.why_not();
  constexpr std::size_t kPerMajor = 10000;
  if (reason.empty() && dnn.version() / kPerMajor != CUDNN_MAJOR) reason = "libcudnn.so is of another major version";
  if (!reason.empty())
    dnn.why_not =
        "cuDNN " + major + " cannot be loaded (" + reason + "): install it or put its folder on LD_LIBRARY_PATH";
  return dnn;
}

}  // namespace

const Cudnn& cudnn() {
  static const Cudnn dnn = load();
  return dnn;
}

}  // namespace cairn::cuda
#endif
