/*
 * A libnvidia-ml.so.1 that answers from a text file, so that the real pynvml can be run against any machine one likes.
 *
 * FAKE_NVML_SCENARIO names a file of "key=value" lines (build.py makes it from scenarios/NAME.yaml). A call looks its
 * answer up under the GPU's number: nvmlDeviceGetPowerUsage on GPU 3 reads gpu.3.power.usage. What the file does not
 * give is answered with NVML_ERROR_NOT_SUPPORTED, as the real library answers for a product that lacks it.
 *
 *   gpu.*.power.usage=70000             for every GPU; a line that gives the number wins over one with the star
 *   gpu.3.power.usage=N/A               takes an inherited value away again
 *   gpu.3.pcie.replay_counter=7+2/s     a counter that has 7 when the scenario is loaded and grows by 2 a second
 *   return.nvmlInit=9                   what a call returns, whatever it is asked
 *   gpu.3.return.*=15                   the same for one GPU, here for every call that concerns it
 *   gpu.3.hang.nvmlDeviceGetName=1      the call never comes back
 *   missing.nvmlDeviceGetNumFans=1      the call does not exist (yet); pynvml cannot tell this from an absent symbol
 *
 * Calls may be named without their _v2, _v3. All versions of nvmlInit go by "nvmlInit".
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nvml_abi.h"

#define MAX_GPUS 16
#define MAX_MIG_DEVICES 8
#define KEY_SIZE 160
#define KEY_PARTS 12
#define NOT_AVAILABLE (~0ULL) /* NVML_VALUE_NOT_AVAILABLE */
#define WHOLE_GPU (-1)
#define ALL_LINKS (~0u)

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define TRY(call)                          \
    do {                                   \
        nvmlReturn_t status_ = (call);     \
        if (status_ != NVML_SUCCESS)       \
            return status_;                \
    } while (0)

/* ---- The scenario ------------------------------------------------------------------------------------------------ */

struct entry {
    char *key;
    char *value;
    int used;
};

static struct entry *entries;
static size_t entry_count;
static struct timespec loaded_at;

static void fail(const char *problem, const char *what)
{
    fprintf(stderr, "fake NVML: %s: %s\n", problem, what);
    abort(); /* a mistake in a test must not look like an answer of the driver */
}

static int by_key(const void *left, const void *right)
{
    return strcmp(((const struct entry *)left)->key, ((const struct entry *)right)->key);
}

static void load_scenario(void)
{
    const char *path = getenv("FAKE_NVML_SCENARIO");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file)
        fail("FAKE_NVML_SCENARIO names no readable file", path ? path : "(not set)");
    while (entry_count) {
        entry_count--;
        free(entries[entry_count].key);
        free(entries[entry_count].value);
    }
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        char *equals = strchr(line, '=');
        if (!equals)
            fail("line without a value", line);
        *equals = '\0';
        entries = realloc(entries, (entry_count + 1) * sizeof *entries);
        entries[entry_count++] = (struct entry){strdup(line), strdup(equals + 1), 0};
    }
    free(line);
    fclose(file);
    qsort(entries, entry_count, sizeof *entries, by_key);
    clock_gettime(CLOCK_MONOTONIC, &loaded_at);
}

static int is_number(const char *text)
{
    return text[0] && text[strspn(text, "0123456789")] == '\0';
}

/* The value of a key, or NULL. Each number in the key may stand as a star in the scenario; fewer stars win, and of two
   lines with as many, the one whose star is further right. */
static const char *lookup(const char *key)
{
    char copy[KEY_SIZE], candidate[KEY_SIZE];
    char *parts[KEY_PARTS], *rest = NULL;
    unsigned part_count = 0, numbers = 0;

    snprintf(copy, sizeof copy, "%s", key);
    for (char *part = strtok_r(copy, ".", &rest); part && part_count < KEY_PARTS; part = strtok_r(NULL, ".", &rest)) {
        parts[part_count++] = part;
        numbers += is_number(part);
    }
    for (unsigned stars = 0; stars < 1u << numbers; stars++) {
        unsigned number = numbers;
        size_t length = 0;
        for (unsigned i = 0; i < part_count; i++) {
            int star = is_number(parts[i]) && (stars >> --number & 1);
            length += (size_t)snprintf(candidate + length, sizeof candidate - length, i ? ".%s" : "%s",
                                       star ? "*" : parts[i]);
        }
        struct entry wanted = {candidate, NULL, 0};
        struct entry *found = entry_count ? bsearch(&wanted, entries, entry_count, sizeof *entries, by_key) : NULL;
        if (found) {
            found->used = 1;
            return strcmp(found->value, "N/A") ? found->value : NULL;
        }
    }
    return NULL;
}

static long long as_number(const char *text)
{
    char *rest;
    long long number = strtoll(text, &rest, 0);
    int valid = rest != text;
    if (*rest == '+') {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        double seconds = (double)(now.tv_sec - loaded_at.tv_sec) + (double)(now.tv_nsec - loaded_at.tv_nsec) / 1e9;
        number += (long long)((double)strtoll(rest + 1, &rest, 0) * seconds);
        valid = valid && strcmp(rest, "/s") == 0;
    } else {
        valid = valid && *rest == '\0';
    }
    if (!valid)
        fail("not a number", text);
    return number;
}

/* For the tests: a key that no call has asked for since the scenario was loaded, so that a misspelt one is noticed. */
const char *fakeNvmlUnusedKey(unsigned int index)
{
    for (size_t i = 0; i < entry_count; i++)
        if (!entries[i].used && index-- == 0)
            return entries[i].key;
    return NULL;
}

/* ---- Devices, and what every call does first --------------------------------------------------------------------- */

struct nvmlDevice_st {
    int gpu;
    int mig; /* number of the MIG device on that GPU, or WHOLE_GPU */
};

static struct nvmlDevice_st devices[MAX_GPUS][1 + MAX_MIG_DEVICES];
static unsigned int gpu_count;
static int references;

static int is_device(nvmlDevice_t device)
{
    uintptr_t offset = (uintptr_t)device - (uintptr_t)devices;
    return offset < sizeof devices && offset % sizeof *device == 0 && (unsigned)device->gpu < gpu_count;
}

/* The scenario's word on a call: "return", "hang" or "missing". What it says of the GPU goes before what it says in
   general, and a call's name before the star. */
static const char *rule(const char *kind, const char *function, nvmlDevice_t device)
{
    char bare[KEY_SIZE / 2], key[KEY_SIZE];
    size_t length = strlen(function);
    if (length > 3 && strncmp(function + length - 3, "_v", 2) == 0 && isdigit((unsigned char)function[length - 1]))
        length -= 3;
    snprintf(bare, sizeof bare, "%.*s", (int)length, function);

    const char *names[] = {function, bare, "*"};
    for (int general = !device; general <= 1; general++)
        for (size_t i = 0; i < COUNT(names); i++) {
            if (general)
                snprintf(key, sizeof key, "%s.%s", kind, names[i]);
            else
                snprintf(key, sizeof key, "gpu.%d.%s.%s", device->gpu, kind, names[i]);
            const char *value = lookup(key);
            if (value)
                return value;
        }
    return NULL;
}

static nvmlReturn_t obey(const char *function, nvmlDevice_t device)
{
    if (rule("hang", function, device))
        for (;;)
            pause();
    const char *value = rule("return", function, device);
    return value ? (nvmlReturn_t)as_number(value) : NVML_SUCCESS;
}

/* A few calls work before nvmlInit; they need the scenario all the same. */
static nvmlReturn_t enter_early(const char *function)
{
    if (!entries)
        load_scenario();
    return rule("missing", function, NULL) ? NVML_ERROR_FUNCTION_NOT_FOUND : obey(function, NULL);
}

static nvmlReturn_t enter_system(const char *function)
{
    if (entries && rule("missing", function, NULL))
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    return references ? obey(function, NULL) : NVML_ERROR_UNINITIALIZED;
}

static nvmlReturn_t enter_device(const char *function, nvmlDevice_t device)
{
    if (entries && rule("missing", function, NULL))
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    if (!references)
        return NVML_ERROR_UNINITIALIZED;
    return is_device(device) ? obey(function, device) : NVML_ERROR_INVALID_ARGUMENT;
}

#define ENTER_SYSTEM() TRY(enter_system(__func__))
#define ENTER(device) TRY(enter_device(__func__, device))

/* ---- Reading one value ------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static const char *value_of(nvmlDevice_t device, const char *format, ...)
{
    char name[KEY_SIZE / 2], key[KEY_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    if (device->mig == WHOLE_GPU)
        snprintf(key, sizeof key, "gpu.%d.%s", device->gpu, name);
    else
        snprintf(key, sizeof key, "gpu.%d.mig.devices.%d.%s", device->gpu, device->mig, name);
    return lookup(key);
}

static nvmlReturn_t get_number(nvmlDevice_t device, const char *key, long long *number)
{
    const char *value = value_of(device, "%s", key);
    if (!value)
        return NVML_ERROR_NOT_SUPPORTED;
    *number = as_number(value);
    return NVML_SUCCESS;
}

static long long number_or(nvmlDevice_t device, const char *key, long long otherwise)
{
    long long number = otherwise;
    get_number(device, key, &number);
    return number;
}

static nvmlReturn_t get_uint(nvmlDevice_t device, const char *key, unsigned int *result)
{
    long long number;
    if (!result)
        return NVML_ERROR_INVALID_ARGUMENT;
    TRY(get_number(device, key, &number));
    *result = (unsigned int)number;
    return NVML_SUCCESS;
}

static nvmlReturn_t get_ulonglong(nvmlDevice_t device, const char *key, unsigned long long *result)
{
    long long number;
    if (!result)
        return NVML_ERROR_INVALID_ARGUMENT;
    TRY(get_number(device, key, &number));
    *result = (unsigned long long)number;
    return NVML_SUCCESS;
}

/* One of a family of values that the caller picks by number: "clock.%s.max" with {"graphics", "sm", ...}. */
static nvmlReturn_t get_named_uint(nvmlDevice_t device, const char *format, const char *const *names, size_t name_count,
                                   unsigned int which, unsigned int *result)
{
    char key[KEY_SIZE / 2];
    if (which >= name_count || !names[which])
        return NVML_ERROR_INVALID_ARGUMENT;
    const char *placeholder = strchr(format, '%');
    snprintf(key, sizeof key, "%.*s%s%s", (int)(placeholder - format), format, names[which], placeholder + 2);
    return get_uint(device, key, result);
}

static nvmlReturn_t copy_text(const char *value, char *buffer, unsigned int length)
{
    if (!buffer)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!value)
        return NVML_ERROR_NOT_SUPPORTED;
    if (strlen(value) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(buffer, value);
    return NVML_SUCCESS;
}

static long long now_in_microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

/* ---- The library and the system ---------------------------------------------------------------------------------- */

static nvmlReturn_t init(void)
{
    if (!references)
        load_scenario();
    if (rule("missing", "nvmlInit", NULL))
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    TRY(obey("nvmlInit", NULL));
    const char *count = lookup("gpu.count");
    gpu_count = count ? (unsigned int)as_number(count) : 0;
    if (gpu_count > MAX_GPUS)
        fail("too many GPUs", count);
    for (int gpu = 0; gpu < MAX_GPUS; gpu++)
        for (int slot = 0; slot <= MAX_MIG_DEVICES; slot++)
            devices[gpu][slot] = (struct nvmlDevice_st){gpu, slot ? slot - 1 : WHOLE_GPU};
    references++;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlInit(void) { return init(); }
nvmlReturn_t nvmlInit_v2(void) { return init(); }

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    return init();
}

nvmlReturn_t nvmlShutdown(void)
{
    ENTER_SYSTEM();
    references--;
    return NVML_SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t result)
{
    static const char *const texts[] = {
        [NVML_SUCCESS] = "Success",
        [NVML_ERROR_UNINITIALIZED] = "Uninitialized",
        [NVML_ERROR_INVALID_ARGUMENT] = "Invalid Argument",
        [NVML_ERROR_NOT_SUPPORTED] = "Not Supported",
        [NVML_ERROR_NO_PERMISSION] = "Insufficient Permissions",
        [NVML_ERROR_ALREADY_INITIALIZED] = "Already Initialized",
        [NVML_ERROR_NOT_FOUND] = "Not Found",
        [NVML_ERROR_INSUFFICIENT_SIZE] = "Insufficient Size",
        [NVML_ERROR_INSUFFICIENT_POWER] = "Insufficient External Power",
        [NVML_ERROR_DRIVER_NOT_LOADED] = "Driver Not Loaded",
        [NVML_ERROR_TIMEOUT] = "Timeout",
        [NVML_ERROR_IRQ_ISSUE] = "Interrupt Request Issue",
        [NVML_ERROR_LIBRARY_NOT_FOUND] = "NVML Shared Library Not Found",
        [NVML_ERROR_FUNCTION_NOT_FOUND] = "Function Not Found",
        [NVML_ERROR_CORRUPTED_INFOROM] = "Corrupted infoROM",
        [NVML_ERROR_GPU_IS_LOST] = "GPU is lost",
        [NVML_ERROR_RESET_REQUIRED] = "GPU requires restart",
        [NVML_ERROR_OPERATING_SYSTEM] = "The operating system has blocked the request.",
        [NVML_ERROR_LIB_RM_VERSION_MISMATCH] = "RM has detected an NVML/RM version mismatch.",
        [NVML_ERROR_IN_USE] = "In use by another client",
        [NVML_ERROR_MEMORY] = "Insufficient Memory",
        [NVML_ERROR_NO_DATA] = "No data",
        [NVML_ERROR_ARGUMENT_VERSION_MISMATCH] = "Argument version mismatch",
    };
    return result < COUNT(texts) && texts[result] ? texts[result] : "Unknown Error";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    ENTER_SYSTEM();
    return copy_text(lookup("driver_version"), version, length);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    TRY(enter_early(__func__));
    return copy_text(lookup("nvml_version"), version, length);
}

static nvmlReturn_t cuda_driver_version(int *version)
{
    const char *value = lookup("cuda_version");
    if (!version)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!value)
        return NVML_ERROR_LIBRARY_NOT_FOUND; /* there is no libcuda beside this library */
    *version = (int)as_number(value);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    TRY(enter_early(__func__));
    return cuda_driver_version(version);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    TRY(enter_early(__func__));
    return cuda_driver_version(version);
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
    ENTER_SYSTEM();
    char key[KEY_SIZE];
    snprintf(key, sizeof key, "process.%u.name", pid);
    const char *value = lookup(key);
    if (!name || !length)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!value)
        return NVML_ERROR_NOT_FOUND;
    snprintf(name, length, "%s", value); /* the real one crops, too */
    return NVML_SUCCESS;
}

/* ---- Handles ----------------------------------------------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    ENTER_SYSTEM();
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = gpu_count; /* lost GPUs are counted; it is their handle that is refused */
    return NVML_SUCCESS;
}

static nvmlReturn_t hand_out(const char *function, nvmlDevice_t candidate, nvmlDevice_t *device)
{
    TRY(enter_device(function, candidate));
    *device = candidate;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    ENTER_SYSTEM();
    if (index >= gpu_count || !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    return hand_out(__func__, &devices[index][0], device);
}

static unsigned int mig_device_count(nvmlDevice_t gpu)
{
    long long count = number_or(gpu, "mig.devices.count", 0);
    return count < MAX_MIG_DEVICES ? (unsigned int)count : MAX_MIG_DEVICES;
}

static nvmlReturn_t find_device(const char *function, const char *key, const char *text, nvmlDevice_t *device)
{
    if (!text || !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int gpu = 0; gpu < gpu_count; gpu++)
        for (unsigned int slot = 0; slot <= mig_device_count(&devices[gpu][0]); slot++) {
            const char *value = value_of(&devices[gpu][slot], "%s", key);
            if (value && strcasecmp(value, text) == 0)
                return hand_out(function, &devices[gpu][slot], device);
        }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    ENTER_SYSTEM();
    return find_device(__func__, "uuid", uuid, device);
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
    ENTER_SYSTEM();
    return find_device(__func__, "serial", serial, device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    ENTER_SYSTEM();
    unsigned int domain = 0, bus, slot;
    char full[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE];
    if (!bus_id || (sscanf(bus_id, "%x:%x:%x", &domain, &bus, &slot) != 3 &&
                    (domain = 0, sscanf(bus_id, "%x:%x", &bus, &slot) != 2)))
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(full, sizeof full, "%08X:%02X:%02X.0", domain, bus, slot);
    return find_device(__func__, "pci.bus_id", full, device);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    ENTER(device);
    if (!index)
        return NVML_ERROR_INVALID_ARGUMENT;
    *index = (unsigned int)device->gpu;
    return NVML_SUCCESS;
}

/* ---- Calls that pass one value on -------------------------------------------------------------------------------- */

#define TEXT_CALL(function, key)                                                     \
    nvmlReturn_t function(nvmlDevice_t device, char *buffer, unsigned int length)    \
    {                                                                                \
        ENTER(device);                                                               \
        return copy_text(value_of(device, "%s", key), buffer, length);               \
    }

TEXT_CALL(nvmlDeviceGetName, "name")
TEXT_CALL(nvmlDeviceGetUUID, "uuid")
TEXT_CALL(nvmlDeviceGetSerial, "serial")
TEXT_CALL(nvmlDeviceGetBoardPartNumber, "board_part_number")
TEXT_CALL(nvmlDeviceGetVbiosVersion, "vbios_version")
TEXT_CALL(nvmlDeviceGetInforomImageVersion, "inforom.image")

#define UINT_CALL(function, key)                                         \
    nvmlReturn_t function(nvmlDevice_t device, unsigned int *value)      \
    {                                                                    \
        ENTER(device);                                                   \
        return get_uint(device, key, value);                             \
    }

UINT_CALL(nvmlDeviceGetBrand, "brand")
UINT_CALL(nvmlDeviceGetArchitecture, "architecture")
UINT_CALL(nvmlDeviceGetMinorNumber, "minor_number")
UINT_CALL(nvmlDeviceGetModuleId, "module_id")
UINT_CALL(nvmlDeviceGetNumaNodeId, "numa_node_id")
UINT_CALL(nvmlDeviceGetInforomConfigurationChecksum, "inforom.checksum")
UINT_CALL(nvmlDeviceGetDisplayMode, "display.mode")
UINT_CALL(nvmlDeviceGetDisplayActive, "display.active")
UINT_CALL(nvmlDeviceGetPersistenceMode, "persistence_mode")
UINT_CALL(nvmlDeviceGetComputeMode, "compute_mode")
UINT_CALL(nvmlDeviceGetVirtualizationMode, "virtualization_mode")
UINT_CALL(nvmlDeviceGetDefaultEccMode, "ecc.mode.default")
UINT_CALL(nvmlDeviceGetRetiredPagesPendingStatus, "retired_pages.pending")
UINT_CALL(nvmlDeviceGetPerformanceState, "performance_state")
UINT_CALL(nvmlDeviceGetPowerState, "performance_state")
UINT_CALL(nvmlDeviceGetPowerManagementMode, "power.management")
UINT_CALL(nvmlDeviceGetPowerUsage, "power.usage")
UINT_CALL(nvmlDeviceGetPowerManagementLimit, "power.limit")
UINT_CALL(nvmlDeviceGetPowerManagementDefaultLimit, "power.default_limit")
UINT_CALL(nvmlDeviceGetEnforcedPowerLimit, "power.enforced_limit")
UINT_CALL(nvmlDeviceGetNumFans, "fan.count")
UINT_CALL(nvmlDeviceGetFanSpeed, "fan.0.speed")
UINT_CALL(nvmlDeviceGetCurrPcieLinkGeneration, "pcie.generation.current")
UINT_CALL(nvmlDeviceGetMaxPcieLinkGeneration, "pcie.generation.max")
UINT_CALL(nvmlDeviceGetGpuMaxPcieLinkGeneration, "pcie.generation.gpu_max")
UINT_CALL(nvmlDeviceGetCurrPcieLinkWidth, "pcie.width.current")
UINT_CALL(nvmlDeviceGetMaxPcieLinkWidth, "pcie.width.max")
UINT_CALL(nvmlDeviceGetPcieReplayCounter, "pcie.replay_counter")

#define ULONGLONG_CALL(function, key)                                          \
    nvmlReturn_t function(nvmlDevice_t device, unsigned long long *value)      \
    {                                                                          \
        ENTER(device);                                                         \
        return get_ulonglong(device, key, value);                              \
    }

ULONGLONG_CALL(nvmlDeviceGetTotalEnergyConsumption, "power.energy")
ULONGLONG_CALL(nvmlDeviceGetCurrentClocksEventReasons, "clock.reasons.current")
ULONGLONG_CALL(nvmlDeviceGetCurrentClocksThrottleReasons, "clock.reasons.current")
ULONGLONG_CALL(nvmlDeviceGetSupportedClocksEventReasons, "clock.reasons.supported")
ULONGLONG_CALL(nvmlDeviceGetSupportedClocksThrottleReasons, "clock.reasons.supported")

#define PAIR_CALL(function, first_key, second_key)                                                \
    nvmlReturn_t function(nvmlDevice_t device, unsigned int *first, unsigned int *second)         \
    {                                                                                             \
        ENTER(device);                                                                            \
        TRY(get_uint(device, first_key, first));                                                  \
        return get_uint(device, second_key, second);                                              \
    }

PAIR_CALL(nvmlDeviceGetCudaComputeCapability, "compute_capability.major", "compute_capability.minor")
PAIR_CALL(nvmlDeviceGetEccMode, "ecc.mode.current", "ecc.mode.pending")
PAIR_CALL(nvmlDeviceGetMigMode, "mig.mode.current", "mig.mode.pending")
PAIR_CALL(nvmlDeviceGetGpuOperationMode, "operation_mode.current", "operation_mode.pending")
PAIR_CALL(nvmlDeviceGetGspFirmwareMode, "gsp.mode", "gsp.default_mode")
PAIR_CALL(nvmlDeviceGetPowerManagementLimitConstraints, "power.min_limit", "power.max_limit")
PAIR_CALL(nvmlDeviceGetEncoderUtilization, "utilization.encoder", "utilization.sampling_period")
PAIR_CALL(nvmlDeviceGetDecoderUtilization, "utilization.decoder", "utilization.sampling_period")

static const char *const CLOCKS[] = {"graphics", "sm", "memory", "video"};
static const char *const THRESHOLDS[] = {"shutdown",     "slowdown",      "mem_max",      "gpu_max",
                                         "acoustic_min", "acoustic_curr", "acoustic_max", "gps_curr"};
static const char *const SENSORS[] = {"gpu"};
static const char *const DIRECTIONS[] = {"tx", "rx"};

#define NAMED_UINT_CALL(function, format, names)                                                \
    nvmlReturn_t function(nvmlDevice_t device, unsigned int which, unsigned int *value)         \
    {                                                                                           \
        ENTER(device);                                                                          \
        return get_named_uint(device, format, names, COUNT(names), which, value);               \
    }

NAMED_UINT_CALL(nvmlDeviceGetClockInfo, "clock.%s.current", CLOCKS)
NAMED_UINT_CALL(nvmlDeviceGetMaxClockInfo, "clock.%s.max", CLOCKS)
NAMED_UINT_CALL(nvmlDeviceGetApplicationsClock, "clock.%s.application", CLOCKS)
NAMED_UINT_CALL(nvmlDeviceGetDefaultApplicationsClock, "clock.%s.default_application", CLOCKS)
NAMED_UINT_CALL(nvmlDeviceGetMaxCustomerBoostClock, "clock.%s.customer_boost", CLOCKS)
NAMED_UINT_CALL(nvmlDeviceGetTemperature, "temperature.%s", SENSORS)
NAMED_UINT_CALL(nvmlDeviceGetTemperatureThreshold, "temperature.threshold.%s", THRESHOLDS)
NAMED_UINT_CALL(nvmlDeviceGetPcieThroughput, "pcie.throughput.%s", DIRECTIONS)

/* What pynvml can ask for and no scenario models yet: there, as in the real library, and refused. Of what came after
   driver 575, only nvmlDeviceGetAddressingMode is there. */
#define UNMODELLED_CALL(function)               \
    nvmlReturn_t function(nvmlDevice_t device)  \
    {                                           \
        ENTER(device);                          \
        return NVML_ERROR_NOT_SUPPORTED;        \
    }

UNMODELLED_CALL(nvmlDeviceGetAPIRestriction)
UNMODELLED_CALL(nvmlDeviceGetAccountingBufferSize)
UNMODELLED_CALL(nvmlDeviceGetAccountingMode)
UNMODELLED_CALL(nvmlDeviceGetAccountingPids)
UNMODELLED_CALL(nvmlDeviceGetAccountingStats)
UNMODELLED_CALL(nvmlDeviceGetActiveVgpus)
UNMODELLED_CALL(nvmlDeviceGetAdaptiveClockInfoStatus)
UNMODELLED_CALL(nvmlDeviceGetAttributes_v2)
UNMODELLED_CALL(nvmlDeviceGetAutoBoostedClocksEnabled)
UNMODELLED_CALL(nvmlDeviceGetBridgeChipInfo)
UNMODELLED_CALL(nvmlDeviceGetBusType)
UNMODELLED_CALL(nvmlDeviceGetC2cModeInfoV)
UNMODELLED_CALL(nvmlDeviceGetCapabilities)
UNMODELLED_CALL(nvmlDeviceGetClkMonStatus)
UNMODELLED_CALL(nvmlDeviceGetClock)
UNMODELLED_CALL(nvmlDeviceGetClockOffsets)
UNMODELLED_CALL(nvmlDeviceGetConfComputeGpuAttestationReport)
UNMODELLED_CALL(nvmlDeviceGetConfComputeGpuCertificate)
UNMODELLED_CALL(nvmlDeviceGetConfComputeMemSizeInfo)
UNMODELLED_CALL(nvmlDeviceGetConfComputeProtectedMemoryUsage)
UNMODELLED_CALL(nvmlDeviceGetCoolerInfo)
UNMODELLED_CALL(nvmlDeviceGetCreatableVgpus)
UNMODELLED_CALL(nvmlDeviceGetCurrentClockFreqs)
UNMODELLED_CALL(nvmlDeviceGetDramEncryptionMode)
UNMODELLED_CALL(nvmlDeviceGetDriverModel_v2)
UNMODELLED_CALL(nvmlDeviceGetDynamicPstatesInfo)
UNMODELLED_CALL(nvmlDeviceGetEncoderCapacity)
UNMODELLED_CALL(nvmlDeviceGetEncoderSessions)
UNMODELLED_CALL(nvmlDeviceGetEncoderStats)
UNMODELLED_CALL(nvmlDeviceGetFBCSessions)
UNMODELLED_CALL(nvmlDeviceGetFBCStats)
UNMODELLED_CALL(nvmlDeviceGetFanControlPolicy_v2)
UNMODELLED_CALL(nvmlDeviceGetFanSpeedRPM)
UNMODELLED_CALL(nvmlDeviceGetGpcClkMinMaxVfOffset)
UNMODELLED_CALL(nvmlDeviceGetGpcClkVfOffset)
UNMODELLED_CALL(nvmlDeviceGetGpuInstanceById)
UNMODELLED_CALL(nvmlDeviceGetGpuInstancePossiblePlacements_v2)
UNMODELLED_CALL(nvmlDeviceGetGpuInstanceProfileInfo)
UNMODELLED_CALL(nvmlDeviceGetGpuInstanceProfileInfoV)
UNMODELLED_CALL(nvmlDeviceGetGpuInstanceRemainingCapacity)
UNMODELLED_CALL(nvmlDeviceGetGpuInstances)
UNMODELLED_CALL(nvmlDeviceGetHostVgpuMode)
UNMODELLED_CALL(nvmlDeviceGetIrqNum)
UNMODELLED_CALL(nvmlDeviceGetJpgUtilization)
UNMODELLED_CALL(nvmlDeviceGetLastBBXFlushTime)
UNMODELLED_CALL(nvmlDeviceGetMemClkMinMaxVfOffset)
UNMODELLED_CALL(nvmlDeviceGetMemClkVfOffset)
UNMODELLED_CALL(nvmlDeviceGetMemoryBusWidth)
UNMODELLED_CALL(nvmlDeviceGetMinMaxClockOfPState)
UNMODELLED_CALL(nvmlDeviceGetMinMaxFanSpeed)
UNMODELLED_CALL(nvmlDeviceGetNumGpuCores)
UNMODELLED_CALL(nvmlDeviceGetNvLinkUtilizationControl)
UNMODELLED_CALL(nvmlDeviceGetNvLinkUtilizationCounter)
UNMODELLED_CALL(nvmlDeviceGetNvlinkBwMode)
UNMODELLED_CALL(nvmlDeviceGetNvlinkSupportedBwModes)
UNMODELLED_CALL(nvmlDeviceGetOfaUtilization)
UNMODELLED_CALL(nvmlDeviceGetPcieLinkMaxSpeed)
UNMODELLED_CALL(nvmlDeviceGetPcieSpeed)
UNMODELLED_CALL(nvmlDeviceGetPerformanceModes)
UNMODELLED_CALL(nvmlDeviceGetPgpuMetadataString)
UNMODELLED_CALL(nvmlDeviceGetPlatformInfo)
UNMODELLED_CALL(nvmlDeviceGetPowerSource)
UNMODELLED_CALL(nvmlDeviceGetProcessUtilization)
UNMODELLED_CALL(nvmlDeviceGetProcessesUtilizationInfo)
UNMODELLED_CALL(nvmlDeviceGetRunningProcessDetailList)
UNMODELLED_CALL(nvmlDeviceGetSamples)
UNMODELLED_CALL(nvmlDeviceGetSupportedEventTypes)
UNMODELLED_CALL(nvmlDeviceGetSupportedGraphicsClocks)
UNMODELLED_CALL(nvmlDeviceGetSupportedMemoryClocks)
UNMODELLED_CALL(nvmlDeviceGetSupportedPerformanceStates)
UNMODELLED_CALL(nvmlDeviceGetSupportedVgpus)
UNMODELLED_CALL(nvmlDeviceGetTargetFanSpeed)
UNMODELLED_CALL(nvmlDeviceGetThermalSettings)
UNMODELLED_CALL(nvmlDeviceGetVgpuCapabilities)
UNMODELLED_CALL(nvmlDeviceGetVgpuHeterogeneousMode)
UNMODELLED_CALL(nvmlDeviceGetVgpuInstancesUtilizationInfo)
UNMODELLED_CALL(nvmlDeviceGetVgpuMetadata)
UNMODELLED_CALL(nvmlDeviceGetVgpuProcessUtilization)
UNMODELLED_CALL(nvmlDeviceGetVgpuProcessesUtilizationInfo)
UNMODELLED_CALL(nvmlDeviceGetVgpuSchedulerCapabilities)
UNMODELLED_CALL(nvmlDeviceGetVgpuSchedulerLog)
UNMODELLED_CALL(nvmlDeviceGetVgpuSchedulerState)
UNMODELLED_CALL(nvmlDeviceGetVgpuTypeCreatablePlacements)
UNMODELLED_CALL(nvmlDeviceGetVgpuTypeSupportedPlacements)
UNMODELLED_CALL(nvmlDeviceGetVgpuUtilization)

/* ---- Identity ---------------------------------------------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceGetInforomVersion(nvmlDevice_t device, unsigned int object, char *version, unsigned int length)
{
    static const char *const objects[] = {"oem", "ecc", "power", "den"};
    ENTER(device);
    if (object >= COUNT(objects))
        return NVML_ERROR_INVALID_ARGUMENT;
    return copy_text(value_of(device, "inforom.%s", objects[object]), version, length);
}

nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_t device)
{
    ENTER(device);
    return value_of(device, "inforom.image") ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char *version)
{
    ENTER(device);
    return copy_text(value_of(device, "gsp.version"), version, NVML_GSP_FIRMWARE_VERSION_BUF_SIZE);
}

nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t device, nvmlDeviceAddressingMode_t *mode)
{
    ENTER(device);
    if (!mode)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (mode->version != nvmlDeviceAddressingMode_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return get_uint(device, "addressing_mode", &mode->value);
}

static nvmlReturn_t fill_pci_info(const char *bus_id, nvmlPciInfo_t *pci)
{
    if (!pci)
        return NVML_ERROR_INVALID_ARGUMENT;
    memset(pci, 0, sizeof *pci);
    if (!bus_id)
        return NVML_ERROR_NOT_SUPPORTED;
    if (sscanf(bus_id, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device) != 3)
        fail("not a PCI address", bus_id);
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", pci->domain, pci->bus, pci->device);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", pci->domain & 0xffff, pci->bus & 0xff,
             pci->device & 0xff);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    ENTER(device);
    TRY(fill_pci_info(value_of(device, "pci.bus_id"), pci));
    TRY(get_uint(device, "pci.device_id", &pci->pciDeviceId));
    return get_uint(device, "pci.subsystem_id", &pci->pciSubSystemId);
}

nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_v1_t *ext)
{
    ENTER(device);
    nvmlPciInfo_t pci;
    if (!ext)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (ext->version != nvmlPciInfoExt_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    TRY(fill_pci_info(value_of(device, "pci.bus_id"), &pci));
    *ext = (nvmlPciInfoExt_v1_t){.version = ext->version, .domain = pci.domain, .bus = pci.bus, .device = pci.device};
    ext->baseClass = 0x03; /* display controller, */
    ext->subClass = 0x02;  /* 3D */
    strcpy(ext->busId, pci.busId);
    TRY(get_uint(device, "pci.device_id", &ext->pciDeviceId));
    return get_uint(device, "pci.subsystem_id", &ext->pciSubSystemId);
}

nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_t device, unsigned int *board)
{
    ENTER(device);
    nvmlPciInfo_t pci;
    if (!board)
        return NVML_ERROR_INVALID_ARGUMENT;
    TRY(fill_pci_info(value_of(device, "pci.bus_id"), &pci));
    *board = pci.domain << 16 | pci.bus << 8 | pci.device;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_t device, unsigned int *multi)
{
    ENTER(device);
    if (!multi)
        return NVML_ERROR_INVALID_ARGUMENT;
    *multi = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v4(nvmlDevice_t device, nvmlGridLicensableFeatures_v4_t *grid)
{
    ENTER(device);
    long long supported;
    if (!grid)
        return NVML_ERROR_INVALID_ARGUMENT;
    TRY(get_number(device, "grid.supported", &supported));
    memset(grid, 0, sizeof *grid);
    grid->isGridLicenseSupported = (int)supported;
    grid->licensableFeaturesCount = (unsigned int)number_or(device, "grid.features.count", 0);
    for (unsigned int i = 0; i < grid->licensableFeaturesCount && i < NVML_GRID_LICENSE_FEATURE_MAX_COUNT; i++) {
        nvmlGridLicensableFeature_v4_t *feature = &grid->gridLicensableFeatures[i];
        const char *code = value_of(device, "grid.features.%u.code", i);
        const char *licensed = value_of(device, "grid.features.%u.licensed", i);
        const char *product = value_of(device, "grid.features.%u.product", i);
        feature->featureCode = code ? (unsigned int)as_number(code) : 0;
        feature->featureState = licensed ? (unsigned int)as_number(licensed) : 0;
        feature->featureEnabled = 1;
        snprintf(feature->productName, sizeof feature->productName, "%s", product ? product : "");
    }
    return NVML_SUCCESS;
}

/* ---- Memory, processes, utilisation ------------------------------------------------------------------------------ */

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    ENTER(device);
    if (!memory)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (memory->version != nvmlMemory_v2)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    TRY(get_ulonglong(device, "memory.total", &memory->total));
    TRY(get_ulonglong(device, "memory.used", &memory->used));
    memory->reserved = (unsigned long long)number_or(device, "memory.reserved", 0);
    memory->free = memory->total - memory->reserved - memory->used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    ENTER(device);
    if (!memory)
        return NVML_ERROR_INVALID_ARGUMENT;
    TRY(get_ulonglong(device, "memory.total", &memory->total));
    TRY(get_ulonglong(device, "memory.used", &memory->used));
    memory->used += (unsigned long long)number_or(device, "memory.reserved", 0); /* no field of its own in version 1 */
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
    ENTER(device);
    if (!memory)
        return NVML_ERROR_INVALID_ARGUMENT;
    TRY(get_ulonglong(device, "bar1.total", &memory->bar1Total));
    TRY(get_ulonglong(device, "bar1.used", &memory->bar1Used));
    memory->bar1Free = memory->bar1Total - memory->bar1Used;
    return NVML_SUCCESS;
}

static nvmlReturn_t list_processes(nvmlDevice_t device, const char *kind, unsigned int *count,
                                   nvmlProcessInfo_v2_t *processes)
{
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    const char *size = value_of(device, "processes.%s.count", kind);
    unsigned int room = *count;
    *count = size ? (unsigned int)as_number(size) : 0;
    if (room < *count)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    if (*count && !processes)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int i = 0; i < *count; i++) {
        const char *pid = value_of(device, "processes.%s.%u.pid", kind, i);
        const char *memory = value_of(device, "processes.%s.%u.memory", kind, i);
        processes[i] = (nvmlProcessInfo_v2_t){
            .pid = pid ? (unsigned int)as_number(pid) : 0,
            .usedGpuMemory = memory ? (unsigned long long)as_number(memory) : NOT_AVAILABLE,
            .gpuInstanceId = (unsigned int)number_or(device, "gpu_instance", -1),
            .computeInstanceId = (unsigned int)number_or(device, "compute_instance", -1),
        };
    }
    return NVML_SUCCESS;
}

#define PROCESS_CALL(function, kind)                                                                         \
    nvmlReturn_t function(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v2_t *processes)         \
    {                                                                                                        \
        ENTER(device);                                                                                       \
        return list_processes(device, kind, count, processes);                                               \
    }

PROCESS_CALL(nvmlDeviceGetComputeRunningProcesses_v2, "compute")
PROCESS_CALL(nvmlDeviceGetComputeRunningProcesses_v3, "compute")
PROCESS_CALL(nvmlDeviceGetGraphicsRunningProcesses_v2, "graphics")
PROCESS_CALL(nvmlDeviceGetGraphicsRunningProcesses_v3, "graphics")
PROCESS_CALL(nvmlDeviceGetMPSComputeRunningProcesses_v2, "mps")
PROCESS_CALL(nvmlDeviceGetMPSComputeRunningProcesses_v3, "mps")

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
    ENTER(device);
    if (!utilization)
        return NVML_ERROR_INVALID_ARGUMENT;
    TRY(get_uint(device, "utilization.gpu", &utilization->gpu));
    return get_uint(device, "utilization.memory", &utilization->memory);
}

/* ---- Memory errors ----------------------------------------------------------------------------------------------- */

static const char *const LOCATIONS[] = {"l1_cache", "l2_cache", "dram", "register_file",
                                        "texture",  "texture_shm", "cbu", "sram"};
enum { L1_CACHE, L2_CACHE, DRAM, REGISTER_FILE };

/* Where the scenario keeps the errors of a type (corrected or not) in a counter (volatile or aggregate), or NULL. */
static const char *ecc_kind(unsigned int type, unsigned int counter)
{
    static const char *const kinds[2][2] = {
        {"volatile.corrected", "aggregate.corrected"},
        {"volatile.uncorrected", "aggregate.uncorrected"},
    };
    return type < 2 && counter < 2 ? kinds[type][counter] : NULL;
}

static nvmlReturn_t ecc_count(nvmlDevice_t device, const char *kind, unsigned int location, unsigned long long *count)
{
    if (!kind || location >= COUNT(LOCATIONS) || !count)
        return NVML_ERROR_INVALID_ARGUMENT;
    const char *value = value_of(device, "ecc.%s.%s", kind, LOCATIONS[location]);
    if (!value)
        return NVML_ERROR_NOT_SUPPORTED;
    *count = (unsigned long long)as_number(value);
    return NVML_SUCCESS;
}

static nvmlReturn_t ecc_total(nvmlDevice_t device, const char *kind, unsigned long long *total)
{
    unsigned long long sum = 0, count;
    int found = 0;
    if (!kind || !total)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int location = 0; location < COUNT(LOCATIONS); location++)
        if (ecc_count(device, kind, location, &count) == NVML_SUCCESS) {
            sum += count;
            found = 1;
        }
    *total = sum;
    return found ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, unsigned int type, unsigned int counter,
                                             unsigned int location, unsigned long long *count)
{
    ENTER(device);
    return ecc_count(device, ecc_kind(type, counter), location, count);
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned int type, unsigned int counter,
                                         unsigned long long *total)
{
    ENTER(device);
    return ecc_total(device, ecc_kind(type, counter), total);
}

nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t device, unsigned int type, unsigned int counter,
                                            nvmlEccErrorCounts_t *counts)
{
    ENTER(device);
    const char *kind = ecc_kind(type, counter);
    unsigned long long total;
    if (!counts)
        return NVML_ERROR_INVALID_ARGUMENT;
    TRY(ecc_total(device, kind, &total));
    memset(counts, 0, sizeof *counts); /* locations that the product lacks are reported as zero */
    ecc_count(device, kind, L1_CACHE, &counts->l1Cache);
    ecc_count(device, kind, L2_CACHE, &counts->l2Cache);
    ecc_count(device, kind, DRAM, &counts->deviceMemory);
    ecc_count(device, kind, REGISTER_FILE, &counts->registerFile);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t device, nvmlEccSramErrorStatus_v1_t *status)
{
    ENTER(device);
    if (!status)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (status->version != nvmlEccSramErrorStatus_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    TRY(get_ulonglong(device, "sram.aggregateUncParity", &status->aggregateUncParity));
    TRY(get_ulonglong(device, "sram.aggregateUncSecDed", &status->aggregateUncSecDed));
    TRY(get_ulonglong(device, "sram.aggregateCor", &status->aggregateCor));
    TRY(get_ulonglong(device, "sram.volatileUncParity", &status->volatileUncParity));
    TRY(get_ulonglong(device, "sram.volatileUncSecDed", &status->volatileUncSecDed));
    TRY(get_ulonglong(device, "sram.volatileCor", &status->volatileCor));
    TRY(get_ulonglong(device, "sram.aggregateUncBucketL2", &status->aggregateUncBucketL2));
    TRY(get_ulonglong(device, "sram.aggregateUncBucketSm", &status->aggregateUncBucketSm));
    TRY(get_ulonglong(device, "sram.aggregateUncBucketPcie", &status->aggregateUncBucketPcie));
    TRY(get_ulonglong(device, "sram.aggregateUncBucketMcu", &status->aggregateUncBucketMcu));
    TRY(get_ulonglong(device, "sram.aggregateUncBucketOther", &status->aggregateUncBucketOther));
    return get_uint(device, "sram.bThresholdExceeded", &status->bThresholdExceeded);
}

static nvmlReturn_t list_retired_pages(nvmlDevice_t device, unsigned int cause, unsigned int *count,
                                       unsigned long long *addresses, unsigned long long *times)
{
    static const char *const causes[] = {"single_bit", "double_bit"};
    if (cause >= COUNT(causes) || !count)
        return NVML_ERROR_INVALID_ARGUMENT;
    const char *size = value_of(device, "retired_pages.%s.count", causes[cause]);
    if (!size)
        return NVML_ERROR_NOT_SUPPORTED;
    unsigned int room = *count;
    *count = (unsigned int)as_number(size);
    if (room < *count)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned int i = 0; i < *count; i++) {
        const char *address = value_of(device, "retired_pages.%s.%u.address", causes[cause], i);
        const char *when = value_of(device, "retired_pages.%s.%u.timestamp", causes[cause], i);
        if (addresses)
            addresses[i] = address ? (unsigned long long)as_number(address) : 0;
        if (times)
            times[i] = when ? (unsigned long long)as_number(when) : 0;
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, unsigned int cause, unsigned int *count,
                                       unsigned long long *addresses)
{
    ENTER(device);
    return list_retired_pages(device, cause, count, addresses, NULL);
}

nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device, unsigned int cause, unsigned int *count,
                                          unsigned long long *addresses, unsigned long long *times)
{
    ENTER(device);
    return list_retired_pages(device, cause, count, addresses, times);
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrected, unsigned int *uncorrected,
                                       unsigned int *pending, unsigned int *failed)
{
    ENTER(device);
    TRY(get_uint(device, "remapped_rows.corrected", corrected));
    TRY(get_uint(device, "remapped_rows.uncorrected", uncorrected));
    TRY(get_uint(device, "remapped_rows.pending", pending));
    return get_uint(device, "remapped_rows.failed", failed);
}

nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device, nvmlRowRemapperHistogramValues *banks)
{
    ENTER(device);
    if (!banks)
        return NVML_ERROR_INVALID_ARGUMENT;
    TRY(get_uint(device, "remapped_rows.histogram.max", &banks->max));
    TRY(get_uint(device, "remapped_rows.histogram.high", &banks->high));
    TRY(get_uint(device, "remapped_rows.histogram.partial", &banks->partial));
    TRY(get_uint(device, "remapped_rows.histogram.low", &banks->low));
    return get_uint(device, "remapped_rows.histogram.none", &banks->none);
}

/* ---- Temperature, fans, lowered clocks --------------------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_v1_t *temperature)
{
    ENTER(device);
    if (!temperature)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (temperature->version != nvmlTemperature_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return get_named_uint(device, "temperature.%s", SENSORS, COUNT(SENSORS), temperature->sensorType,
                          (unsigned int *)&temperature->temperature);
}

nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t device, nvmlMarginTemperature_v1_t *margin)
{
    ENTER(device);
    if (!margin)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (margin->version != nvmlMarginTemperature_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return get_uint(device, "temperature.margin", (unsigned int *)&margin->marginTemperature);
}

nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned int fan, unsigned int *speed)
{
    ENTER(device);
    long long fans;
    char key[KEY_SIZE / 2];
    TRY(get_number(device, "fan.count", &fans));
    if (fans && fan >= fans)
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(key, sizeof key, "fan.%u.speed", fan);
    return get_uint(device, key, speed);
}

nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, unsigned int policy, nvmlViolationTime_t *violation)
{
    static const char *const policies[] = {
        [0] = "power",       [1] = "thermal",      [2] = "sync_boost",
        [3] = "board_limit", [4] = "low_utilization", [5] = "reliability",
    };
    ENTER(device);
    if (!violation)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (policy >= COUNT(policies))
        return NVML_ERROR_NOT_SUPPORTED;
    const char *nanoseconds = value_of(device, "violation.%s", policies[policy]);
    if (!nanoseconds)
        return NVML_ERROR_NOT_SUPPORTED;
    violation->referenceTime = (unsigned long long)now_in_microseconds();
    violation->violationTime = (unsigned long long)as_number(nanoseconds);
    return NVML_SUCCESS;
}

/* ---- NVLink and the fabric --------------------------------------------------------------------------------------- */

static unsigned int link_count(nvmlDevice_t device)
{
    return (unsigned int)number_or(device, "nvlink.count", 0);
}

static nvmlReturn_t link_number(nvmlDevice_t device, unsigned int link, const char *name, long long *number)
{
    if (!link_count(device))
        return NVML_ERROR_NOT_SUPPORTED;
    if (link >= link_count(device))
        return NVML_ERROR_INVALID_ARGUMENT;
    const char *value = value_of(device, "nvlink.%u.%s", link, name);
    if (!value)
        return NVML_ERROR_NOT_SUPPORTED;
    *number = as_number(value);
    return NVML_SUCCESS;
}

static int link_is_active(nvmlDevice_t device, unsigned int link)
{
    long long state;
    return link_number(device, link, "state", &state) == NVML_SUCCESS && state;
}

static nvmlReturn_t link_uint(nvmlDevice_t device, unsigned int link, const char *name, unsigned int *result)
{
    long long number;
    if (!result)
        return NVML_ERROR_INVALID_ARGUMENT;
    TRY(link_number(device, link, name, &number));
    *result = (unsigned int)number;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, unsigned int *state)
{
    ENTER(device);
    return link_uint(device, link, "state", state);
}

nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link, unsigned int *version)
{
    ENTER(device);
    return link_uint(device, link, "version", version);
}

nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int link, unsigned int capability,
                                           unsigned int *result)
{
    static const char *const capabilities[] = {
        "capability.p2p_supported",  "capability.sysmem_access", "capability.p2p_atomics",
        "capability.sysmem_atomics", "capability.sli_bridge",    "capability.valid",
    };
    ENTER(device);
    if (capability >= COUNT(capabilities))
        return NVML_ERROR_INVALID_ARGUMENT;
    return link_uint(device, link, capabilities[capability], result);
}

nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned int link, unsigned int counter,
                                             unsigned long long *count)
{
    static const char *const counters[] = {
        "error.dl_replay", "error.dl_recovery", "error.dl_crc_flit", "error.dl_crc_data", "error.dl_ecc_data",
    };
    ENTER(device);
    long long number;
    if (counter >= COUNT(counters) || !count)
        return NVML_ERROR_INVALID_ARGUMENT;
    TRY(link_number(device, link, counters[counter], &number));
    *count = (unsigned long long)number;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci)
{
    ENTER(device);
    if (link_count(device) && link >= link_count(device))
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!link_is_active(device, link))
        return NVML_ERROR_NOT_SUPPORTED; /* nobody answers at the other end */
    TRY(fill_pci_info(value_of(device, "nvlink.%u.remote.bus_id", link), pci));
    return link_uint(device, link, "remote.device_id", &pci->pciDeviceId);
}

nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link, unsigned int *type)
{
    ENTER(device);
    if (link_count(device) && link >= link_count(device))
        return NVML_ERROR_INVALID_ARGUMENT;
    return link_is_active(device, link) ? link_uint(device, link, "remote.type", type) : NVML_ERROR_NOT_SUPPORTED;
}

static nvmlReturn_t read_fabric(nvmlDevice_t device, nvmlGpuFabricInfo_t *fabric)
{
    TRY(get_uint(device, "fabric.state", &fabric->state));
    fabric->status = (nvmlReturn_t)number_or(device, "fabric.status", NVML_SUCCESS);
    fabric->cliqueId = (unsigned int)number_or(device, "fabric.clique_id", 0);
    const char *uuid = value_of(device, "fabric.cluster_uuid");
    for (int i = 0; i < NVML_GPU_FABRIC_UUID_LEN; i++) {
        unsigned int byte = 0;
        if (uuid && sscanf(uuid + 2 * i, "%2x", &byte) != 1)
            fail("not 32 hexadecimal digits", uuid);
        fabric->clusterUuid[i] = (unsigned char)byte;
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *fabric)
{
    ENTER(device);
    return fabric ? read_fabric(device, fabric) : NVML_ERROR_INVALID_ARGUMENT;
}

/* The second version of the structure is the third without its last field. */
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfo_v3_t *info)
{
    ENTER(device);
    nvmlGpuFabricInfo_t fabric;
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (info->version != nvmlGpuFabricInfo_v2 && info->version != nvmlGpuFabricInfo_v3)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    TRY(read_fabric(device, &fabric));
    memcpy(info->clusterUuid, fabric.clusterUuid, sizeof info->clusterUuid);
    info->status = fabric.status;
    info->cliqueId = fabric.cliqueId;
    info->state = fabric.state;
    info->healthMask = (unsigned int)number_or(device, "fabric.health_mask", 0);
    if (info->version == nvmlGpuFabricInfo_v3)
        info->healthSummary = (unsigned char)number_or(device, "fabric.health_summary", 0);
    return NVML_SUCCESS;
}

/* ---- Field values ------------------------------------------------------------------------------------------------ */

enum source {
    FROM_KEY,        /* the value of a key */
    FROM_ECC,        /* a total of ECC errors; the key says which */
    FROM_LINK,       /* one link's value; the field's distance from the first one gives the link */
    FROM_LINK_SCOPE, /* one link's value; the caller gives the link as scope */
    SUM_OF_LINKS,
};

struct field {
    unsigned int id;
    unsigned int count; /* consecutive fields that this line answers */
    enum source source;
    unsigned int type;
    const char *key;
    unsigned int first_link;
};

#define UINT_FIELD(id, key) {id, 1, FROM_KEY, NVML_VALUE_TYPE_UNSIGNED_INT, key, 0}
#define INT_FIELD(id, key) {id, 1, FROM_KEY, NVML_VALUE_TYPE_SIGNED_INT, key, 0}
#define ULONGLONG_FIELD(id, key) {id, 1, FROM_KEY, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, key, 0}
#define ECC_FIELD(id, key) {id, 1, FROM_ECC, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, key, 0}
#define LINK_FIELDS(id, first_link, name) {id, 6, FROM_LINK, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, name, first_link}
#define SPEED_FIELDS(id, first_link) {id, 6, FROM_LINK, NVML_VALUE_TYPE_UNSIGNED_INT, "speed", first_link}
#define SCOPED_FIELD(id, type, name) {id, 1, FROM_LINK_SCOPE, type, name, 0}
#define SUM_FIELD(id, name) {id, 1, SUM_OF_LINKS, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, name, 0}

static const struct field FIELDS[] = {
    UINT_FIELD(NVML_FI_DEV_ECC_CURRENT, "ecc.mode.current"),
    UINT_FIELD(NVML_FI_DEV_ECC_PENDING, "ecc.mode.pending"),
    ECC_FIELD(NVML_FI_DEV_ECC_SBE_VOL_TOTAL, "volatile.corrected"),
    ECC_FIELD(NVML_FI_DEV_ECC_DBE_VOL_TOTAL, "volatile.uncorrected"),
    ECC_FIELD(NVML_FI_DEV_ECC_SBE_AGG_TOTAL, "aggregate.corrected"),
    ECC_FIELD(NVML_FI_DEV_ECC_DBE_AGG_TOTAL, "aggregate.uncorrected"),
    UINT_FIELD(NVML_FI_DEV_RETIRED_SBE, "retired_pages.single_bit.count"),
    UINT_FIELD(NVML_FI_DEV_RETIRED_DBE, "retired_pages.double_bit.count"),
    UINT_FIELD(NVML_FI_DEV_RETIRED_PENDING, "retired_pages.pending"),
    UINT_FIELD(NVML_FI_DEV_REMAPPED_COR, "remapped_rows.corrected"),
    UINT_FIELD(NVML_FI_DEV_REMAPPED_UNC, "remapped_rows.uncorrected"),
    UINT_FIELD(NVML_FI_DEV_REMAPPED_PENDING, "remapped_rows.pending"),
    UINT_FIELD(NVML_FI_DEV_REMAPPED_FAILURE, "remapped_rows.failed"),

    UINT_FIELD(NVML_FI_DEV_NVLINK_LINK_COUNT, "nvlink.count"),
    UINT_FIELD(NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT, "nvlink.switch_link_count"),
    SPEED_FIELDS(NVML_FI_DEV_NVLINK_SPEED_MBPS_L0, 0),
    SPEED_FIELDS(NVML_FI_DEV_NVLINK_SPEED_MBPS_L6, 6),
    UINT_FIELD(NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON, "nvlink.0.speed"),
    SCOPED_FIELD(NVML_FI_DEV_NVLINK_GET_SPEED, NVML_VALUE_TYPE_UNSIGNED_INT, "speed"),
    SCOPED_FIELD(NVML_FI_DEV_NVLINK_GET_STATE, NVML_VALUE_TYPE_UNSIGNED_INT, "state"),
    SCOPED_FIELD(NVML_FI_DEV_NVLINK_GET_VERSION, NVML_VALUE_TYPE_UNSIGNED_INT, "version"),
    LINK_FIELDS(NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L0, 0, "error.dl_crc_flit"),
    LINK_FIELDS(NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L6, 6, "error.dl_crc_flit"),
    SUM_FIELD(NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, "error.dl_crc_flit"),
    LINK_FIELDS(NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L0, 0, "error.dl_crc_data"),
    LINK_FIELDS(NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L6, 6, "error.dl_crc_data"),
    SUM_FIELD(NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL, "error.dl_crc_data"),
    LINK_FIELDS(NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L0, 0, "error.dl_replay"),
    LINK_FIELDS(NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L6, 6, "error.dl_replay"),
    SUM_FIELD(NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, "error.dl_replay"),
    LINK_FIELDS(NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L0, 0, "error.dl_recovery"),
    LINK_FIELDS(NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L6, 6, "error.dl_recovery"),
    SUM_FIELD(NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL, "error.dl_recovery"),
    LINK_FIELDS(NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_L0, 0, "error.dl_ecc_data"),
    LINK_FIELDS(NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_L6, 6, "error.dl_ecc_data"),
    SUM_FIELD(NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL, "error.dl_ecc_data"),
    SCOPED_FIELD(NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, "error.dl_replay"),
    SCOPED_FIELD(NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, "error.dl_recovery"),
    SCOPED_FIELD(NVML_FI_DEV_NVLINK_ERROR_DL_CRC, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, "error.dl_crc_flit"),

    ULONGLONG_FIELD(NVML_FI_DEV_PERF_POLICY_POWER, "violation.power"),
    ULONGLONG_FIELD(NVML_FI_DEV_PERF_POLICY_THERMAL, "violation.thermal"),
    ULONGLONG_FIELD(NVML_FI_DEV_PERF_POLICY_SYNC_BOOST, "violation.sync_boost"),
    ULONGLONG_FIELD(NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT, "violation.board_limit"),
    ULONGLONG_FIELD(NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION, "violation.low_utilization"),
    ULONGLONG_FIELD(NVML_FI_DEV_PERF_POLICY_RELIABILITY, "violation.reliability"),
    ULONGLONG_FIELD(NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, "violation.sw_thermal"),
    ULONGLONG_FIELD(NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN, "violation.hw_thermal"),
    ULONGLONG_FIELD(NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN, "violation.hw_power_brake"),

    UINT_FIELD(NVML_FI_DEV_MEMORY_TEMP, "temperature.memory"),
    INT_FIELD(NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT, "temperature.tlimit.shutdown"),
    INT_FIELD(NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT, "temperature.tlimit.slowdown"),
    INT_FIELD(NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT, "temperature.tlimit.mem_max"),
    INT_FIELD(NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT, "temperature.tlimit.gpu_max"),

    ULONGLONG_FIELD(NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, "power.energy"),
    UINT_FIELD(NVML_FI_DEV_POWER_AVERAGE, "power.usage"),
    UINT_FIELD(NVML_FI_DEV_POWER_INSTANT, "power.usage"),
    UINT_FIELD(NVML_FI_DEV_POWER_MIN_LIMIT, "power.min_limit"),
    UINT_FIELD(NVML_FI_DEV_POWER_MAX_LIMIT, "power.max_limit"),
    UINT_FIELD(NVML_FI_DEV_POWER_DEFAULT_LIMIT, "power.default_limit"),
    UINT_FIELD(NVML_FI_DEV_POWER_CURRENT_LIMIT, "power.enforced_limit"),
    UINT_FIELD(NVML_FI_DEV_POWER_REQUESTED_LIMIT, "power.limit"),

    UINT_FIELD(NVML_FI_DEV_PCIE_REPLAY_COUNTER, "pcie.replay_counter"),
    UINT_FIELD(NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER, "pcie.replay_rollover"),
    UINT_FIELD(NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS, "pcie.error.correctable"),
    UINT_FIELD(NVML_FI_DEV_PCIE_COUNT_NAKS_RECEIVED, "pcie.error.naks_received"),
    UINT_FIELD(NVML_FI_DEV_PCIE_COUNT_RECEIVER_ERROR, "pcie.error.receiver"),
    UINT_FIELD(NVML_FI_DEV_PCIE_COUNT_BAD_TLP, "pcie.error.bad_tlp"),
    UINT_FIELD(NVML_FI_DEV_PCIE_COUNT_NAKS_SENT, "pcie.error.naks_sent"),
    UINT_FIELD(NVML_FI_DEV_PCIE_COUNT_BAD_DLLP, "pcie.error.bad_dllp"),
    UINT_FIELD(NVML_FI_DEV_PCIE_COUNT_NON_FATAL_ERROR, "pcie.error.non_fatal"),
    UINT_FIELD(NVML_FI_DEV_PCIE_COUNT_FATAL_ERROR, "pcie.error.fatal"),

    UINT_FIELD(NVML_FI_DEV_RESET_STATUS, "reset.required"),
    UINT_FIELD(NVML_FI_DEV_DRAIN_AND_RESET_STATUS, "reset.drain_recommended"),
    UINT_FIELD(NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, "recovery_action"),
};

static nvmlReturn_t link_field(nvmlDevice_t device, unsigned int link, const char *name, long long *number)
{
    TRY(link_number(device, link, name, number));
    if (strcmp(name, "speed") == 0 && !link_is_active(device, link))
        *number = 0;
    return NVML_SUCCESS;
}

static nvmlReturn_t sum_of_links(nvmlDevice_t device, const char *name, long long *sum)
{
    long long number;
    if (!link_count(device))
        return NVML_ERROR_NOT_SUPPORTED;
    *sum = 0;
    for (unsigned int link = 0; link < link_count(device); link++) {
        TRY(link_field(device, link, name, &number));
        *sum += number;
    }
    return NVML_SUCCESS;
}

static nvmlReturn_t field_number(nvmlDevice_t device, const struct field *field, unsigned int id, unsigned int scope,
                                 long long *number)
{
    unsigned int link;
    switch (field->source) {
    case FROM_KEY:
        return get_number(device, field->key, number);
    case FROM_ECC:
        return ecc_total(device, field->key, (unsigned long long *)number);
    case FROM_LINK:
        link = field->first_link + id - field->id;
        return link < link_count(device) ? link_field(device, link, field->key, number) : NVML_ERROR_NOT_SUPPORTED;
    case FROM_LINK_SCOPE:
        return scope == ALL_LINKS ? sum_of_links(device, field->key, number)
                                  : link_field(device, scope, field->key, number);
    case SUM_OF_LINKS:
        return sum_of_links(device, field->key, number);
    }
    return NVML_ERROR_UNKNOWN;
}

static nvmlReturn_t read_field(nvmlDevice_t device, nvmlFieldValue_t *value)
{
    const char *known = lookup("field_count");
    if (!value->fieldId || value->fieldId >= (known ? (unsigned int)as_number(known) : NVML_FI_MAX))
        return NVML_ERROR_INVALID_ARGUMENT; /* younger than the driver */
    for (size_t i = 0; i < COUNT(FIELDS); i++) {
        const struct field *field = &FIELDS[i];
        long long number = 0;
        if (value->fieldId < field->id || value->fieldId >= field->id + field->count)
            continue;
        TRY(field_number(device, field, value->fieldId, value->scopeId, &number));
        value->valueType = field->type;
        if (field->type == NVML_VALUE_TYPE_UNSIGNED_LONG_LONG)
            value->value.ullVal = (unsigned long long)number;
        else
            value->value.uiVal = (unsigned int)number;
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_SUPPORTED;
}

/* Each field has its own return code; the call itself succeeds. */
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    ENTER(device);
    if (count < 0 || !values)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) {
        memset(&values[i].value, 0, sizeof values[i].value);
        values[i].timestamp = now_in_microseconds();
        values[i].latencyUsec = 0;
        values[i].nvmlReturn = read_field(device, &values[i]);
    }
    return NVML_SUCCESS;
}

/* ---- Topology ---------------------------------------------------------------------------------------------------- */

static nvmlReturn_t common_ancestor(nvmlDevice_t one, nvmlDevice_t other, unsigned int *level)
{
    char key[KEY_SIZE / 2];
    snprintf(key, sizeof key, "topology.%d", other->gpu);
    if (one->gpu != other->gpu)
        return get_uint(one, key, level);
    *level = NVML_TOPOLOGY_INTERNAL;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t one, nvmlDevice_t other, unsigned int *level)
{
    ENTER(one);
    ENTER(other);
    return level ? common_ancestor(one, other, level) : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, unsigned int level, unsigned int *count,
                                              nvmlDevice_t *nearest)
{
    ENTER(device);
    if (!count || (*count && !nearest))
        return NVML_ERROR_INVALID_ARGUMENT;
    unsigned int room = *count, found = 0, distance;
    for (unsigned int gpu = 0; gpu < gpu_count; gpu++) {
        if ((int)gpu == device->gpu || common_ancestor(device, &devices[gpu][0], &distance) != NVML_SUCCESS)
            continue;
        if (distance == level) {
            if (found < room)
                nearest[found] = &devices[gpu][0];
            found++;
        }
    }
    *count = room && found > room ? room : found;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t one, nvmlDevice_t other, unsigned int index, unsigned int *status)
{
    static const char *const indices[] = {"read", "write", "nvlink", "atomics", "pci"};
    char format[KEY_SIZE / 2];
    ENTER(one);
    ENTER(other);
    if (one->gpu == other->gpu)
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(format, sizeof format, "p2p.%d.%%s", other->gpu);
    return get_named_uint(one, format, indices, COUNT(indices), index, status);
}

/* A list such as "0-31,64-95" as a bit set. */
static nvmlReturn_t get_set(nvmlDevice_t device, const char *key, unsigned int word_count, unsigned long *words)
{
    const unsigned int bits = 8 * sizeof *words;
    const char *list = value_of(device, "%s", key);
    if (!word_count || !words)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!list)
        return NVML_ERROR_NOT_SUPPORTED;
    memset(words, 0, word_count * sizeof *words);
    while (*list) {
        char *rest;
        unsigned long first = strtoul(list, &rest, 10), last = first;
        if (*rest == '-')
            last = strtoul(rest + 1, &rest, 10);
        if (rest == list || (*rest && *rest != ','))
            fail("not a list of numbers", list);
        for (unsigned long i = first; i <= last && i < (unsigned long)word_count * bits; i++)
            words[i / bits] |= 1UL << i % bits;
        list = *rest ? rest + 1 : rest;
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int word_count, unsigned long *words)
{
    ENTER(device);
    return get_set(device, "cpu_affinity", word_count, words);
}

nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned int word_count, unsigned long *words,
                                                 unsigned int scope)
{
    ENTER(device);
    return scope > 1 ? NVML_ERROR_INVALID_ARGUMENT : get_set(device, "cpu_affinity", word_count, words);
}

nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int word_count, unsigned long *words,
                                         unsigned int scope)
{
    ENTER(device);
    return scope > 1 ? NVML_ERROR_INVALID_ARGUMENT : get_set(device, "memory_affinity", word_count, words);
}

/* ---- MIG --------------------------------------------------------------------------------------------------------- */

static unsigned int max_mig_devices(nvmlDevice_t device)
{
    unsigned int most = (unsigned int)number_or(device, "mig.max_devices", 0);
    return number_or(device, "mig.mode.current", 0) ? most : 0;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
    ENTER(device);
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = max_mig_devices(device);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig)
{
    ENTER(device);
    long long mode;
    TRY(get_number(device, "mig.mode.current", &mode));
    if (!mig || (mode && index >= max_mig_devices(device)))
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!mode || index >= mig_device_count(device))
        return NVML_ERROR_NOT_FOUND;
    *mig = &devices[device->gpu][1 + index];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig)
{
    ENTER(device);
    if (!is_mig)
        return NVML_ERROR_INVALID_ARGUMENT;
    *is_mig = device->mig != WHOLE_GPU;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t *device)
{
    ENTER(mig);
    if (!device || mig->mig == WHOLE_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = &devices[mig->gpu][0];
    return NVML_SUCCESS;
}

UINT_CALL(nvmlDeviceGetGpuInstanceId, "gpu_instance")
UINT_CALL(nvmlDeviceGetComputeInstanceId, "compute_instance")
