/*
 * Bad input of every kind that the runtime can meet: each refused with a status and a sentence that
 * names argument, value and rule, outputs untouched. The fake driver stands in for devices that are
 * not there, so this needs neither GPU nor simulator.
 */
#include "badinput.h"

#include "driver_abi.h"
#include "module.h"
#include "sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a refusal must look like: the status it returned and filled in, and the words. */
void refused(const char *file, int line, int got, int want, const hewn_error *err,
             const char *words)
{
    if (got != want)
        test_fail(file, line, "status: want %s got %s (%s)", hewn_status_name(want),
                  hewn_status_name(got), err->message);
    if (err->status != got)
        test_fail(file, line, "hewn_error.status: want %d got %d", got, err->status);
    check_text(file, line, "message", err->message, words);
}

static void untouched(int line, const void *object, size_t size)
{
    const unsigned char *bytes = object;
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != POISON) {
            test_fail(__FILE__, line, "byte %zu of an output was written", i);
            return;
        }
}

/* ---- opening a driver -- */

static void bad_path(const char *name, const char *path, int status, const char *words)
{
    hewn_driver_options options = {.struct_size = sizeof options, .path = path};
    hewn_driver *driver = NULL;
    REFUSE(name, hewn_driver_open(&options, &driver, &err), status, words);
    CHECK(driver == NULL, "a driver came back");
}

static void truncated_library(void)
{
    char path[] = "/tmp/hewn-badinput-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, "\177ELF\2\1\1", 7) != 7) return;
    close(fd);
    bad_path("driver library is a truncated file", path, HEWN_ERR_NO_DRIVER, path);
    unlink(path);
}

static void bad_environment(void)
{
    const char *set = getenv("HEWN_LIBCUDA");
    char *before = set ? strdup(set) : NULL;
    hewn_driver *driver = NULL;
    setenv("HEWN_LIBCUDA", "/nonexistent/libcuda.so.1", 1);
    REFUSE("driver library absent, by environment", hewn_driver_open(NULL, &driver, &err),
           HEWN_ERR_NO_DRIVER, "'/nonexistent/libcuda.so.1' (HEWN_LIBCUDA)");
    if (before)
        setenv("HEWN_LIBCUDA", before, 1);
    else
        unsetenv("HEWN_LIBCUDA");
    free(before);
}

static void opening(void)
{
    hewn_driver *driver = NULL;
    hewn_driver_options both = {.struct_size = sizeof both, .path = "x", .resolve = fake_resolve};
    hewn_driver_options unset = {.resolve = fake_resolve};
    bad_path("driver library absent, by path", "/nonexistent/libcuda.so.1", HEWN_ERR_NO_DRIVER,
             "'/nonexistent/libcuda.so.1' (options.path)");
    bad_path("driver library is another library", "libm.so.6", HEWN_ERR_SYMBOL,
             "lacks required driver functions: cuInit, cuDriverGetVersion");
    truncated_library();
    bad_environment();
    REFUSE("path and resolver together", hewn_driver_open(&both, &driver, &err), HEWN_ERR_ARGUMENT,
           "path: 'x' is given together with `resolve`");
    REFUSE("options without struct_size", hewn_driver_open(&unset, &driver, &err),
           HEWN_ERR_ARGUMENT, "hewn_driver_options: struct_size 0 is not in 32..4096");
    REFUSE("nowhere to put the driver", hewn_driver_open(NULL, NULL, &err), HEWN_ERR_ARGUMENT,
           "out: must not be NULL");
    fake_reset();
    fake.absent = "cuModuleGetFunction";
    REFUSE("missing driver symbol", fake_open(&driver, &err), HEWN_ERR_SYMBOL,
           "(resolver) lacks required driver functions: cuModuleGetFunction");
    fake_reset();
    fake.fail_name = "cuInit";
    fake.fail_code = HEWN_CU_NO_DEVICE;
    REFUSE("no device at all", fake_open(&driver, &err), HEWN_ERR_NO_DEVICE,
           "cuInit failed: CUDA_ERROR_NO_DEVICE (100)");
    CHECK(driver == NULL, "a driver came back");
}

/* A struct of a later header: taken while its new fields are zero, refused when one is set. */
static void grown_struct(void)
{
    struct {
        hewn_driver_options known;
        uint64_t later;
    } options = {.known = {.struct_size = sizeof options, .resolve = fake_resolve}};
    hewn_driver *driver = NULL;
    fake_reset();
    if (test_case("options of a later header, its new field zero")) {
        hewn_error err = {0};
        CHECK(hewn_driver_open(&options.known, &driver, &err) == HEWN_OK, "%s", err.message);
        hewn_driver_close(driver);
        driver = NULL;
    }
    options.later = 1;
    REFUSE("options of a later header, its new field set",
           hewn_driver_open(&options.known, &driver, &err), HEWN_ERR_ARGUMENT,
           "is not 0, but this library (0.2.0) knows only the first 32 bytes");
}

/* ---- contexts -- */

static void contexts(void)
{
    hewn_driver *driver = NULL;
    hewn_context *context = NULL;
    hewn_device_info info;
    memset(&info, POISON, sizeof info);
    fake_reset();
    if (fake_open(&driver, NULL)) return;
    REFUSE("no current context", hewn_context_attach(driver, &context, &err), HEWN_ERR_NO_DEVICE,
           "no CUDA context is current on this thread");
    REFUSE("attach without driver", hewn_context_attach(NULL, &context, &err), HEWN_ERR_ARGUMENT,
           "driver: must not be NULL");
    REFUSE("attach to nowhere", hewn_context_attach(driver, NULL, &err), HEWN_ERR_ARGUMENT,
           "out: must not be NULL");
    REFUSE("negative ordinal", hewn_context_attach_primary(driver, -1, &context, &err),
           HEWN_ERR_ARGUMENT, "ordinal: -1 is not in 0..0");
    REFUSE("ordinal past the last device", hewn_driver_describe_device(driver, 1, &info, &err),
           HEWN_ERR_ARGUMENT, "ordinal: 1 is not in 0..0");
    REFUSE("device info without struct_size",
           (info.struct_size = 8, hewn_driver_describe_device(driver, 0, &info, &err)),
           HEWN_ERR_ARGUMENT, "hewn_device_info: struct_size 8 is not in 152..4096");
    untouched(__LINE__, info.name, sizeof info.name);
    REFUSE("device info of no context", hewn_context_describe_device(NULL, &info, &err),
           HEWN_ERR_ARGUMENT, "context: must not be NULL");
    hewn_driver_close(driver);
    fake_reset();
    fake.device_count = 0;
    if (fake_open(&driver, NULL)) return;
    REFUSE("a driver without devices", hewn_context_attach_primary(driver, 0, &context, &err),
           HEWN_ERR_NO_DEVICE, "ordinal: 0, but the driver has no device");
    CHECK(context == NULL, "a context came back");
    hewn_driver_close(driver);
}

/* ---- modules -- */

hewn_context *attach_fake(hewn_driver **driver, int cc_major, int cc_minor)
{
    hewn_context *context = NULL;
    fake_reset();
    fake.cc_major = cc_major;
    fake.cc_minor = cc_minor;
    if (fake_open(driver, NULL) || hewn_context_attach_primary(*driver, 0, &context, NULL))
        return NULL;
    return context;
}

void detach_fake(hewn_driver *driver, hewn_context *context)
{
    hewn_context_detach(context);
    hewn_driver_close(driver);
    CHECK_INT(fake.modules, 0);
    CHECK_INT(fake.retained, 0);
}

static void no_module(int cc_major, int cc_minor)
{
    hewn_driver *driver = NULL;
    hewn_context *context = attach_fake(&driver, cc_major, cc_minor);
    hewn_gemm_desc desc = {
        .struct_size = sizeof desc, .m = 100, .n = 200, .k = 64, .in = HEWN_BF16, .out = HEWN_F32};
    hewn_gemm_plan *plan = NULL;
    char name[64], words[96];
    snprintf(name, sizeof name, "no module for compute capability %d.%d: preload", cc_major,
             cc_minor);
    snprintf(words, sizeof words, "has compute capability %d.%d; shipped for: sm_90a, sm_100f",
             cc_major, cc_minor);
    REFUSE(name, hewn_family_preload(context, hewn_gemm_family(), &err), HEWN_ERR_NO_MODULE, words);
    snprintf(name, sizeof name, "no module for compute capability %d.%d: plan", cc_major, cc_minor);
    REFUSE(name, hewn_gemm_plan_create(context, &desc, &plan, &err), HEWN_ERR_NO_MODULE, words);
    CHECK(plan == NULL, "a plan came back");
    detach_fake(driver, context);
}

static void targets(void)
{
    static const struct {
        const char *target;
        int major, minor, runs;
    } rows[] = {
        {"sm_90a", 9, 0, 1},     {"sm_90a", 9, 1, 0},   {"sm_90a", 10, 0, 0},
        {"sm_90a", 8, 9, 0},     {"sm_100f", 10, 0, 1}, {"sm_100f", 10, 3, 1},
        {"sm_100f", 10, 7, 1},   {"sm_100f", 10, 1, 0}, {"sm_100f", 11, 0, 0},
        {"sm_100f", 9, 0, 0},    {"sm_100f", 12, 0, 0}, {"sm_103f", 10, 0, 0},
        {"sm_103f", 10, 3, 1},   {"sm_100a", 10, 3, 0}, {"sm_100a", 10, 0, 1},
        {"sm_120f", 12, 1, 1},   {"sm_90", 9, 0, 1},    {"sm_90", 10, 0, 1},
        {"sm_90", 8, 9, 0},      {"sm_100", 9, 0, 0},   {"sm_9", 9, 0, 0},
        {"sm_90ab", 9, 0, 0},    {"sm_", 9, 0, 0},      {"90a", 9, 0, 0},
        {"compute_90", 9, 0, 0}, {"sm_90b", 9, 0, 0},   {"", 9, 0, 0},
        {NULL, 9, 0, 0},
    };
    if (!test_case("which target runs where")) return;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int got = hewn_target_runs_on(rows[i].target, rows[i].major, rows[i].minor);
        CHECK(got == rows[i].runs, "%s on %d.%d: want %d got %d",
              rows[i].target ? rows[i].target : "NULL", rows[i].major, rows[i].minor, rows[i].runs,
              got);
    }
}

/* Preloads a family of this one module. */
static int preload_one(hewn_context *context, const hewn_module *module, hewn_error *err)
{
    const hewn_module *const modules[] = {module};
    const unsigned short by_name[] = {0};
    const hewn_family family = {"family", modules, by_name, 1};
    int status = hewn_family_preload(context, &family, err);
    CHECK(hewn_module_origin(context, module) == NULL, "the module counts as loaded");
    CHECK(hewn_module_function(context, module) == NULL, "the module has a function");
    return status;
}

static const char corrupt[] = "corrupt image: ptx does not have the recorded SHA-256";

/* Whatever the bytes of a pack are, they are unpacked within bounds, and not taken for the text. */
static void corrupt_bytes(hewn_context *context, const hewn_module *good)
{
    const struct hewn_pack *from = good->ptx.pack;
    struct hewn_pack pack = *from;
    hewn_module bad = *good;
    unsigned char *data = malloc(from->size);
    if (!data) return;
    memcpy(data, from->data, from->size);
    pack.data = data;
    bad.ptx.pack = &pack;
    bad.image_count = 0;
    size_t first = good->ptx.offset ? 0 : 5, span = from->size / 8;
    for (size_t i = 0; i < 64; i++) {
        size_t at = first + i * span / 64;
        data[at] ^= (unsigned char)(1U << i % 8);
        REFUSE("a pack with one bit flipped", preload_one(context, &bad, &err), HEWN_ERR_IMAGE,
               corrupt);
        data[at] = from->data[at];
    }
    for (size_t i = 0; i < 16; i++) {
        pack.size = i * span / 16;
        REFUSE("a pack cut short", preload_one(context, &bad, &err), HEWN_ERR_IMAGE, corrupt);
    }
    pack.size = from->size;
    memset(data, 0xff, from->size);
    REFUSE("a pack of ones", preload_one(context, &bad, &err), HEWN_ERR_IMAGE, corrupt);
    pack.lc = 9;
    REFUSE("a pack of no known kind", preload_one(context, &bad, &err), HEWN_ERR_IMAGE, corrupt);
    free(data);
}

static void corrupt_text(hewn_context *context, const hewn_module *good)
{
    struct hewn_pack pack = *good->ptx.pack;
    hewn_module bad = *good;
    bad.image_count = 0;
    bad.ptx.pack = &pack;
    pack.holds = good->ptx.offset + good->ptx.size - 1;
    REFUSE("a pack that holds less", preload_one(context, &bad, &err), HEWN_ERR_IMAGE, corrupt);
    pack = *good->ptx.pack;
    pack.stored = 1;
    REFUSE("a pack that is not compressed", preload_one(context, &bad, &err), HEWN_ERR_IMAGE,
           corrupt);
    pack.data = NULL;
    REFUSE("a pack of no data", preload_one(context, &bad, &err), HEWN_ERR_IMAGE, corrupt);
    bad.ptx = good->ptx;
    bad.ptx.size--;
    REFUSE("module text cut short", preload_one(context, &bad, &err), HEWN_ERR_IMAGE, corrupt);
    bad.ptx.size = 0;
    REFUSE("module text of no bytes", preload_one(context, &bad, &err), HEWN_ERR_IMAGE, corrupt);
    bad.ptx.size = SIZE_MAX;
    REFUSE("module text without end", preload_one(context, &bad, &err), HEWN_ERR_IMAGE, corrupt);
    bad.ptx = (struct hewn_image){.arch = "ptx", .size = 1, .sha256 = good->ptx.sha256};
    REFUSE("module without text", preload_one(context, &bad, &err), HEWN_ERR_IMAGE, corrupt);
    bad.ptx = good->ptx;
    bad.ptx.sha256 = NULL;
    REFUSE("module without hash", preload_one(context, &bad, &err), HEWN_ERR_IMAGE, corrupt);
    bad = *good;
    bad.entry = "no_such_kernel";
    REFUSE("module without its entry", preload_one(context, &bad, &err), HEWN_ERR_DRIVER,
           "entry no_such_kernel: cuModuleGetFunction failed: CUDA_ERROR_NOT_FOUND (500)");
}

static void corrupt_cubin(hewn_context *context, const hewn_module *good)
{
    static const unsigned char data[] = "a cubin";
    const struct hewn_pack pack = {
        .data = data, .size = sizeof data, .holds = sizeof data, .stored = 1};
    const struct hewn_image image = {"sm_90a", &pack, 0, sizeof data, good->ptx.sha256};
    hewn_module bad = *good;
    bad.images = &image;
    bad.image_count = 1;
    REFUSE("cubin that is another", preload_one(context, &bad, &err), HEWN_ERR_IMAGE,
           "corrupt image: sm_90a does not have the recorded SHA-256");
}

/* What hewn_module_describe and hewn_module_describe_image give out stays where it is. */
static void described(const hewn_module *good)
{
    hewn_module_info info = {.struct_size = sizeof info}, again = info;
    hewn_image_info image = {.struct_size = sizeof image}, same = image;
    char hex[HEWN_SHA256_HEX];
    if (!test_case("a module's manifest and images")) return;
    CHECK_INT(hewn_module_describe(good, &info, NULL), HEWN_OK);
    CHECK_INT(hewn_module_describe(good, &again, NULL), HEWN_OK);
    CHECK(info.manifest == again.manifest, "the manifest moved");
    CHECK_INT(strlen(info.manifest), info.manifest_size);
    CHECK_TEXT(info.manifest, info.sha256);
    CHECK_INT(info.image_count, good->image_count + 1);
    for (size_t i = 0; i < info.image_count; i++) {
        CHECK_INT(hewn_module_describe_image(good, i, &image, NULL), HEWN_OK);
        CHECK_INT(hewn_module_describe_image(good, i, &same, NULL), HEWN_OK);
        CHECK(image.data == same.data, "image %zu moved", i);
        hewn_sha256(image.data, image.size, hex);
        if (i < good->image_count) {
            CHECK_TEXT(info.cubins, image.arch);
            CHECK_TEXT(hex, good->images[i].sha256);
        } else {
            CHECK_TEXT(image.arch, "ptx");
            CHECK_TEXT(hex, info.sha256);
            CHECK_INT(image.size, info.ptx_size);
            CHECK(((const char *)image.data)[image.size] == '\0', "no NUL behind the text");
        }
    }
}

/* Packs that cannot be unpacked have no description. */
static void not_described(const hewn_module *good)
{
    struct hewn_pack about = *good->manifest.pack, text = *good->ptx.pack;
    hewn_module_info info = {.struct_size = sizeof info};
    hewn_image_info image = {.struct_size = sizeof image};
    hewn_module bad = *good;
    bad.manifest.pack = &about;
    bad.ptx.pack = &text;
    about.size /= 2;
    text.size /= 2;
    REFUSE("a corrupt manifest", hewn_module_describe(&bad, &info, &err), HEWN_ERR_IMAGE,
           "module gemm_bf16_f32 (sm_90a): corrupt image: json");
    REFUSE("a corrupt text", hewn_module_describe_image(&bad, bad.image_count, &image, &err),
           HEWN_ERR_IMAGE, "module gemm_bf16_f32 (sm_90a): corrupt image: ptx");
}

/* Calls about what there is that have no answer. */
static void nothing_there(const hewn_module *good)
{
    hewn_module_info info = {.struct_size = sizeof info};
    hewn_image_info image = {.struct_size = sizeof image};
    REFUSE("no module to describe", hewn_module_describe(NULL, &info, &err), HEWN_ERR_ARGUMENT,
           "module: must not be NULL");
    REFUSE("no place for a description", hewn_module_describe(good, NULL, &err), HEWN_ERR_ARGUMENT,
           "hewn_module_info: must not be NULL");
    REFUSE("no module with an image", hewn_module_describe_image(NULL, 0, &image, &err),
           HEWN_ERR_ARGUMENT, "module: must not be NULL");
    REFUSE("an image behind the last one",
           hewn_module_describe_image(good, good->image_count + 1, &image, &err), HEWN_ERR_ARGUMENT,
           "but module gemm_bf16_f32 has");
    if (!test_case("a family's modules, and none behind them")) return;
    const hewn_family *family = hewn_gemm_family();
    CHECK_TEXT(hewn_family_name(family), "gemm");
    CHECK(hewn_family_module(family, 0) == good, "the first module is another one");
    CHECK(hewn_family_module(family, hewn_family_count(family)) == NULL, "one too many");
    CHECK(hewn_family_module(NULL, 0) == NULL && hewn_family_count(NULL) == 0, "of no family");
    CHECK(!hewn_driver_path(NULL) && !hewn_driver_missing(NULL) && !hewn_driver_version(NULL) &&
              !hewn_driver_device_count(NULL) && !hewn_driver_symbol(NULL, "cuInit"),
          "of no driver");
}

/* A library built without a family has it empty. */
static void empty_family(hewn_context *context)
{
    const hewn_module *const none[] = {NULL};
    const hewn_family family = {"gemm", none, NULL, 0};
    REFUSE("preload of a family that is not built", hewn_family_preload(context, &family, &err),
           HEWN_ERR_NO_MODULE, "gemm: this library was built without the family");
}

static void modules(void)
{
    targets();
    no_module(8, 0);
    no_module(10, 1);
    no_module(12, 0);
    hewn_driver *driver = NULL;
    hewn_context *context = attach_fake(&driver, 9, 0);
    const hewn_module *good = hewn_gemm_family()->modules[0]; /* the list begins with sm_90a */
    REFUSE("preload of no family", hewn_family_preload(context, NULL, &err), HEWN_ERR_ARGUMENT,
           "family: must not be NULL");
    REFUSE("preload into no context", hewn_family_preload(NULL, hewn_gemm_family(), &err),
           HEWN_ERR_ARGUMENT, "context: must not be NULL");
    corrupt_bytes(context, good);
    corrupt_text(context, good);
    corrupt_cubin(context, good);
    described(good);
    not_described(good);
    nothing_there(good);
    empty_family(context);
    fake.fail_name = "cuModuleLoadDataEx";
    hewn_module no_cubin = *good;
    no_cubin.image_count = 0;
    REFUSE("out of device memory while loading", preload_one(context, &no_cubin, &err),
           HEWN_ERR_DRIVER, "failed: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
    CHECK_INT(fake.modules, 0);
    detach_fake(driver, context);
}

/* ---- tensor maps -- */

static hewn_tensormap_desc good_map(void)
{
    return (hewn_tensormap_desc){.struct_size = sizeof(hewn_tensormap_desc),
                                 .address = 0x10000,
                                 .dtype = HEWN_TENSORMAP_BF16,
                                 .rank = 3,
                                 .dim = {4100, 300, 7},
                                 .stride = {8208, 8208 * 300},
                                 .box = {64, 128, 1},
                                 .swizzle = HEWN_TENSORMAP_SWIZZLE_128B};
}

static hewn_tensormap_desc packed_map(int dtype)
{
    return (hewn_tensormap_desc){.struct_size = sizeof(hewn_tensormap_desc),
                                 .address = 0x10000,
                                 .dtype = dtype,
                                 .rank = 2,
                                 .dim = {256, 64},
                                 .stride = {256},
                                 .box = {128, 8}};
}

static void refuse_map(int line, hewn_tensormap_desc *d, int cc_major, const char *words)
{
    hewn_driver *driver = NULL;
    hewn_context *context = attach_fake(&driver, cc_major, 0);
    hewn_tensormap out;
    hewn_error err = {0};
    memset(&out, POISON, sizeof out);
    refused(__FILE__, line, hewn_tensormap_check(d, "A", cc_major, 0, &err), HEWN_ERR_ARGUMENT,
            &err, words);
    memset(&err, 0, sizeof err);
    refused(__FILE__, line, hewn_tensormap_encode(context, d, "A", &out, &err), HEWN_ERR_ARGUMENT,
            &err, words);
    untouched(line, &out, sizeof out);
    detach_fake(driver, context);
}

/* `change` makes a good description `d` a bad one, for a device of compute capability `cc`.0. */
#define BAD_MAP(base, cc, change, words)            \
    do {                                            \
        if (test_case("tensor map: %s", #change)) { \
            hewn_tensormap_desc d = base;           \
            change;                                 \
            refuse_map(__LINE__, &d, cc, words);    \
        }                                           \
    } while (0)

static void tensor_map_layout(void)
{
    BAD_MAP(good_map(), 9, d.struct_size = 0, "hewn_tensormap_desc: struct_size 0");
    BAD_MAP(good_map(), 8, d.rank = 3, "A: tensor maps need compute capability 9.0");
    BAD_MAP(good_map(), 9, d.dtype = 16, "A: dtype 16 is not in 0..15");
    BAD_MAP(good_map(), 9, d.dtype = -1, "A: dtype -1 is not in 0..15");
    BAD_MAP(good_map(), 9, d.interleave = 3, "A: interleave 3 is not in 0..2");
    BAD_MAP(good_map(), 9, d.swizzle = 7, "A: swizzle 7 is not in 0..6");
    BAD_MAP(good_map(), 9, d.l2 = 4, "A: l2 4 is not in 0..3");
    BAD_MAP(good_map(), 9, d.oob = 2, "A: oob 2 is not in 0..1");
    BAD_MAP(good_map(), 9, d.rank = 0, "A: rank 0 is not in 1..5");
    BAD_MAP(good_map(), 9, d.rank = 6, "A: rank 6 is not in 1..5");
    BAD_MAP(good_map(), 9, d.address += 8, "A: address 0x10008 is not a multiple of 16");
    BAD_MAP(good_map(), 9, d.address = 1ULL << 57, "is not below 2^57");
    BAD_MAP(good_map(), 9, d.dim[1] = 0, "A: dim[1] 0 is not in 1..2^32");
    BAD_MAP(good_map(), 9, d.dim[2] = (1ULL << 32) + 1, "A: dim[2] 4294967297 is not in 1..2^32");
    BAD_MAP(good_map(), 9, d.stride[0] = 8200, "A: row stride 8200 B is not a multiple of 16 B");
    BAD_MAP(good_map(), 9, d.stride[1] = 8, "A: stride[1] 8 B is not a multiple of 16 B");
    BAD_MAP(good_map(), 9, d.stride[1] = 1ULL << 40, "1099511627776 B is not below 2^40 B");
}

static void tensor_map_box(void)
{
    BAD_MAP(good_map(), 9, d.box[1] = 0, "A: box[1] 0 is not in 1..256");
    BAD_MAP(good_map(), 9, d.box[1] = 257, "A: box[1] 257 is not in 1..256");
    BAD_MAP(good_map(), 9, d.element_stride[1] = 9, "A: element_stride[1] 9 is not in 1..8");
    BAD_MAP(good_map(), 9, d.box[0] = 60, "A: box[0] 60 of dtype BF16 is 120.0 B, not a multiple");
    BAD_MAP(good_map(), 9, d.box[0] = 72, "is 144 B, more than the 128 B of swizzle 128B");
    BAD_MAP(good_map(), 9, d.swizzle = HEWN_TENSORMAP_SWIZZLE_64B,
            "more than the 64 B of swizzle 64B");
    BAD_MAP(good_map(), 9, d.swizzle = HEWN_TENSORMAP_SWIZZLE_32B,
            "more than the 32 B of swizzle 32B");
}

static void tensor_map_modes(void)
{
    BAD_MAP(good_map(), 9, (d.dtype = HEWN_TENSORMAP_U16, d.oob = HEWN_TENSORMAP_OOB_NAN),
            "A: oob NaN needs a floating-point dtype, not U16");
    BAD_MAP(good_map(), 9, d.swizzle = HEWN_TENSORMAP_SWIZZLE_128B_ATOM_32B,
            "A: swizzle 128B_ATOM_32B needs compute capability 10.0");
    BAD_MAP(good_map(), 9, (d.interleave = HEWN_TENSORMAP_INTERLEAVE_16B, d.rank = 2),
            "A: rank 2 is not in 3..5, which interleave needs");
    BAD_MAP(good_map(), 9,
            (d.rank = 3, d.box[1] = d.box[2] = 256, d.dim[2] = 256, d.stride[1] = 1 << 20),
            "is more than 233472 B");
    BAD_MAP(good_map(), 9,
            (d.box[1] = d.box[2] = 256, d.element_stride[1] = d.element_stride[2] = 5),
            "A: a box of 332928 B is more than 233472 B"); /* 51 of 256 rows: rounded down */
    BAD_MAP(good_map(), 9, (d.interleave = HEWN_TENSORMAP_INTERLEAVE_16B, d.box[0] = 3),
            "A: box[0] 3 of dtype BF16 is 6.0 B, not a multiple of 16 B");
    BAD_MAP(good_map(), 9,
            (d.interleave = HEWN_TENSORMAP_INTERLEAVE_32B, d.swizzle = HEWN_TENSORMAP_SWIZZLE_32B,
             d.stride[0] = 8224, d.address += 16),
            "A: address 0x10010 is not a multiple of 32");
    BAD_MAP(good_map(), 9,
            (d.interleave = HEWN_TENSORMAP_INTERLEAVE_32B, d.swizzle = HEWN_TENSORMAP_SWIZZLE_32B),
            "A: row stride 8208 B is not a multiple of 32 B");
    BAD_MAP(packed_map(HEWN_TENSORMAP_16U4_ALIGN8B), 9, d.rank = 2,
            "A: dtype 16U4_ALIGN8B needs compute capability 10.0");
    BAD_MAP(packed_map(HEWN_TENSORMAP_16U4_ALIGN8B), 10, d.dim[0] = 255,
            "A: dim[0] 255 is not a multiple of 2, which dtype 16U4_ALIGN8B needs");
    BAD_MAP(packed_map(HEWN_TENSORMAP_16U4_ALIGN8B), 10, d.box[0] = 16,
            "A: box[0] 16 of dtype 16U4_ALIGN8B is 8.0 B, not a multiple of 16 B");
    BAD_MAP(packed_map(HEWN_TENSORMAP_16U4_ALIGN16B), 10, d.dim[0] = 192,
            "is not a multiple of 128");
    BAD_MAP(packed_map(HEWN_TENSORMAP_16U6_ALIGN16B), 10, d.box[0] = 64,
            "A: box[0] 64 must be 128");
    BAD_MAP(packed_map(HEWN_TENSORMAP_16U6_ALIGN16B), 10, d.stride[0] = 208,
            "not a multiple of 32 B");
    BAD_MAP(packed_map(HEWN_TENSORMAP_16U4_ALIGN16B), 10, d.swizzle = HEWN_TENSORMAP_SWIZZLE_64B,
            "A: swizzle 64B does not go with dtype 16U4_ALIGN16B");
    BAD_MAP(packed_map(HEWN_TENSORMAP_16U6_ALIGN16B), 10,
            (d.interleave = HEWN_TENSORMAP_INTERLEAVE_16B, d.rank = 3, d.dim[2] = 1, d.box[2] = 1),
            "A: interleave 1 does not go with dtype 16U6_ALIGN16B");
    BAD_MAP(packed_map(HEWN_TENSORMAP_16U4_ALIGN8B), 10, d.oob = HEWN_TENSORMAP_OOB_NAN,
            "A: oob NaN needs a floating-point dtype, not 16U4_ALIGN8B");
}

static void tensor_map_calls(void)
{
    hewn_tensormap_desc d = good_map();
    struct {
        hewn_tensormap aligned;
        char room[sizeof(hewn_tensormap)];
    } out;
    hewn_driver *driver = NULL;
    memset(&out, POISON, sizeof out);
    hewn_context *context = attach_fake(&driver, 9, 0);
    void *askew = (char *)&out + 8;
    REFUSE("tensor map: no description", hewn_tensormap_check(NULL, "A", 9, 0, &err),
           HEWN_ERR_ARGUMENT, "hewn_tensormap_desc: must not be NULL");
    REFUSE("tensor map: no context", hewn_tensormap_encode(NULL, &d, "A", &out.aligned, &err),
           HEWN_ERR_ARGUMENT, "context: must not be NULL");
    REFUSE("tensor map: no output", hewn_tensormap_encode(context, &d, "A", NULL, &err),
           HEWN_ERR_ARGUMENT, "out: must not be NULL");
    REFUSE("tensor map: output askew", hewn_tensormap_encode(context, &d, "A", askew, &err),
           HEWN_ERR_ARGUMENT, "is not a multiple of 64");
    REFUSE("tensor map: nameless", (d.rank = 9, hewn_tensormap_check(&d, NULL, 9, 0, &err)),
           HEWN_ERR_ARGUMENT, "tensor: rank 9");
    untouched(__LINE__, &out, sizeof out);
    detach_fake(driver, context);
}

/* ---- tensor memory -- */

static int plan_columns(uint32_t first, uint32_t second, uint32_t align, uint32_t ctas,
                        hewn_error *err)
{
    hewn_tmem_region regions[] = {{"acc", first, 0, 7777}, {"scale", second, align, 7777}};
    hewn_tmem_plan plan;
    memset(&plan, POISON, sizeof plan);
    int status = hewn_tmem_place(regions, 2, ctas, &plan, err);
    CHECK(regions[0].column == 7777 && regions[1].column == 7777, "a region was placed");
    untouched(__LINE__, &plan, sizeof plan);
    return status;
}

static void tensor_memory(void)
{
    hewn_tmem_region one = {"acc", 128, 0, 0};
    hewn_tmem_plan plan;
    REFUSE("tmem: region of no column", plan_columns(128, 0, 1, 0, &err), HEWN_ERR_ARGUMENT,
           "region 1 (scale): columns 0 is not in 1..512");
    REFUSE("tmem: region of 513 columns", plan_columns(513, 1, 1, 0, &err), HEWN_ERR_ARGUMENT,
           "region 0 (acc): columns 513 is not in 1..512");
    REFUSE("tmem: alignment 3", plan_columns(128, 16, 3, 0, &err), HEWN_ERR_ARGUMENT,
           "region 1 (scale): align 3 is not a power of two");
    REFUSE("tmem: 608 columns", plan_columns(512, 96, 1, 0, &err), HEWN_ERR_LIMIT,
           "2 regions take 608 columns, gaps included; an SM has 512");
    REFUSE("tmem: two CTAs that would starve each other", plan_columns(256, 32, 1, 2, &err),
           HEWN_ERR_LIMIT, "ctas_per_sm: 2 CTAs of 512 columns each");
    REFUSE("tmem: no regions", hewn_tmem_place(NULL, 1, 0, &plan, &err), HEWN_ERR_ARGUMENT,
           "regions: must not be NULL");
    REFUSE("tmem: none of them", hewn_tmem_place(&one, 0, 0, &plan, &err), HEWN_ERR_ARGUMENT,
           "count: 0 regions");
    REFUSE("tmem: no output", hewn_tmem_place(&one, 1, 0, NULL, &err), HEWN_ERR_ARGUMENT,
           "out: must not be NULL");
    if (test_case("tmem: regions by alignment, then in order")) {
        hewn_tmem_region r[] = {
            {"s", 20, 4, 0}, {"acc", 100, 128, 0}, {"p", 8, 4, 0}, {"x", 1, 0, 0}};
        CHECK_INT(hewn_tmem_place(r, 4, 2, &plan, NULL), HEWN_OK);
        CHECK_INT(r[1].column, 0);
        CHECK_INT(r[0].column, 100);
        CHECK_INT(r[2].column, 120);
        CHECK_INT(r[3].column, 128);
        CHECK_INT(plan.used, 129);
        CHECK_INT(plan.columns, 256);
        CHECK_INT(plan.ctas_per_sm, 2);
    }
}

/* ---- launches -- */

#define BAD_LAUNCH(change, status, words)                                                        \
    do {                                                                                         \
        hewn_launch_desc d = {.struct_size = sizeof d, .grid = {8, 1, 1}, .block = {128, 1, 1}}; \
        change;                                                                                  \
        REFUSE("launch: " #change, hewn_function_launch(context, f, &d, NULL, &err), status,     \
               words);                                                                           \
    } while (0)

static void launches(int cc_major)
{
    hewn_driver *driver = NULL;
    hewn_context *context = attach_fake(&driver, cc_major, 0);
    hewn_function f = (hewn_function)(void *)&fake;
    if (cc_major < 9) {
        BAD_LAUNCH(d.programmatic = 1, HEWN_ERR_LIMIT,
                   "programmatic: needs compute capability 9.0");
        BAD_LAUNCH((d.cluster[0] = 2, d.cluster[1] = d.cluster[2] = 1), HEWN_ERR_LIMIT,
                   "(compute capability 8.0) has no clusters");
        CHECK_INT(fake.launches, 0);
        detach_fake(driver, context);
        return;
    }
    BAD_LAUNCH(d.struct_size = 4, HEWN_ERR_ARGUMENT, "hewn_launch_desc: struct_size 4");
    BAD_LAUNCH(d.cooperative = 2, HEWN_ERR_ARGUMENT, "cooperative: 2 is neither 0 nor 1");
    BAD_LAUNCH(d.programmatic = -1, HEWN_ERR_ARGUMENT, "programmatic: -1 is neither 0 nor 1");
    BAD_LAUNCH(d.grid[0] = 0, HEWN_ERR_ARGUMENT, "grid.x: 0 is not in 1..2147483647");
    BAD_LAUNCH(d.grid[1] = 65536, HEWN_ERR_ARGUMENT, "grid.y: 65536 is not in 1..65535");
    BAD_LAUNCH(d.block[1] = 0, HEWN_ERR_ARGUMENT, "block.y: 0 is not in 1..1024");
    BAD_LAUNCH(d.block[2] = 65, HEWN_ERR_ARGUMENT, "block.z: 65 is not in 1..64");
    BAD_LAUNCH(d.block[1] = 9, HEWN_ERR_ARGUMENT, "block: 128x9x1 is 1152 threads, more than 1024");
    BAD_LAUNCH(d.cluster[0] = 2, HEWN_ERR_ARGUMENT, "cluster.y: 0 is not in 1..16");
    BAD_LAUNCH((d.cluster[0] = 3, d.cluster[1] = d.cluster[2] = 1), HEWN_ERR_ARGUMENT,
               "grid.x: 8 is not a multiple of cluster.x, 3");
    BAD_LAUNCH((d.cluster[0] = d.cluster[1] = d.grid[1] = 8, d.cluster[2] = 1), HEWN_ERR_ARGUMENT,
               "cluster: 8x8x1 is 64 CTAs, more than 16");
    BAD_LAUNCH(d.dynamic_shared = 232449, HEWN_ERR_LIMIT, "dynamic_shared: 232449 B is more than");
    REFUSE("launch: no function", hewn_function_launch(context, NULL, NULL, NULL, &err),
           HEWN_ERR_ARGUMENT, "function: must not be NULL");
    REFUSE("launch: no shape", hewn_function_launch(context, f, NULL, NULL, &err),
           HEWN_ERR_ARGUMENT, "hewn_launch_desc: must not be NULL");
    REFUSE("launch: no context", hewn_function_launch(NULL, f, NULL, NULL, &err), HEWN_ERR_ARGUMENT,
           "context: must not be NULL");
    REFUSE("shared memory, static and dynamic, above the limit",
           hewn_function_allow_shared(context, f, 232448, &err), HEWN_ERR_LIMIT,
           "bytes: 232448 B dynamic and 128 B static shared memory are more than the 232448 B");
    CHECK_INT(fake.launches, 0);
    detach_fake(driver, context);
}

int main(int argc, char **argv)
{
    test_begin("badinput", argc, argv);
    test_where("a driver made of functions");
    opening();
    grown_struct();
    contexts();
    modules();
    tensor_map_layout();
    tensor_map_box();
    tensor_map_modes();
    tensor_map_calls();
    tensor_memory();
    launches(9);
    launches(8);
    gemm();
    attention();
    merge();
    mla();
    tables();
    indexer();
    grouped();
    w4();
    return test_end();
}
