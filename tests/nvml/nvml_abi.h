/*
 * The part of NVML's binary interface that the fake library speaks: numbers, and structures as pynvml declares them.
 *
 * Scenario files may use these names, so this header is also where build.py looks them up: keep one
 * "#define NAME number" per line. A test holds every number and every structure against the installed pynvml.
 */
#ifndef FAKE_NVML_ABI_H
#define FAKE_NVML_ABI_H

typedef unsigned int nvmlReturn_t;
typedef struct nvmlDevice_st *nvmlDevice_t;

/* Return codes */
#define NVML_SUCCESS                         0
#define NVML_ERROR_UNINITIALIZED             1
#define NVML_ERROR_INVALID_ARGUMENT          2
#define NVML_ERROR_NOT_SUPPORTED             3
#define NVML_ERROR_NO_PERMISSION             4
#define NVML_ERROR_ALREADY_INITIALIZED       5
#define NVML_ERROR_NOT_FOUND                 6
#define NVML_ERROR_INSUFFICIENT_SIZE         7
#define NVML_ERROR_INSUFFICIENT_POWER        8
#define NVML_ERROR_DRIVER_NOT_LOADED         9
#define NVML_ERROR_TIMEOUT                   10
#define NVML_ERROR_IRQ_ISSUE                 11
#define NVML_ERROR_LIBRARY_NOT_FOUND         12
#define NVML_ERROR_FUNCTION_NOT_FOUND        13
#define NVML_ERROR_CORRUPTED_INFOROM         14
#define NVML_ERROR_GPU_IS_LOST               15
#define NVML_ERROR_RESET_REQUIRED            16
#define NVML_ERROR_OPERATING_SYSTEM          17
#define NVML_ERROR_LIB_RM_VERSION_MISMATCH   18
#define NVML_ERROR_IN_USE                    19
#define NVML_ERROR_MEMORY                    20
#define NVML_ERROR_NO_DATA                   21
#define NVML_ERROR_VGPU_ECC_NOT_SUPPORTED    22
#define NVML_ERROR_INSUFFICIENT_RESOURCES    23
#define NVML_ERROR_FREQ_NOT_SUPPORTED        24
#define NVML_ERROR_ARGUMENT_VERSION_MISMATCH 25
#define NVML_ERROR_DEPRECATED                26
#define NVML_ERROR_NOT_READY                 27
#define NVML_ERROR_GPU_NOT_FOUND             28
#define NVML_ERROR_INVALID_STATE             29
#define NVML_ERROR_RESET_TYPE_NOT_SUPPORTED  30
#define NVML_ERROR_UNKNOWN                   999

/* Identity */
#define NVML_BRAND_QUADRO                1
#define NVML_BRAND_TESLA                 2
#define NVML_BRAND_GEFORCE               5
#define NVML_BRAND_NVIDIA_VWS            10
#define NVML_BRAND_NVIDIA_RTX            13
#define NVML_BRAND_NVIDIA                14
#define NVML_DEVICE_ARCH_TURING          6
#define NVML_DEVICE_ARCH_AMPERE          7
#define NVML_DEVICE_ARCH_ADA             8
#define NVML_DEVICE_ARCH_HOPPER          9
#define NVML_DEVICE_ARCH_BLACKWELL       10
#define NVML_DEVICE_ADDRESSING_MODE_NONE 0
#define NVML_DEVICE_ADDRESSING_MODE_HMM  1
#define NVML_DEVICE_ADDRESSING_MODE_ATS  2

/* Modes */
#define NVML_FEATURE_DISABLED                     0
#define NVML_FEATURE_ENABLED                      1
#define NVML_COMPUTEMODE_DEFAULT                  0
#define NVML_COMPUTEMODE_PROHIBITED               2
#define NVML_COMPUTEMODE_EXCLUSIVE_PROCESS        3
#define NVML_GPU_VIRTUALIZATION_MODE_NONE         0
#define NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH  1
#define NVML_GPU_VIRTUALIZATION_MODE_VGPU         2
#define NVML_GRID_LICENSE_FEATURE_CODE_VGPU       1
#define NVML_GRID_LICENSE_FEATURE_CODE_NVIDIA_RTX 2

/* Reasons for lowered clocks */
#define nvmlClocksEventReasonGpuIdle                   0x1
#define nvmlClocksEventReasonApplicationsClocksSetting 0x2
#define nvmlClocksEventReasonSwPowerCap                0x4
#define nvmlClocksEventReasonHwSlowdown                0x8
#define nvmlClocksEventReasonSyncBoost                 0x10
#define nvmlClocksEventReasonSwThermalSlowdown         0x20
#define nvmlClocksEventReasonHwThermalSlowdown         0x40
#define nvmlClocksEventReasonHwPowerBrakeSlowdown      0x80
#define nvmlClocksEventReasonDisplayClockSetting       0x100

/* Topology */
#define NVML_TOPOLOGY_INTERNAL                0
#define NVML_TOPOLOGY_SINGLE                  10
#define NVML_TOPOLOGY_MULTIPLE                20
#define NVML_TOPOLOGY_HOSTBRIDGE              30
#define NVML_TOPOLOGY_NODE                    40
#define NVML_TOPOLOGY_SYSTEM                  50
#define NVML_P2P_STATUS_OK                    0
#define NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED 1
#define NVML_P2P_STATUS_GPU_NOT_SUPPORTED     2
#define NVML_P2P_STATUS_NOT_SUPPORTED         5

/* NVLink and fabric */
#define NVML_NVLINK_VERSION_3_0                         4
#define NVML_NVLINK_VERSION_4_0                         6
#define NVML_NVLINK_DEVICE_TYPE_GPU                     0
#define NVML_NVLINK_DEVICE_TYPE_SWITCH                  2
#define NVML_GPU_FABRIC_STATE_NOT_STARTED               1
#define NVML_GPU_FABRIC_STATE_IN_PROGRESS               2
#define NVML_GPU_FABRIC_STATE_COMPLETED                 3
#define NVML_GPU_FABRIC_HEALTH_SUMMARY_HEALTHY          1
#define NVML_GPU_FABRIC_HEALTH_SUMMARY_UNHEALTHY        2
#define NVML_GPU_FABRIC_HEALTH_SUMMARY_LIMITED_CAPACITY 3

/* Recovery actions */
#define NVML_GPU_RECOVERY_ACTION_NONE                0
#define NVML_GPU_RECOVERY_ACTION_GPU_RESET           1
#define NVML_GPU_RECOVERY_ACTION_NODE_REBOOT         2
#define NVML_GPU_RECOVERY_ACTION_DRAIN_P2P           3
#define NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET     4
#define NVML_GPU_RECOVERY_ACTION_RECOVER_IMEX_DOMAIN 5
#define NVML_GPU_RECOVERY_ACTION_BUS_RESET           6
#define NVML_GPU_RECOVERY_ACTION_SYSTEM_REBOOT       7

/* Types of a field's value */
#define NVML_VALUE_TYPE_UNSIGNED_INT       1
#define NVML_VALUE_TYPE_UNSIGNED_LONG_LONG 3
#define NVML_VALUE_TYPE_SIGNED_INT         5

/* Field identifiers (an _L0 stands for links 0 to 5, an _L6 for links 6 to 11) */
#define NVML_FI_DEV_ECC_CURRENT                                 1
#define NVML_FI_DEV_ECC_PENDING                                 2
#define NVML_FI_DEV_ECC_SBE_VOL_TOTAL                           3
#define NVML_FI_DEV_ECC_DBE_VOL_TOTAL                           4
#define NVML_FI_DEV_ECC_SBE_AGG_TOTAL                           5
#define NVML_FI_DEV_ECC_DBE_AGG_TOTAL                           6
#define NVML_FI_DEV_RETIRED_SBE                                 29
#define NVML_FI_DEV_RETIRED_DBE                                 30
#define NVML_FI_DEV_RETIRED_PENDING                             31
#define NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L0              32
#define NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL           38
#define NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L0              39
#define NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL           45
#define NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L0                46
#define NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL             52
#define NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L0              53
#define NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL           59
#define NVML_FI_DEV_PERF_POLICY_POWER                           74
#define NVML_FI_DEV_PERF_POLICY_THERMAL                         75
#define NVML_FI_DEV_PERF_POLICY_SYNC_BOOST                      76
#define NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT                     77
#define NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION                 78
#define NVML_FI_DEV_PERF_POLICY_RELIABILITY                     79
#define NVML_FI_DEV_MEMORY_TEMP                                 82
#define NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION                    83
#define NVML_FI_DEV_NVLINK_SPEED_MBPS_L0                        84
#define NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON                    90
#define NVML_FI_DEV_NVLINK_LINK_COUNT                           91
#define NVML_FI_DEV_PCIE_REPLAY_COUNTER                         94
#define NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER                95
#define NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L6              96
#define NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L6              102
#define NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L6                108
#define NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L6              114
#define NVML_FI_DEV_NVLINK_SPEED_MBPS_L6                        132
#define NVML_FI_DEV_REMAPPED_COR                                142
#define NVML_FI_DEV_REMAPPED_UNC                                143
#define NVML_FI_DEV_REMAPPED_PENDING                            144
#define NVML_FI_DEV_REMAPPED_FAILURE                            145
#define NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT               147
#define NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_L0              148
#define NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_L6              154
#define NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL           160
#define NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY                      161
#define NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY                    162
#define NVML_FI_DEV_NVLINK_ERROR_DL_CRC                         163
#define NVML_FI_DEV_NVLINK_GET_SPEED                            164
#define NVML_FI_DEV_NVLINK_GET_STATE                            165
#define NVML_FI_DEV_NVLINK_GET_VERSION                          166
#define NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS               173
#define NVML_FI_DEV_PCIE_COUNT_NAKS_RECEIVED                    174
#define NVML_FI_DEV_PCIE_COUNT_RECEIVER_ERROR                   175
#define NVML_FI_DEV_PCIE_COUNT_BAD_TLP                          176
#define NVML_FI_DEV_PCIE_COUNT_NAKS_SENT                        177
#define NVML_FI_DEV_PCIE_COUNT_BAD_DLLP                         178
#define NVML_FI_DEV_PCIE_COUNT_NON_FATAL_ERROR                  179
#define NVML_FI_DEV_PCIE_COUNT_FATAL_ERROR                      180
#define NVML_FI_DEV_POWER_AVERAGE                               185
#define NVML_FI_DEV_POWER_INSTANT                               186
#define NVML_FI_DEV_POWER_MIN_LIMIT                             187
#define NVML_FI_DEV_POWER_MAX_LIMIT                             188
#define NVML_FI_DEV_POWER_DEFAULT_LIMIT                         189
#define NVML_FI_DEV_POWER_CURRENT_LIMIT                         190
#define NVML_FI_DEV_POWER_REQUESTED_LIMIT                       192
#define NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT                 193
#define NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT                 194
#define NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT                  195
#define NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT                  196
#define NVML_FI_DEV_RESET_STATUS                                226
#define NVML_FI_DEV_DRAIN_AND_RESET_STATUS                      227
#define NVML_FI_DEV_GET_GPU_RECOVERY_ACTION                     230
#define NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN       269
#define NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN       270
#define NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN 271
#define NVML_FI_MAX                                             308

/* Sizes and bounds */
#define NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE    32
#define NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE 16
#define NVML_GPU_FABRIC_UUID_LEN              16
#define NVML_GRID_LICENSE_BUFFER_SIZE         128
#define NVML_GRID_LICENSE_FEATURE_MAX_COUNT   3
#define NVML_GSP_FIRMWARE_VERSION_BUF_SIZE    64

/* Versions of structures */
#define nvmlPciInfoExt_v1           0x1000040
#define nvmlMemory_v2               0x2000028
#define nvmlTemperature_v1          0x100000c
#define nvmlMarginTemperature_v1    0x1000008
#define nvmlEccSramErrorStatus_v1   0x1000068
#define nvmlGpuFabricInfo_v2        0x2000024
#define nvmlGpuFabricInfo_v3        0x3000028
#define nvmlDeviceAddressingMode_v1 0x1000008

/* Structures: names and fields are pynvml's (its c_ prefix left off). */

typedef struct {
    char busIdLegacy[NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE];
    unsigned int domain;
    unsigned int bus;
    unsigned int device;
    unsigned int pciDeviceId;
    unsigned int pciSubSystemId;
    char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE];
} nvmlPciInfo_t;

typedef struct {
    unsigned int version;
    unsigned int domain;
    unsigned int bus;
    unsigned int device;
    unsigned int pciDeviceId;
    unsigned int pciSubSystemId;
    unsigned int baseClass;
    unsigned int subClass;
    char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE];
} nvmlPciInfoExt_v1_t;

typedef struct {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
} nvmlMemory_t;

typedef struct {
    unsigned int version;
    unsigned long long total;
    unsigned long long reserved;
    unsigned long long free;
    unsigned long long used;
} nvmlMemory_v2_t;

typedef struct {
    unsigned long long bar1Total;
    unsigned long long bar1Free;
    unsigned long long bar1Used;
} nvmlBAR1Memory_t;

typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId;
    unsigned int computeInstanceId;
} nvmlProcessInfo_v2_t; /* the calls that end in _v3 fill the same structure */

typedef struct {
    unsigned int gpu;
    unsigned int memory;
} nvmlUtilization_t;

typedef struct {
    unsigned long long l1Cache;
    unsigned long long l2Cache;
    unsigned long long deviceMemory;
    unsigned long long registerFile;
} nvmlEccErrorCounts_t;

typedef struct {
    unsigned int version;
    unsigned long long aggregateUncParity;
    unsigned long long aggregateUncSecDed;
    unsigned long long aggregateCor;
    unsigned long long volatileUncParity;
    unsigned long long volatileUncSecDed;
    unsigned long long volatileCor;
    unsigned long long aggregateUncBucketL2;
    unsigned long long aggregateUncBucketSm;
    unsigned long long aggregateUncBucketPcie;
    unsigned long long aggregateUncBucketMcu;
    unsigned long long aggregateUncBucketOther;
    unsigned int bThresholdExceeded;
} nvmlEccSramErrorStatus_v1_t;

typedef struct {
    unsigned int max;
    unsigned int high;
    unsigned int partial;
    unsigned int low;
    unsigned int none;
} nvmlRowRemapperHistogramValues;

typedef struct {
    unsigned long long referenceTime;
    unsigned long long violationTime;
} nvmlViolationTime_t;

typedef struct {
    unsigned int version;
    unsigned int sensorType;
    int temperature;
} nvmlTemperature_v1_t;

typedef struct {
    unsigned int version;
    int marginTemperature;
} nvmlMarginTemperature_v1_t;

typedef struct {
    unsigned int version;
    unsigned int value;
} nvmlDeviceAddressingMode_t;

typedef union {
    double dVal;
    unsigned int uiVal;
    unsigned long ulVal;
    unsigned long long ullVal;
    long long sllVal;
    int siVal;
    unsigned short usVal;
} nvmlValue_t;

typedef struct {
    unsigned int fieldId;
    unsigned int scopeId;
    long long timestamp;
    long long latencyUsec;
    unsigned int valueType;
    nvmlReturn_t nvmlReturn;
    nvmlValue_t value;
} nvmlFieldValue_t;

typedef struct {
    unsigned char clusterUuid[NVML_GPU_FABRIC_UUID_LEN];
    nvmlReturn_t status;
    unsigned int cliqueId;
    unsigned int state;
} nvmlGpuFabricInfo_t;

typedef struct {
    unsigned int version;
    unsigned char clusterUuid[NVML_GPU_FABRIC_UUID_LEN];
    nvmlReturn_t status;
    unsigned int cliqueId;
    unsigned int state;
    unsigned int healthMask;
    unsigned char healthSummary;
} nvmlGpuFabricInfo_v3_t;

typedef struct {
    unsigned int year;
    unsigned short month;
    unsigned short day;
    unsigned short hour;
    unsigned short min;
    unsigned short sec;
    unsigned char status;
} nvmlGridLicenseExpiry_t;

typedef struct {
    unsigned int featureCode;
    unsigned int featureState;
    char licenseInfo[NVML_GRID_LICENSE_BUFFER_SIZE];
    char productName[NVML_GRID_LICENSE_BUFFER_SIZE];
    unsigned int featureEnabled;
    nvmlGridLicenseExpiry_t licenseExpiry;
} nvmlGridLicensableFeature_v4_t;

typedef struct {
    int isGridLicenseSupported;
    unsigned int licensableFeaturesCount;
    nvmlGridLicensableFeature_v4_t gridLicensableFeatures[NVML_GRID_LICENSE_FEATURE_MAX_COUNT];
} nvmlGridLicensableFeatures_v4_t;

#endif
