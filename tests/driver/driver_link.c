/* The driver's linker: PTX texts that use each other, joined and loaded. */
#include "lib/driver_table.h"

#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { PTX = 1, WORDS = 4 };
#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

/* out[0] = twice(20) + own, out[1] = word, out[2] = other's own */
static const char user[] =
    HEAD ".extern .func (.param .b32 r) twice(.param .b32 x);\n"
         ".extern .func (.param .b32 r) others();\n"
         ".extern .global .align 4 .u32 word;\n"
         ".global .align 4 .u32 own = 1;\n"
         ".visible .entry use(.param .u64 out) {\n"
         "  .reg .b32 %r<8>; .reg .b64 %rd<3>;\n"
         "  ld.param.u64 %rd0, [out]; cvta.to.global.u64 %rd0, %rd0;\n"
         "  { .param .b32 a; .param .b32 b; st.param.b32 [a], 20;\n"
         "    call.uni (b), twice, (a); ld.param.b32 %r0, [b]; }\n"
         "  { .param .b32 b; call.uni (b), others; ld.param.b32 %r3, [b]; }\n"
         "  ld.global.u32 %r1, [own]; add.u32 %r0, %r0, %r1; ld.global.u32 %r2, [word];\n"
         "  st.global.u32 [%rd0], %r0; st.global.u32 [%rd0+4], %r2; st.global.u32 [%rd0+8], %r3;\n"
         "  ret;\n}\n";

static const char definer[] =
    HEAD ".visible .global .align 4 .u32 word = 5;\n"
         ".global .align 4 .u32 own = 2; // another one\n"
         ".visible .func (.param .b32 r) twice(.param .b32 x) {\n"
         "  .reg .b32 %r<2>; ld.param.b32 %r0, [x]; add.u32 %r1, %r0, %r0;\n"
         "  st.param.b32 [r], %r1; ret;\n}\n"
         ".visible .func (.param .b32 r) others() {\n"
         "  .reg .b32 %r<1>; ld.global.u32 %r0, [own]; st.param.b32 [r], %r0; ret;\n}\n";

static hewn_cu_link begin(void)
{
    hewn_cu_link link = NULL;
    CHECK_INT(cu.cuLinkCreate_v2(0, NULL, NULL, &link), 0);
    return link;
}

static int add(hewn_cu_link link, const char *ptx, const char *name)
{
    /* A void pointer, which the driver only reads from. */
    return cu.cuLinkAddData_v2(link, PTX, (void *)(uintptr_t)ptx, strlen(ptx) + 1, name, 0, NULL,
                               NULL);
}

static void run(void *image)
{
    hewn_cu_module module = load(image);
    hewn_cu_deviceptr out = buffer(4 * WORDS), word = 0;
    void *params[] = {&out};
    size_t bytes = 0;

    CHECK_INT(cu.cuLaunchKernel(function(module, "use"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
              0);
    CHECK_INT(cu.cuCtxSynchronize(), 0);
    CHECK_INT(count_wrong(out, 41, 1) + count_wrong(out + 4, 5, 1) + count_wrong(out + 8, 2, 1), 0);
    CHECK_INT(cu.cuModuleGetGlobal_v2(&word, &bytes, module, "word"), 0);
    CHECK_INT(bytes, 4);
    CHECK_INT(cu.cuMemFree_v2(out), 0);
    CHECK_INT(cu.cuModuleUnload(module), 0);
}

static void test_join(void)
{
    hewn_cu_link link;
    void *image = NULL;
    size_t size = 0;

    if (!test_case("functions and variables of another text are found")) return;
    for (int order = 0; order < 2; order++) {
        link = begin();
        CHECK_INT(add(link, order ? definer : user, "first"), 0);
        CHECK_INT(add(link, order ? user : definer, "second"), 0);
        CHECK_INT(cu.cuLinkComplete(link, &image, &size), 0);
        CHECK(image && size, "image %p, %zu bytes", image, size);
        if (image) run(image);
        CHECK_INT(cu.cuLinkDestroy(link), 0);
    }
}

static void test_file(void)
{
    const char *dir = getenv("TMPDIR");
    char path[256];
    hewn_cu_link link;
    void *image = NULL;
    FILE *file;

    if (!test_case("a text from a file")) return;
    snprintf(path, sizeof path, "%s/hewn-link-%d.ptx", dir && *dir ? dir : "/tmp", (int)getpid());
    file = fopen(path, "w");
    CHECK(file && fputs(definer, file) >= 0 && !fclose(file), "%s cannot be written", path);
    link = begin();
    CHECK_INT(add(link, user, "user"), 0);
    CHECK_INT(cu.cuLinkAddFile_v2(link, PTX, path, 0, NULL, NULL), 0);
    CHECK_INT(cu.cuLinkAddFile_v2(link, PTX, "/nonexistent.ptx", 0, NULL, NULL),
              HEWN_CU_FILE_NOT_FOUND);
    CHECK_INT(cu.cuLinkComplete(link, &image, NULL), 0);
    if (image) run(image);
    CHECK_INT(cu.cuLinkDestroy(link), 0);
    remove(path);
}

static void test_errors(void)
{
    enum { LOG = 1024 };
    char log[LOG] = "";
    int options[] = {HEWN_CU_JIT_ERROR_LOG_BUFFER, HEWN_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)LOG};
    hewn_cu_link link = NULL;
    void *image = NULL;
    size_t size = 0;

    if (!test_case("what does not fit together is named")) return;
    CHECK_INT(cu.cuLinkCreate_v2(2, options, values, &link), 0);
    CHECK_INT(add(link, user, "user"), 0);
    CHECK(cu.cuLinkComplete(link, &image, &size), "an undefined function was linked");
    CHECK_TEXT(log, simulated ? "twice" : "ndefined"); /* drivers name them all */
    CHECK_INT(cu.cuLinkDestroy(link), 0);
    values[1] = (void *)(uintptr_t)LOG;
    CHECK_INT(cu.cuLinkCreate_v2(2, options, values, &link), 0);
    CHECK_INT(add(link, definer, "first"), 0);
    CHECK_INT(add(link, definer, "second"), HEWN_CU_INVALID_SOURCE);
    CHECK_INT(cu.cuLinkDestroy(link), 0);
    values[1] = (void *)(uintptr_t)LOG;
    CHECK_INT(cu.cuLinkCreate_v2(2, options, values, &link), 0);
    CHECK_INT(add(link, HEAD ".visible .entry e() { nonsense; }\n", "bad"), HEWN_CU_INVALID_PTX);
    CHECK(log[0], "the log is empty");
    CHECK_INT(cu.cuLinkDestroy(link), 0);
    if (simulated) {
        CHECK_INT(cu.cuLinkComplete(link, &image, &size), HEWN_CU_INVALID_HANDLE);
        CHECK_INT(cu.cuLinkCreate_v2(1, NULL, NULL, &link), HEWN_CU_INVALID_VALUE);
    }
}

/* ---- relocatable objects: nvcc's wrapper names their containers, and its own is empty ---- */

struct container {
    uint32_t magic;
    uint16_t version, bytes;
    uint64_t size;
    uint16_t kind, entry_version;
    uint32_t header_bytes;
    uint64_t text_bytes;
    uint32_t compressed, unused;
    uint16_t minor, major;
    uint32_t arch, name, name_bytes;
    uint64_t flags, zero, plain_bytes;
    char text[2048];
};

static void contain(struct container *c, const char *ptx)
{
    memset(c, 0, sizeof *c);
    c->magic = 0xBA55ED50;
    c->version = 1;
    c->bytes = 16;
    c->kind = PTX;
    c->entry_version = 0x101;
    c->header_bytes = 64;
    c->major = 8;
    c->arch = 90;
    c->text_bytes = sizeof c->text;
    c->size = ptx ? c->header_bytes + c->text_bytes : 0;
    if (ptx) snprintf(c->text, sizeof c->text, "%s", ptx);
}

static void test_objects(void)
{
    static struct container own, objects[3];
    const void *parts[] = {&objects[0], &objects[2], &objects[1], NULL};
    struct {
        uint32_t magic, version;
        const void *data, *parts;
    } wrapper = {0x466243B1, 2, &own, parts};
    hewn_cu_module m = NULL;

    if (!simulated || !test_case("relocatable objects are linked when they are loaded")) return;
    contain(&own, NULL);
    contain(&objects[0], user);
    contain(&objects[1], definer);
    contain(&objects[2], NULL); /* one without device code */
    run(&wrapper);
    objects[2] = objects[1];
    objects[2].kind = 2; /* machine code: left out */
    run(&wrapper);
    objects[1].kind = 2;
    CHECK_INT(cu.cuModuleLoadData(&m, &wrapper), HEWN_CU_INVALID_SOURCE); /* twice is nowhere */
    objects[0].kind = 2;
    CHECK_INT(cu.cuModuleLoadData(&m, &wrapper), HEWN_CU_NO_BINARY_FOR_GPU);
    parts[0] = NULL;
    CHECK_INT(cu.cuModuleLoadData(&m, &wrapper), HEWN_CU_NO_BINARY_FOR_GPU);
    wrapper.parts = NULL;
    CHECK_INT(cu.cuModuleLoadData(&m, &wrapper), HEWN_CU_NO_BINARY_FOR_GPU);
}

int main(int argc, char **argv)
{
    if (!driver_begin("driver_link", argc, argv)) return test_end();
    test_join();
    test_file();
    test_errors();
    test_objects();
    cu.cuDevicePrimaryCtxRelease_v2(0);
    return test_end();
}
