#include <nvtx3/nvToolsExt.h>

#include "device/device.hpp"

// Push/pop ranges, not start/end: tools attribute kernels to the innermost pushed range of the thread that launches.
namespace hbmscope {
namespace {

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t handle = nvtxDomainCreateA("hbmscope");
  return handle;
}

}  // namespace

ProfilerRange::ProfilerRange(const std::string& name, Bytes payload) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name.c_str();
  attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  attributes.payload.llValue = payload.value();
  nvtxDomainRangePushEx(domain(), &attributes);
}
ProfilerRange::~ProfilerRange() {
  nvtxDomainRangePop(domain());
}

}  // namespace hbmscope
