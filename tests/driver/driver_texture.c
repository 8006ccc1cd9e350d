/*
 * Arrays, textures and surfaces through the driver API: what a kernel samples, against the formulas of the CUDA C++
 * Programming Guide ("Texture Fetching") in double precision. Hardware keeps eight bits of a filter's fraction in each
 * dimension, so a filtered value may be off by 2^-8 of the range of the data a dimension; an unfiltered one is exact.
 */
#include "lib/driver_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { POINTS = 512, CHANNELS = 4, EDGE = 12, WORDS = POINTS * CHANNELS };
enum { WRAP, CLAMP, MIRROR, BORDER };

static const char header[] = ".version 8.0\n.target sm_90\n.address_size 64\n";

/* One thread a point: four words of input (coordinates), four of output. */
static const char body[] =
    ".visible .entry %s(.param .u64 object, .param .u64 in, .param .u64 out) {\n"
    "  .reg .b32 %%r<12>; .reg .b64 %%rd<8>; .reg .b32 %%c<4>; .reg .b32 %%o<4>;\n"
    "  mov.u32 %%r0, %%tid.x; mul.wide.u32 %%rd0, %%r0, 16;\n"
    "  ld.param.u64 %%rd1, [object]; ld.param.u64 %%rd2, [in]; ld.param.u64 %%rd3, [out];\n"
    "  add.u64 %%rd2, %%rd2, %%rd0; add.u64 %%rd3, %%rd3, %%rd0;\n"
    "  ld.global.v4.b32 {%%c0, %%c1, %%c2, %%c3}, [%%rd2];\n"
    "  %s\n"
    "  st.global.v4.b32 [%%rd3], {%%o0, %%o1, %%o2, %%o3}; ret;\n}\n";

static const struct kernel_text {
    const char *name, *text;
} kernels[] = {
    {"t1d", "tex.1d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%rd1, {%c0}];"},
    {"t1d_index", "tex.1d.v4.u32.s32 {%o0, %o1, %o2, %o3}, [%rd1, {%c0}];"},
    {"t2d", "tex.2d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%rd1, {%c0, %c1}];"},
    {"t2d_level", "tex.level.2d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%rd1, {%c0, %c1}], %c2;"},
    {"t3d", "tex.3d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%rd1, {%c0, %c1, %c2, %c2}];"},
    {"a1d", "tex.a1d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%rd1, {%c0, %c1}];"},
    {"a2d", "tex.a2d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%rd1, {%c0, %c1, %c2, %c2}];"},
    {"cube", "tex.cube.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%rd1, {%c0, %c1, %c2, %c2}];"},
    {"gather", "tld4.g.2d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%rd1, {%c0, %c1}];"},
    {"sizes",
     "txq.width.b32 %o0, [%rd1]; txq.height.b32 %o1, [%rd1]; mov.u32 %o2, 0; mov.u32 %o3, 0;"},
    {"add_one",
     "suld.b.2d.v4.b32.zero {%o0, %o1, %o2, %o3}, [%rd1, {%c3, %c1}]; add.u32 %r1, %o0, %c2;\n"
     "  sust.b.2d.v4.b32.zero [%rd1, {%c3, %c1}], {%r1, %o1, %o2, %o3};"},
    {"edges",
     "sust.b.2d.b32.zero [%rd1, {-4, %c1}], %c0;\n"
     "  suld.b.2d.b32.zero %o0, [%rd1, {4096, 0}]; suld.b.2d.b32.clamp %o1, [%rd1, {4096, 0}];\n"
     "  mov.u32 %o2, 0; mov.u32 %o3, 0;"},
};

static hewn_cu_module module;
static uint32_t seed = 1;

static double uniform(double from, double to)
{
    seed = seed * 1664525U + 1013904223U;
    return from + (to - from) * ((double)(seed >> 8) / (double)(1U << 24));
}

static bool load_kernels(void)
{
    static char all[sizeof header + 16 * (sizeof body + 256)];
    size_t at = (size_t)snprintf(all, sizeof all, "%s", header);

    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        at += (size_t)snprintf(all + at, sizeof all - at, body, kernels[i].name, kernels[i].text);
    module = load(all);
    return module != NULL;
}

/* ---- what is sampled ---- */

struct volume {
    int size[3]; /* 1 for a dimension that is not there; the third counts layers and faces too */
    float texel[EDGE * EDGE * EDGE][CHANNELS];
};

static const float *texel(const struct volume *v, int x, int y, int z)
{
    return v->texel[(z * v->size[1] + y) * v->size[0] + x];
}

static void fill_volume(struct volume *v, int x, int y, int z)
{
    v->size[0] = x;
    v->size[1] = y;
    v->size[2] = z;
    for (int i = 0; i < x * y * z; i++)
        for (int c = 0; c < CHANNELS; c++) v->texel[i][c] = (float)uniform(-1, 1);
}

/* The index for `i` under an address mode; -1: the border. */
static int index_of(int mode, int i, int size)
{
    int period;

    switch (mode) {
    case WRAP: return ((i % size) + size) % size;
    case MIRROR:
        period = ((i % (2 * size)) + 2 * size) % (2 * size);
        return period < size ? period : 2 * size - 1 - period;
    case BORDER: return i < 0 || i >= size ? -1 : i;
    default: return i < 0 ? 0 : i >= size ? size - 1 : i;
    }
}

struct sampler {
    int dims, mode;
    bool linear;
    int other; /* mode of the dimensions that are not there */
    bool half; /* what is compared was doubled, and its error with it */
};

/* Channel c at a point in texels, on `layer` where there are fewer than three dimensions. */
static double sampled(const struct volume *v, const struct sampler *s, const double at[3],
                      int layer, int c)
{
    double sum = 0;

    for (int corner = 0; corner < 1 << s->dims; corner++) {
        int i[3] = {0, 0, layer};
        double weight = 1;
        bool inside = true;
        for (int d = 0; d < s->dims; d++) {
            double x = s->linear ? at[d] - 0.5 : at[d], low = floor(x);
            int next = corner >> d & 1;
            weight *= !s->linear ? !next : next ? x - low : 1 - (x - low);
            i[d] = index_of(s->mode, (int)low + next, v->size[d]);
            inside &= i[d] >= 0;
        }
        if (weight > 0 && inside) sum += weight * (double)texel(v, i[0], i[1], i[2])[c];
    }
    return sum;
}

/* ---- objects ---- */

static hewn_cu_array new_array(const struct volume *v, int dims, unsigned flags)
{
    hewn_cu_array3d_desc d = {.width = (size_t)v->size[0],
                              .height = dims > 1 ? (size_t)v->size[1] : 0,
                              .depth = dims > 2 || flags & (HEWN_CU_ARRAY_LAYERED |
                                                            HEWN_CU_ARRAY_CUBEMAP)
                                           ? (size_t)v->size[2]
                                           : 0,
                              .format = HEWN_CU_FORMAT_F32,
                              .channels = CHANNELS,
                              .flags = flags};
    hewn_cu_memcpy3d copy = {.src_type = HEWN_CU_MEMORY_HOST,
                             .src_host = v->texel,
                             .src_pitch = (size_t)v->size[0] * sizeof v->texel[0],
                             .src_height = (size_t)v->size[1],
                             .dst_type = HEWN_CU_MEMORY_ARRAY,
                             .width = (size_t)v->size[0] * sizeof v->texel[0],
                             .height = (size_t)v->size[1],
                             .depth = (size_t)v->size[2]};
    hewn_cu_array array = NULL;

    CHECK_INT(cu.cuArray3DCreate_v2(&array, &d), 0);
    copy.dst_array = array;
    CHECK_INT(cu.cuMemcpy3D_v2(&copy), 0);
    return array;
}

static uint64_t new_texture(hewn_cu_array array, const struct sampler *s, unsigned flags)
{
    hewn_cu_resource_desc r = {.type = HEWN_CU_RESOURCE_ARRAY, .of.array = array};
    hewn_cu_texture_desc t = {
        .address_mode = {s->mode, s->other, s->other}, .filter = s->linear, .flags = flags};
    uint64_t object = 0;

    CHECK_INT(cu.cuTexObjectCreate(&object, &r, &t, NULL), 0);
    return object;
}

static void launch(const char *name, uint64_t object, const void *in, void *out)
{
    hewn_cu_deviceptr from = buffer(WORDS * 4), to = buffer(WORDS * 4);
    void *params[] = {&object, &from, &to};

    CHECK_INT(cu.cuMemcpyHtoD_v2(from, in, WORDS * 4), 0);
    CHECK_INT(
        cu.cuLaunchKernel(function(module, name), 1, 1, 1, POINTS, 1, 1, 0, NULL, params, NULL), 0);
    CHECK_INT(cu.cuCtxSynchronize(), 0);
    CHECK_INT(cu.cuMemcpyDtoH_v2(out, to, WORDS * 4), 0);
    CHECK_INT(cu.cuMemFree_v2(from), 0);
    CHECK_INT(cu.cuMemFree_v2(to), 0);
}

/* ---- points ---- */

struct point {
    float in[POINTS][CHANNELS]; /* as the instruction takes them */
    double at[POINTS][3];       /* in texels */
    int layer[POINTS];
};

/* Points around the texture, never where rounding could name another texel. */
static double place(double size)
{
    double x = floor(uniform(-size, 2 * size));
    return x + uniform(0.02, 0.98);
}

static void make_points(struct point *p, const struct volume *v, int dims, bool normalized,
                        int first)
{
    for (int i = 0; i < POINTS; i++) {
        p->layer[i] = 0;
        for (int d = 0; d < dims; d++) {
            double x = place(v->size[d]);
            p->in[i][first + d] = (float)(normalized ? x / v->size[d] : x);
            p->at[i][d] = (double)p->in[i][first + d] * (normalized ? v->size[d] : 1);
        }
    }
}

static void put_word(float *to, int word)
{
    memcpy(to, &word, sizeof word);
}

static void compare(const struct volume *v, const struct sampler *s, const struct point *p,
                    float out[][CHANNELS], const char *what)
{
    double tolerance = s->linear ? s->dims * (s->half ? 4.0 : 2.0) / 256 : 0, worst = 0;

    for (int i = 0; i < POINTS; i++)
        for (int c = 0; c < CHANNELS; c++) {
            double off = fabs((double)out[i][c] - sampled(v, s, p->at[i], p->layer[i], c));
            if (!(off <= worst)) worst = off;
        }
    CHECK(worst <= tolerance, "%s, mode %d, linear %d: off by %g, %g allowed", what, s->mode,
          s->linear, worst, tolerance);
}

static void test_plain(const char *name, int dims)
{
    static struct volume v;
    static struct point p;
    static float out[POINTS][CHANNELS];
    hewn_cu_array array;

    fill_volume(&v, EDGE, dims > 1 ? EDGE - 3 : 1, dims > 2 ? EDGE - 5 : 1);
    array = new_array(&v, dims, 0);
    for (int mode = WRAP; mode <= BORDER; mode++)
        for (int form = 0; form < 4; form++) {
            struct sampler s = {dims, mode, form & 1, dims > 1 ? mode : CLAMP, false};
            bool normalized = form & 2;
            uint64_t object;
            if (!normalized && (mode == WRAP || mode == MIRROR)) continue;
            object = new_texture(array, &s, normalized ? HEWN_CU_TEXTURE_NORMALIZED : 0);
            make_points(&p, &v, dims, normalized, 0);
            launch(name, object, p.in, out);
            compare(&v, &s, &p, out, name);
            CHECK_INT(cu.cuTexObjectDestroy(object), 0);
        }
    CHECK_INT(cu.cuArrayDestroy(array), 0);
}

/* Hardware takes one dimension for two of height 1, sampled on the edge: with a border there, a linear filter mixes
 * half of it in. */
static void test_edge_row(void)
{
    static struct volume v;
    static struct point p;
    static float out[POINTS][CHANNELS];
    struct sampler s = {1, CLAMP, true, BORDER, false};
    hewn_cu_array array;
    uint64_t object;

    fill_volume(&v, EDGE, 1, 1);
    array = new_array(&v, 1, 0);
    object = new_texture(array, &s, 0);
    make_points(&p, &v, 1, false, 0);
    launch("t1d", object, p.in, out);
    for (int i = 0; i < POINTS; i++)
        for (int c = 0; c < CHANNELS; c++) out[i][c] *= 2;
    s.half = true;
    compare(&v, &s, &p, out, "t1d with a border above");
    CHECK_INT(cu.cuTexObjectDestroy(object), 0);
    CHECK_INT(cu.cuArrayDestroy(array), 0);
}

static void test_layers(const char *name, int dims)
{
    static struct volume v;
    static struct point p;
    static float out[POINTS][CHANNELS];
    struct sampler s = {dims, CLAMP, true, CLAMP, false};
    hewn_cu_array array;
    uint64_t object;

    fill_volume(&v, EDGE, dims > 1 ? EDGE - 1 : 1, 5);
    array = new_array(&v, dims, HEWN_CU_ARRAY_LAYERED);
    object = new_texture(array, &s, 0);
    make_points(&p, &v, dims, false, 1);
    for (int i = 0; i < POINTS; i++) {
        p.layer[i] = i % 7 < 5 ? i % 7 : 4; /* beyond the last, the last */
        put_word(&p.in[i][0], i % 7);
    }
    launch(name, object, p.in, out);
    compare(&v, &s, &p, out, name);
    CHECK_INT(cu.cuTexObjectDestroy(object), 0);
    CHECK_INT(cu.cuArrayDestroy(array), 0);
}

/* Directions into the middle of texels of each face (Programming Guide, "Cubemap Textures"). */
static void test_cube(void)
{
    static struct volume v;
    static struct point p;
    static float out[POINTS][CHANNELS];
    struct sampler s = {2, CLAMP, false, CLAMP, false};
    hewn_cu_array array;
    uint64_t object;

    fill_volume(&v, 8, 8, 6);
    array = new_array(&v, 2, HEWN_CU_ARRAY_CUBEMAP);
    object = new_texture(array, &s, HEWN_CU_TEXTURE_NORMALIZED);
    for (int i = 0; i < POINTS; i++) {
        int face = i % 6;
        float a, b, m = (float)uniform(0.5, 3);
        p.layer[i] = face;
        p.at[i][0] = floor(uniform(0, 8)) + 0.5;
        p.at[i][1] = floor(uniform(0, 8)) + 0.5;
        a = m * (float)(p.at[i][0] / 4 - 1);
        b = m * (float)(p.at[i][1] / 4 - 1);
        const float direction[6][3] = {{m, -b, -a}, {-m, -b, a}, {a, m, b},
                                       {a, -m, -b}, {a, -b, m},  {-a, -b, -m}};
        memcpy(p.in[i], direction[face], sizeof direction[face]);
    }
    launch("cube", object, p.in, out);
    compare(&v, &s, &p, out, "cube");
    CHECK_INT(cu.cuTexObjectDestroy(object), 0);
    CHECK_INT(cu.cuArrayDestroy(array), 0);
}

/* A lower left, then counter-clockwise: (x, y + 1), (x + 1, y + 1), (x + 1, y), (x, y). */
static void test_gather(void)
{
    static const int dx[] = {0, 1, 1, 0}, dy[] = {1, 1, 0, 0};
    static struct volume v;
    static struct point p;
    static float out[POINTS][CHANNELS];
    struct sampler s = {2, CLAMP, false, CLAMP, false};
    hewn_cu_array array;
    uint64_t object;
    int wrong = 0;

    fill_volume(&v, EDGE, EDGE, 1);
    array = new_array(&v, 2, HEWN_CU_ARRAY_GATHER);
    object = new_texture(array, &s, 0);
    make_points(&p, &v, 2, false, 0);
    for (int i = 0; i < POINTS; i++) /* the filter's corner is half a texel away */
        for (int d = 0; d < 2; d++) p.in[i][d] = (float)(p.at[i][d] += 0.5);
    launch("gather", object, p.in, out);
    for (int i = 0; i < POINTS; i++)
        for (int corner = 0; corner < 4; corner++) {
            int x = index_of(CLAMP, (int)floor(p.at[i][0] - 0.5) + dx[corner], EDGE);
            int y = index_of(CLAMP, (int)floor(p.at[i][1] - 0.5) + dy[corner], EDGE);
            wrong += out[i][corner] != texel(&v, x, y, 0)[1];
        }
    CHECK_INT(wrong, 0);
    CHECK_INT(cu.cuTexObjectDestroy(object), 0);
    CHECK_INT(cu.cuArrayDestroy(array), 0);
}

/* Four bytes a texel, read as numbers from 0 to 1 and as they are, from a pitched and from a linear range. */
static void test_memory(void)
{
    enum { PITCH = 512, ROWS = 9, COLUMNS = 21 };
    static uint8_t bytes[ROWS * PITCH];
    static float in[POINTS][CHANNELS], out[POINTS][CHANNELS];
    hewn_cu_deviceptr memory = buffer(sizeof bytes);
    hewn_cu_resource_desc r = {.type = HEWN_CU_RESOURCE_PITCH2D,
                               .of.pitch2d = {memory, HEWN_CU_FORMAT_U8, CHANNELS, COLUMNS, ROWS,
                                              PITCH}};
    hewn_cu_texture_desc t = {.address_mode = {CLAMP, CLAMP, CLAMP}};
    uint64_t object = 0;
    int wrong = 0;

    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)uniform(0, 256);
    CHECK_INT(cu.cuMemcpyHtoD_v2(memory, bytes, sizeof bytes), 0);
    CHECK_INT(cu.cuTexObjectCreate(&object, &r, &t, NULL), 0);
    for (int i = 0; i < POINTS; i++) {
        in[i][0] = (float)(i % COLUMNS) + 0.5F;
        in[i][1] = (float)(i / COLUMNS % ROWS) + 0.5F;
    }
    launch("t2d", object, in, out);
    for (int i = 0; i < POINTS; i++)
        for (int c = 0; c < CHANNELS; c++) {
            int byte = bytes[i / COLUMNS % ROWS * PITCH + i % COLUMNS * CHANNELS + c];
            wrong += fabs((double)out[i][c] - byte / 255.0) > 1e-7;
        }
    CHECK_INT(wrong, 0);
    CHECK_INT(cu.cuTexObjectDestroy(object), 0);
    r = (hewn_cu_resource_desc){.type = HEWN_CU_RESOURCE_LINEAR,
                                .of.linear = {memory, HEWN_CU_FORMAT_U8, CHANNELS, 400 * CHANNELS}};
    t.flags = HEWN_CU_TEXTURE_AS_INTEGER;
    CHECK_INT(cu.cuTexObjectCreate(&object, &r, &t, NULL), 0);
    for (int i = 0; i < POINTS; i++) put_word(&in[i][0], i - 50);
    launch("t1d_index", object, in, out);
    for (int i = 0; i < POINTS; i++) {
        int got, at = i - 50,
                 byte = at < 0 || at >= 400 ? 0 : bytes[at * CHANNELS]; /* outside: zero */
        memcpy(&got, &out[i][0], sizeof got);
        wrong += got != byte;
    }
    CHECK_INT(wrong, 0);
    CHECK_INT(cu.cuTexObjectDestroy(object), 0);
    CHECK_INT(cu.cuMemFree_v2(memory), 0);
}

/* CTA 0 of a cluster stores a word; CTA 1, or CTA 0 itself, fetches it behind the cluster's barrier. */
static const char stale[] =
    ".visible .entry stale(.param .u64 object, .param .u64 at, .param .u32 reader) "
    ".reqnctapercluster 2 {\n"
    "  .reg .pred %p; .reg .b32 %c, %k; .reg .b64 %t, %a; .reg .b32 %o<4>;\n"
    "  ld.param.u64 %t, [object]; ld.param.u64 %a, [at]; ld.param.u32 %k, [reader];\n"
    "  mov.u32 %c, %ctaid.x; setp.eq.u32 %p, %c, 0; @%p st.global.u32 [%a], 7;\n"
    "  barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n"
    "  setp.ne.u32 %p, %c, %k; @%p ret;\n"
    "  tex.1d.v4.u32.s32 {%o0, %o1, %o2, %o3}, [%t, {0}]; st.global.u32 [%a+4], %o0; ret;\n}\n";

/* Reports go to a file instead of the terminal, which `launch_reported` reads; -1: there is none. */
static int report_begin(char *path)
{
    const int fd = mkstemp(path);
    if (fd >= 0 && !setenv("HEWN_SIM_REPORT", path, 1)) (void)setenv("HEWN_SIM_QUIET", "1", 1);
    return fd;
}

static void launch_reported(int fd, hewn_cu_function f, unsigned ctas, void **params, char *report,
                            size_t room)
{
    ssize_t n;
    CHECK_INT(ftruncate(fd, 0) || lseek(fd, 0, SEEK_SET), 0);
    CHECK_INT(cu.cuLaunchKernel(f, ctas, 1, 1, 1, 1, 1, 0, NULL, params, NULL), 0);
    CHECK_INT(cu.cuCtxSynchronize(), 0);
    n = read(fd, report, room - 1);
    report[n > 0 ? n : 0] = '\0';
}

static void report_close(int fd, const char *path)
{
    (void)unsetenv("HEWN_SIM_REPORT");
    (void)unsetenv("HEWN_SIM_QUIET");
    if (fd < 0) return;
    close(fd);
    unlink(path);
}

/* A texture's cache does not follow what another SM writes: an error, and none where one CTA does both. */
static void test_stale(void)
{
    static char all[sizeof header + sizeof stale], report[4096];
    char path[] = "/tmp/driver_texture.XXXXXX";
    int fd;
    hewn_cu_deviceptr memory = buffer(512);
    hewn_cu_resource_desc r = {.type = HEWN_CU_RESOURCE_LINEAR,
                               .of.linear = {memory, HEWN_CU_FORMAT_U32, 1, 512}};
    hewn_cu_texture_desc t = {.flags = HEWN_CU_TEXTURE_AS_INTEGER};
    hewn_cu_function f = NULL;
    uint64_t object = 0;
    (void)snprintf(all, sizeof all, "%s%s", header, stale);
    CHECK_INT(cu.cuTexObjectCreate(&object, &r, &t, NULL), 0);
    CHECK_INT(cu.cuModuleGetFunction(&f, load(all), "stale"), 0);
    fd = report_begin(path);
    for (uint32_t reader = 0; reader < 2 && f && fd >= 0; reader++) {
        void *params[] = {&object, &memory, &reader};
        launch_reported(fd, f, 2, params, report, sizeof report);
        CHECK(!simulated || (strstr(report, "textures are for memory") != NULL) == (reader == 1),
              "CTA %u reads: %s", (unsigned)reader, report);
    }
    report_close(fd, path);
    CHECK_INT(cu.cuTexObjectDestroy(object), 0);
    CHECK_INT(cu.cuMemFree_v2(memory), 0);
}

/* A word of a surface is stored, then one is loaded: that one, or another. */
static const char again[] =
    ".visible .entry again(.param .u64 object, .param .u32 at) {\n"
    "  .reg .b64 %s; .reg .b32 %a, %v;\n"
    "  ld.param.u64 %s, [object]; ld.param.u32 %a, [at];\n"
    "  sust.b.2d.b32.zero [%s, {0, 0}], 7; suld.b.2d.b32.zero %v, [%s, {%a, 0}];\n"
    "  sust.b.2d.b32.zero [%s, {12, 0}], %v; ret;\n}\n";

/* Whether a load finds what the launch has stored is nobody's promise: it is not proved then. */
static void test_surface_again(void)
{
    static char all[sizeof header + sizeof again], report[4096];
    char path[] = "/tmp/driver_texture.XXXXXX";
    int fd;
    hewn_cu_array array = NULL;
    hewn_cu_array3d_desc d = {.width = 4,
                              .height = 4,
                              .format = HEWN_CU_FORMAT_S32,
                              .channels = 1,
                              .flags = HEWN_CU_ARRAY_SURFACE};
    hewn_cu_resource_desc r = {.type = HEWN_CU_RESOURCE_ARRAY};
    hewn_cu_function f = NULL;
    uint64_t object = 0;
    (void)snprintf(all, sizeof all, "%s%s", header, again);
    CHECK_INT(cu.cuArray3DCreate_v2(&array, &d), 0);
    r.of.array = array;
    CHECK_INT(cu.cuSurfObjectCreate(&object, &r), 0);
    CHECK_INT(cu.cuModuleGetFunction(&f, load(all), "again"), 0);
    fd = report_begin(path);
    for (uint32_t at = 0; at < 8 && f && fd >= 0; at += 4) {
        void *params[] = {&object, &at};
        launch_reported(fd, f, 1, params, report, sizeof report);
        CHECK(!simulated || (strstr(report, "\"basis\":\"proved\"") != NULL) == (at == 4),
              "byte %u is loaded: %s", (unsigned)at, report);
    }
    report_close(fd, path);
    CHECK_INT(cu.cuSurfObjectDestroy(object), 0);
    CHECK_INT(cu.cuArrayDestroy(array), 0);
}

static void test_levels(void)
{
    static struct volume v[3];
    static struct point p;
    static float out[POINTS][CHANNELS];
    hewn_cu_array3d_desc d = {
        .width = 8, .height = 8, .format = HEWN_CU_FORMAT_F32, .channels = CHANNELS};
    hewn_cu_mipmapped_array mipmapped = NULL;
    hewn_cu_resource_desc r = {.type = HEWN_CU_RESOURCE_MIPMAPPED_ARRAY};
    hewn_cu_texture_desc t = {
        .flags = HEWN_CU_TEXTURE_NORMALIZED, .level_filter = 1, .most_level = 2};
    struct sampler s = {2, WRAP, false, WRAP, false};
    uint64_t object = 0;
    double worst = 0;

    CHECK_INT(cu.cuMipmappedArrayCreate(&mipmapped, &d, 3), 0);
    for (unsigned level = 0; level < 3; level++) {
        hewn_cu_array array = NULL;
        hewn_cu_memcpy2d copy = {.src_type = HEWN_CU_MEMORY_HOST, .dst_type = HEWN_CU_MEMORY_ARRAY};
        fill_volume(&v[level], 8 >> level, 8 >> level, 1);
        CHECK_INT(cu.cuMipmappedArrayGetLevel(&array, mipmapped, level), 0);
        copy.src_host = v[level].texel;
        copy.dst_array = array;
        copy.src_pitch = copy.width = (size_t)v[level].size[0] * sizeof v->texel[0];
        copy.height = (size_t)v[level].size[1];
        CHECK_INT(cu.cuMemcpy2D_v2(&copy), 0);
    }
    r.of.mipmapped = mipmapped;
    CHECK_INT(cu.cuTexObjectCreate(&object, &r, &t, NULL), 0);
    make_points(&p, &v[2], 2, true,
                0); /* a point inside a texel of the coarsest level is inside of all */
    for (int i = 0; i < POINTS; i++) p.in[i][2] = (float)(i % 5) * 0.5F;
    launch("t2d_level", object, p.in, out);
    for (int i = 0; i < POINTS; i++) {
        int low = i % 5 / 2;
        double part = i % 5 % 2 * 0.5;
        for (int c = 0; c < CHANNELS; c++) {
            double want = 0;
            for (int n = 0; n < 2 && low + n < 3; n++) {
                const double at[3] = {(double)p.in[i][0] * v[low + n].size[0],
                                      (double)p.in[i][1] * v[low + n].size[1]};
                want += (n ? part : 1 - part) * sampled(&v[low + n], &s, at, 0, c);
            }
            if (!(fabs((double)out[i][c] - want) <= worst)) worst = fabs((double)out[i][c] - want);
        }
    }
    CHECK(worst <= 2.0 / 256, "off by %g", worst);
    CHECK_INT(cu.cuTexObjectDestroy(object), 0);
    CHECK_INT(cu.cuMipmappedArrayDestroy(mipmapped), 0);
}

static bool same_bytes(const void *a, const void *b, size_t bytes)
{
    return !memcmp(a, b, bytes);
}

static void test_surface(void)
{
    static struct volume v;
    static int in[POINTS][CHANNELS], out[POINTS][CHANNELS], after[EDGE * EDGE][CHANNELS];
    hewn_cu_array array;
    hewn_cu_resource_desc r = {.type = HEWN_CU_RESOURCE_ARRAY};
    hewn_cu_memcpy2d back = {.src_type = HEWN_CU_MEMORY_ARRAY,
                             .dst_type = HEWN_CU_MEMORY_HOST,
                             .dst_host = after,
                             .dst_pitch = sizeof after / EDGE,
                             .width = sizeof after / EDGE,
                             .height = EDGE};
    uint64_t object = 0;
    int wrong = 0, word;

    fill_volume(&v, EDGE, EDGE, 1);
    array = new_array(&v, 2, HEWN_CU_ARRAY_SURFACE);
    r.of.array = back.src_array = array;
    CHECK_INT(cu.cuSurfObjectCreate(&object, &r), 0);
    for (int i = 0; i < POINTS; i++) { /* each texel by one thread, the rest inside too */
        in[i][0] = i % EDGE * 16;
        in[i][1] = i / EDGE % EDGE;
    }
    launch("edges", object, in, out);
    memcpy(&word, texel(&v, EDGE - 1, 0, 0) + 3, sizeof word);
    CHECK_INT(out[0][0], 0);
    CHECK_INT(out[0][1], word);
    CHECK_INT(cu.cuMemcpy2D_v2(&back), 0);
    CHECK(same_bytes(after, v.texel, sizeof after), "a store outside of the surface changed it");
    for (int i = 0; i < POINTS;
         i++) { /* one thread stores a texel, the others beside the surface */
        in[i][2] = i;
        in[i][3] = i < EDGE * EDGE ? in[i][0] : -16;
    }
    launch("add_one", object, in, out);
    CHECK_INT(cu.cuMemcpy2D_v2(&back), 0);
    for (int i = 0; i < EDGE * EDGE; i++) {
        memcpy(&word, &v.texel[i][0], sizeof word);
        wrong += after[i][0] != word + i || !same_bytes(&after[i][1], &v.texel[i][1], 12);
    }
    CHECK_INT(wrong, 0);
    CHECK_INT(cu.cuSurfObjectDestroy(object), 0);
    CHECK_INT(cu.cuArrayDestroy(array), 0);
}

static void test_refusals(void)
{
    hewn_cu_array array = NULL;
    hewn_cu_array3d_desc d = {.width = 4, .height = 4, .format = HEWN_CU_FORMAT_S32, .channels = 1};
    hewn_cu_resource_desc r = {.type = HEWN_CU_RESOURCE_ARRAY};
    hewn_cu_texture_desc t = {.filter = 1};
    uint64_t object = 0;

    CHECK_INT(cu.cuArray3DCreate_v2(&array, NULL), HEWN_CU_INVALID_VALUE);
    d.channels = 3;
    CHECK_INT(cu.cuArray3DCreate_v2(&array, &d), HEWN_CU_INVALID_VALUE);
    d.channels = 1;
    CHECK_INT(cu.cuArray3DCreate_v2(&array, &d), 0);
    r.of.array = array;
    CHECK_INT(cu.cuTexObjectCreate(&object, &r, NULL, NULL), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuTexObjectCreate(&object, &r, &t, NULL), 0); /* even a filter of integers */
    CHECK_INT(cu.cuTexObjectDestroy(object), 0);
    if (simulated) CHECK_INT(cu.cuTexObjectDestroy(object), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuSurfObjectCreate(&object, &r), 0);
    if (simulated) CHECK_INT(cu.cuTexObjectDestroy(object), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuArrayDestroy(array), 0);
}

int main(int argc, char **argv)
{
    if (!driver_begin("driver_texture", argc, argv)) return test_end();
    if (!load_kernels()) return test_end();
    if (test_case("one dimension")) test_plain("t1d", 1);
    if (test_case("one dimension with a border in the other")) test_edge_row();
    if (test_case("two dimensions")) test_plain("t2d", 2);
    if (test_case("three dimensions")) test_plain("t3d", 3);
    if (test_case("layers of one dimension")) test_layers("a1d", 1);
    if (test_case("layers of two dimensions")) test_layers("a2d", 2);
    if (test_case("cube maps")) test_cube();
    if (test_case("gathers")) test_gather();
    if (test_case("pitched and linear memory, bytes")) test_memory();
    if (test_case("written in the launch that fetches")) test_stale();
    if (test_case("levels")) test_levels();
    if (test_case("surfaces")) test_surface();
    if (test_case("a surface read in the launch that writes it")) test_surface_again();
    if (test_case("what is refused")) test_refusals();
    cu.cuDevicePrimaryCtxRelease_v2(0);
    return test_end();
}
