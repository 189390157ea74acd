#pragma once

// Only where the build has cuDNN's headers (CAIRN_HAS_CUDNN).
#include <cudnn_graph.h>

#include <string>

namespace cairn::cuda {

/// The functions of cuDNN 9 that Cairn calls: its backend (graph) API.
struct Cudnn {
  decltype(cudnnGetVersion)* version = nullptr;
  decltype(cudnnGetErrorString)* error_string = nullptr;
  decltype(cudnnCreate)* create = nullptr;
  decltype(cudnnDestroy)* destroy = nullptr;
  decltype(cudnnSetStream)* set_stream = nullptr;
  decltype(cudnnBackendCreateDescriptor)* create_descriptor = nullptr;
  decltype(cudnnBackendDestroyDescriptor)* destroy_descriptor = nullptr;
  decltype(cudnnBackendFinalize)* finalize = nullptr;
  decltype(cudnnBackendSetAttribute)* set_attribute = nullptr;
  decltype(cudnnBackendGetAttribute)* get_attribute = nullptr;
  decltype(cudnnBackendExecute)* execute = nullptr;

  std::string why_not;  ///< empty: everything is there; else one line that says how to mend
};

/// Loaded at the first call, for the whole process.
const Cudnn& cudnn();

}  // namespace cairn::cuda
