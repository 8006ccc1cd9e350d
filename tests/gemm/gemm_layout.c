/* How the cases of tests/gemm lay their matrices out, and what they ask for behind the sums. */
#include "gemm_cases.h"

int64_t gemm_round_up(int64_t x, int64_t unit)
{
    return (x + unit - 1) / unit * unit;
}

/* Leading dimension: rows padded to 16 bytes, then by `extra` more such units. */
static int64_t leading(int64_t cols, int dtype, int64_t extra)
{
    int64_t unit = 16 / (int64_t)hewn_dtype_size(dtype);
    return gemm_round_up(cols, unit) + extra * unit;
}

void gemm_set_layout(hewn_gemm_desc *s, int64_t pad_a, int64_t pad_b, int64_t pad_d)
{
    s->struct_size = sizeof *s;
    int mn_a = s->major_a == HEWN_MAJOR_MN, mn_b = s->major_b == HEWN_MAJOR_MN;
    s->lda = leading(mn_a ? s->m : s->k, s->in, pad_a);
    s->ldb = leading(mn_b ? s->n : s->k, s->in, pad_b);
    s->ldd = leading(s->n, s->out, pad_d);
    if (s->batch < 1) s->batch = 1;
    s->stride_a = s->lda * (mn_a ? s->k : s->m);
    s->stride_b = s->ldb * (mn_b ? s->k : s->n);
    s->stride_d = s->ldd * s->m;
}

/* What comes after the sums: most of hewn.h's formula alone, some of it together, all of it. */
static const struct finish {
    const char *name;
    uint32_t with;
    int act;
    float alpha, beta;
    bool bias_f32, in_place, one_c;
} finishes[] = {
    {"", 0, HEWN_ACT_NONE, 1, 0, false, false, false},
    {"alpha", 0, HEWN_ACT_NONE, -1.5F, 0, false, false, false},
    {"scales", HEWN_GEMM_WITH_SCALE_A | HEWN_GEMM_WITH_SCALE_B, HEWN_ACT_NONE, 1, 0, false, false,
     false},
    {"one scale, alpha", HEWN_GEMM_WITH_SCALE_B, HEWN_ACT_NONE, 0.3F, 0, false, false, false},
    {"C", HEWN_GEMM_WITH_C, HEWN_ACT_NONE, 1, 0.7F, false, false, false},
    {"C in place", HEWN_GEMM_WITH_C, HEWN_ACT_NONE, 1.25F, -1, false, true, false},
    {"C unread", HEWN_GEMM_WITH_C, HEWN_ACT_NONE, 1, 0, false, false, false},
    {"bias f32", HEWN_GEMM_WITH_BIAS, HEWN_ACT_NONE, 1, 0, true, false, false},
    {"bias", HEWN_GEMM_WITH_BIAS, HEWN_ACT_NONE, 1, 0, false, false, false},
    {"relu", 0, HEWN_ACT_RELU, 1, 0, false, false, false},
    {"gelu", 0, HEWN_ACT_GELU, 0.1F, 0, false, false, false},
    {"silu, one C", HEWN_GEMM_WITH_C, HEWN_ACT_SILU, 1, 2, false, false, true},
    {"all, relu", 15, HEWN_ACT_RELU, -2, 0.5F, true, false, false},
    {"all in place, gelu", 15, HEWN_ACT_GELU, 0.2F, 1, false, true, false},
    {"all, silu", 15, HEWN_ACT_SILU, 0.5F, -0.25F, true, false, false},
};
_Static_assert(sizeof finishes / sizeof finishes[0] == FINISHES, "one number for each");

/* The layout must be set. */
void gemm_set_finish(struct gemm_case *g, int index, int64_t pad_c)
{
    const struct finish *f = &finishes[index];
    hewn_gemm_desc *s = &g->desc;
    g->finish = f->name;
    g->alpha = f->alpha, g->beta = f->beta;
    g->scale_a = 0.75F, g->scale_b = -3.3F;
    g->in_place = f->in_place;
    s->with = f->with | (f->alpha != 1 ? HEWN_GEMM_WITH_ALPHA : 0U);
    s->act = f->act;
    s->bias_type = f->bias_f32 ? HEWN_F32 : s->out;
    if (!(f->with & HEWN_GEMM_WITH_C)) return;
    s->ldc = f->in_place ? s->ldd : leading(s->n, s->out, pad_c);
    s->stride_c = f->in_place ? s->stride_d : f->one_c ? 0 : s->ldc * s->m;
}

const int gemm_out_types[] = {HEWN_F32, HEWN_BF16, HEWN_F16};
