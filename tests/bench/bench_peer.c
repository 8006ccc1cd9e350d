#include "bench_peer.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Values and layouts of cublasLt.h, 12.x and 13.x. */
enum {
    CUDA_F32 = 0,
    CUDA_BF16 = 14,
    COMPUTE_32F = 68,
    CUDA_E4M3 = 28,
    CUDA_S8 = 3,
    CUDA_S32 = 10,
    COMPUTE_32I = 72,
    SCALE_EACH = 3, /* CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F */
    DESC_A_SCALE_MODE = 31,
    DESC_B_SCALE_MODE = 32,
    DESC_TRANSA = 3,
    DESC_A_SCALE = 17,
    DESC_B_SCALE = 18,
    DESC_FAST = 25,
    PREFERENCE_WORKSPACE = 1,
    OP_T = 1,
    CONFIG_TILE = 1,
    CONFIG_SPLITS = 2,
    CONFIG_CLUSTER = 8,
    ALGORITHMS = 32,
    WORKSPACE = 32 << 20
};

struct heuristic { /* cublasLtMatmulHeuristicResult_t */
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};

static struct {
    int (*create)(void **);
    int (*layout_create)(void **, int type, uint64_t rows, uint64_t cols, int64_t ld);
    int (*layout_destroy)(void *);
    int (*desc_create)(void **, int compute, int scale);
    int (*desc_set)(void *, int attribute, const void *, size_t);
    int (*desc_destroy)(void *);
    int (*preference_create)(void **);
    int (*preference_set)(void *, int attribute, const void *, size_t);
    int (*preference_destroy)(void *);
    int (*heuristic)(void *, void *desc, void *a, void *b, void *c, void *d, void *preference,
                     int asked, struct heuristic *, int *found);
    int (*matmul)(void *, void *desc, const void *alpha, const void *a, void *, const void *b,
                  void *, const void *beta, const void *c, void *, void *d, void *,
                  const void *algorithm, void *workspace, size_t, void *stream);
    int (*config)(const void *algorithm, int attribute, void *value, size_t, size_t *written);
    size_t (*version)(void);
    void *handle, *workspace;
} lt;

struct peer_product {
    void *desc, *a, *b, *d;
    bool s8;
    struct heuristic algorithms[ALGORITHMS];
    int count;
};

static bool resolve(void *library, const char *name, void *slot)
{
    void *symbol = dlsym(library, name);
    memcpy(slot, &symbol, sizeof symbol);
    return symbol != NULL;
}

static void *pointer(hewn_deviceptr at)
{
    void *p;
    memcpy(&p, &at, sizeof p);
    return p;
}

bool peer_open(struct device *dev)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
    void *library = NULL;
    hewn_deviceptr workspace = 0;
    for (size_t i = 0; i < 3 && !library; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    if (!resolve(library, "cublasLtCreate", &lt.create) ||
        !resolve(library, "cublasLtMatrixLayoutCreate", &lt.layout_create) ||
        !resolve(library, "cublasLtMatrixLayoutDestroy", &lt.layout_destroy) ||
        !resolve(library, "cublasLtMatmulDescCreate", &lt.desc_create) ||
        !resolve(library, "cublasLtMatmulDescSetAttribute", &lt.desc_set) ||
        !resolve(library, "cublasLtMatmulDescDestroy", &lt.desc_destroy) ||
        !resolve(library, "cublasLtMatmulPreferenceCreate", &lt.preference_create) ||
        !resolve(library, "cublasLtMatmulPreferenceSetAttribute", &lt.preference_set) ||
        !resolve(library, "cublasLtMatmulPreferenceDestroy", &lt.preference_destroy) ||
        !resolve(library, "cublasLtMatmulAlgoGetHeuristic", &lt.heuristic) ||
        !resolve(library, "cublasLtMatmulAlgoConfigGetAttribute", &lt.config) ||
        !resolve(library, "cublasLtGetVersion", &lt.version) ||
        !resolve(library, "cublasLtMatmul", &lt.matmul))
        return false;
    if (lt.create(&lt.handle) || dev->mem_alloc(&workspace, WORKSPACE)) return false;
    lt.workspace = pointer(workspace);
    return true;
}

size_t peer_version(void)
{
    return lt.version ? lt.version() : 0;
}

/* What the library calls A is our B. */
static bool set_form(struct peer_product *p, const struct peer_form *form)
{
    int transposed = OP_T;
    signed char fast = form->fast;
    void *a = pointer(form->scale_b), *b = pointer(form->scale_a);
    int each = SCALE_EACH;
    p->s8 = form->s8;
    if (lt.desc_create(&p->desc, form->s8 ? COMPUTE_32I : COMPUTE_32F,
                       form->s8 ? CUDA_S32 : CUDA_F32) ||
        lt.desc_set(p->desc, DESC_TRANSA, &transposed, sizeof transposed))
        return false;
    if (form->vectors && (lt.desc_set(p->desc, DESC_A_SCALE_MODE, &each, sizeof each) ||
                          lt.desc_set(p->desc, DESC_B_SCALE_MODE, &each, sizeof each)))
        return false;
    return !form->e4m3 || (!lt.desc_set(p->desc, DESC_FAST, &fast, sizeof fast) &&
                           !lt.desc_set(p->desc, DESC_A_SCALE, &a, sizeof a) &&
                           !lt.desc_set(p->desc, DESC_B_SCALE, &b, sizeof b));
}

/* The library is column-major: D^T (n x m) = (B as k x n, transposed) times (A as k x m). */
static bool set_layouts(struct peer_product *p, const struct peer_form *form)
{
    uint64_t m = (uint64_t)form->m, n = (uint64_t)form->n, k = (uint64_t)form->k;
    int in = form->e4m3 ? CUDA_E4M3 : form->s8 ? CUDA_S8 : CUDA_BF16;
    return !lt.layout_create(&p->a, in, k, m, form->lda ? form->lda : form->k) &&
           !lt.layout_create(&p->b, in, k, n, form->ldb ? form->ldb : form->k) &&
           !lt.layout_create(&p->d, form->s8 ? CUDA_S32 : CUDA_BF16, n, m,
                             form->ldd ? form->ldd : form->n);
}

struct peer_product *peer_product_new(const struct peer_form *form)
{
    struct peer_product *p = calloc(1, sizeof *p);
    size_t workspace = WORKSPACE;
    void *preference = NULL;
    bool ok = p && set_form(p, form) && set_layouts(p, form) &&
              !lt.preference_create(&preference) &&
              !lt.preference_set(preference, PREFERENCE_WORKSPACE, &workspace, sizeof workspace) &&
              !lt.heuristic(lt.handle, p->desc, p->b, p->a, p->d, p->d, preference, ALGORITHMS,
                            p->algorithms, &p->count) &&
              p->count > 0;
    if (preference) lt.preference_destroy(preference);
    if (ok) return p;
    peer_product_free(p);
    return NULL;
}

void peer_product_free(struct peer_product *p)
{
    if (!p) return;
    if (p->a) lt.layout_destroy(p->a);
    if (p->b) lt.layout_destroy(p->b);
    if (p->d) lt.layout_destroy(p->d);
    if (p->desc) lt.desc_destroy(p->desc);
    free(p);
}

int peer_algorithms(const struct peer_product *p)
{
    return p->count;
}

/* An attribute of the type that the library gives it: a cluster's shape has 16 bits. */
static unsigned config(const struct peer_product *p, int algorithm, int attribute)
{
    uint32_t value = 0;
    size_t size = attribute == CONFIG_CLUSTER ? sizeof(uint16_t) : sizeof value, written;
    const struct heuristic *h = &p->algorithms[algorithm];
    return lt.config(h->algorithm, attribute, &value, size, &written) ? 0 : value;
}

struct peer_config peer_config(const struct peer_product *p, int algorithm)
{
    return (struct peer_config){.tile = config(p, algorithm, CONFIG_TILE),
                                .cluster = config(p, algorithm, CONFIG_CLUSTER),
                                .splits = config(p, algorithm, CONFIG_SPLITS)};
}

int peer_launch(const struct peer_product *p, int algorithm, hewn_deviceptr a, hewn_deviceptr b,
                hewn_deviceptr d, void *stream)
{
    const struct heuristic *h = &p->algorithms[algorithm];
    float one = 1, zero = 0;
    int integer_one = 1; /* 0 has the same bits in both */
    if (h->state) return h->state;
    return lt.matmul(lt.handle, p->desc, p->s8 ? (void *)&integer_one : (void *)&one, pointer(b),
                     p->b, pointer(a), p->a, &zero, pointer(d), p->d, pointer(d), p->d,
                     h->algorithm, lt.workspace, WORKSPACE, stream);
}
