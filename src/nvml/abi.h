// The part of NVIDIA's management library (libnvidia-ml.so.1) that berth calls, declared from its
// public API reference: names of functions, numbers, and the layout of structures on 64-bit Linux.
#pragma once

#include <cstddef>

namespace berth::nvml {

using Return = int;
inline constexpr Return kSuccess = 0;
inline constexpr Return kUninitialized = 1;
inline constexpr Return kInvalidArgument = 2;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kNotFound = 6;
inline constexpr Return kInsufficientSize = 7;
inline constexpr Return kDriverNotLoaded = 9;
inline constexpr Return kTimeout = 10;
inline constexpr Return kFunctionNotFound = 13;  // the driver is older than the library
inline constexpr Return kGpuIsLost = 15;
inline constexpr Return kResetRequired = 16;

using Device = struct OpaqueDevice*;
using EventSet = struct OpaqueEventSet*;

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;  // with what the driver keeps for itself
};
struct Memory2 {
  unsigned int version;  // kMemory2
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;  // as nvidia-smi shows it
};
inline constexpr unsigned int kMemory2 = sizeof(Memory2) | (2U << 24);

struct Pci {
  char short_bus[16];  // "0000:1B:00.0"
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int device_id;
  unsigned int subsystem_id;
  char long_bus[32];  // "00000000:1B:00.0"; of version 3 only, older ones have reserved words here
};

struct Utilization {
  unsigned int gpu;  // percent
  unsigned int memory;
};

struct ProcessInfo {
  unsigned int pid;
  unsigned long long memory;  // bytes; all ones = not known
  unsigned int gpu_instance;  // all ones = none
  unsigned int compute_instance;
};
struct ProcessInfo1 {  // of the function without a version
  unsigned int pid;
  unsigned long long memory;
};
inline constexpr unsigned long long kNoMemoryKnown = ~0ULL;
inline constexpr unsigned int kNoInstance = ~0U;

struct Attributes {
  unsigned int multiprocessors;
  unsigned int copy_engines;
  unsigned int decoders;
  unsigned int encoders;
  unsigned int jpeg_engines;
  unsigned int optical_flow_engines;
  unsigned int gpu_slices;
  unsigned int compute_slices;
  unsigned long long memory_mb;
};

struct EventData {
  Device device;
  unsigned long long type;
  unsigned long long data;  // of kXidEvent: the Xid
  unsigned int gpu_instance;
  unsigned int compute_instance;
};
inline constexpr unsigned long long kXidEvent = 0x8;

// What stands between two GPUs.
inline constexpr int kTopologyInternal = 0;
inline constexpr int kTopologySingleSwitch = 10;
inline constexpr int kTopologySwitches = 20;
inline constexpr int kTopologyHostBridge = 30;
inline constexpr int kTopologyNode = 40;
inline constexpr int kTopologySystem = 50;

inline constexpr unsigned int kMostLinks = 18;
inline constexpr int kLinkToGpu = 0;
inline constexpr int kLinkToSwitch = 2;
inline constexpr int kEccCorrected = 0;
inline constexpr int kEccUncorrected = 1;
inline constexpr int kEccVolatile = 0;  // since the driver was loaded
inline constexpr int kSensorGpu = 0;

static_assert(sizeof(Memory2) == 40 && sizeof(Pci) == 68 && sizeof(ProcessInfo) == 24);
static_assert(sizeof(ProcessInfo1) == 16 && sizeof(Attributes) == 40 && sizeof(EventData) == 32);

}  // namespace berth::nvml

// BERTH_NVML(name, parameters): every function that is called, by the name the library exports.
#define BERTH_NVML_FUNCTIONS(BERTH_NVML)                                                         \
  BERTH_NVML(nvmlInit, ())                                                                       \
  BERTH_NVML(nvmlInit_v2, ())                                                                    \
  BERTH_NVML(nvmlShutdown, ())                                                                   \
  BERTH_NVML(nvmlSystemGetDriverVersion, (char* text, unsigned int size))                        \
  BERTH_NVML(nvmlDeviceGetCount, (unsigned int* count))                                          \
  BERTH_NVML(nvmlDeviceGetCount_v2, (unsigned int* count))                                       \
  BERTH_NVML(nvmlDeviceGetHandleByIndex, (unsigned int index, Device* device))                   \
  BERTH_NVML(nvmlDeviceGetHandleByIndex_v2, (unsigned int index, Device* device))                \
  BERTH_NVML(nvmlDeviceGetUUID, (Device device, char* text, unsigned int size))                  \
  BERTH_NVML(nvmlDeviceGetName, (Device device, char* text, unsigned int size))                  \
  BERTH_NVML(nvmlDeviceGetMinorNumber, (Device device, unsigned int* minor))                     \
  BERTH_NVML(nvmlDeviceGetPciInfo, (Device device, Pci * pci))                                   \
  BERTH_NVML(nvmlDeviceGetPciInfo_v2, (Device device, Pci * pci))                                \
  BERTH_NVML(nvmlDeviceGetPciInfo_v3, (Device device, Pci * pci))                                \
  BERTH_NVML(nvmlDeviceGetMemoryInfo, (Device device, Memory * memory))                          \
  BERTH_NVML(nvmlDeviceGetMemoryInfo_v2, (Device device, Memory2 * memory))                      \
  BERTH_NVML(nvmlDeviceGetCpuAffinity, (Device device, unsigned int words, unsigned long* set))  \
  BERTH_NVML(nvmlDeviceGetMemoryAffinity,                                                        \
             (Device device, unsigned int words, unsigned long* set, int scope))                 \
  BERTH_NVML(nvmlDeviceGetTopologyCommonAncestor, (Device one, Device other, int* level))        \
  BERTH_NVML(nvmlDeviceGetNvLinkState, (Device device, unsigned int link, int* active))          \
  BERTH_NVML(nvmlDeviceGetNvLinkRemoteDeviceType, (Device device, unsigned int link, int* kind)) \
  BERTH_NVML(nvmlDeviceGetNvLinkRemotePciInfo, (Device device, unsigned int link, Pci* pci))     \
  BERTH_NVML(nvmlDeviceGetNvLinkRemotePciInfo_v2, (Device device, unsigned int link, Pci* pci))  \
  BERTH_NVML(nvmlDeviceGetMigMode, (Device device, unsigned int* now, unsigned int* later))      \
  BERTH_NVML(nvmlDeviceGetMaxMigDeviceCount, (Device device, unsigned int* count))               \
  BERTH_NVML(nvmlDeviceGetMigDeviceHandleByIndex,                                                \
             (Device device, unsigned int index, Device* instance))                              \
  BERTH_NVML(nvmlDeviceGetGpuInstanceId, (Device instance, unsigned int* id))                    \
  BERTH_NVML(nvmlDeviceGetComputeInstanceId, (Device instance, unsigned int* id))                \
  BERTH_NVML(nvmlDeviceGetAttributes_v2, (Device device, Attributes * attributes))               \
  BERTH_NVML(nvmlDeviceGetUtilizationRates, (Device device, Utilization * rates))                \
  BERTH_NVML(nvmlDeviceGetPowerUsage, (Device device, unsigned int* milliwatts))                 \
  BERTH_NVML(nvmlDeviceGetTemperature, (Device device, int sensor, unsigned int* celsius))       \
  BERTH_NVML(nvmlDeviceGetTotalEccErrors,                                                        \
             (Device device, int kind, int counter, unsigned long long* count))                  \
  BERTH_NVML(nvmlDeviceGetRemappedRows,                                                          \
             (Device device, unsigned int* corrected, unsigned int* uncorrected,                 \
              unsigned int* pending, unsigned int* failed))                                      \
  BERTH_NVML(nvmlDeviceGetComputeRunningProcesses,                                               \
             (Device device, unsigned int* count, ProcessInfo1* processes))                      \
  BERTH_NVML(nvmlDeviceGetComputeRunningProcesses_v2,                                            \
             (Device device, unsigned int* count, ProcessInfo* processes))                       \
  BERTH_NVML(nvmlDeviceGetComputeRunningProcesses_v3,                                            \
             (Device device, unsigned int* count, ProcessInfo* processes))                       \
  BERTH_NVML(nvmlDeviceGetGraphicsRunningProcesses_v3,                                           \
             (Device device, unsigned int* count, ProcessInfo* processes))                       \
  BERTH_NVML(nvmlEventSetCreate, (EventSet * set))                                               \
  BERTH_NVML(nvmlEventSetFree, (EventSet set))                                                   \
  BERTH_NVML(nvmlDeviceRegisterEvents, (Device device, unsigned long long types, EventSet set))  \
  BERTH_NVML(nvmlEventSetWait, (EventSet set, EventData * data, unsigned int milliseconds))      \
  BERTH_NVML(nvmlEventSetWait_v2, (EventSet set, EventData * data, unsigned int milliseconds))
