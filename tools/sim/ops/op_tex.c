/*
 * tex, tld4, txq, suld, sust, suq (PTX ISA "Texture Instructions", "Surface Instructions"): unified mode, handles in
 * 64-bit registers. Cube maps are seamed; anisotropy counts as none. A texel is read as plain global memory, so one
 * that the same launch writes is a race, as on hardware, where the texture cache may hold what was there before.
 */
#include "machine/lanes.h"
#include "machine/mem.h"
#include "ops/access.h"
#include "ops/texture.h"

#include <math.h>
#include <string.h>

enum { DEST = 4 }; /* channels that come first in insn.list */

/* insn.aux of tex and tld4. */
struct tex_form {
    uint8_t
        shape; /* enum texture_shape as the instruction's geometry has it; TEXTURE_1D for linear memory too */
    uint8_t coords; /* 32-bit coordinates behind a layer */
    bool layered;   /* the first coordinate is a layer */
    bool integers;  /* coordinates are .s32 */
    bool floats;    /* the result is .f32 */
    bool level;     /* lod in arg 2 */
    uint8_t slopes,
        slope_width; /* .grad: where its two lists begin in insn.list, elements of each */
    uint8_t gather;  /* tld4: 1 + channel; 0: tex */
};

struct geometry {
    const char *name;
    uint8_t shape, coords, width; /* width: elements of the coordinate list */
    bool layered;
};
static const struct geometry geometries[] = {
    {"1d", TEXTURE_1D, 1, 1, false},
    {"2d", TEXTURE_2D, 2, 2, false},
    {"3d", TEXTURE_3D, 3, 4, false},
    {"a1d", TEXTURE_1D_LAYERED, 1, 2, true},
    {"a2d", TEXTURE_2D_LAYERED, 2, 4, true},
    {"cube", TEXTURE_CUBE, 3, 4, false},
    {"acube", TEXTURE_CUBE_LAYERED, 3, 4, true},
};

static const struct geometry *geometry_of(const struct decoder *dc)
{
    for (size_t i = 0; i < sizeof geometries / sizeof geometries[0]; i++)
        if (mod_has(dc, geometries[i].name)) return &geometries[i];
    return NULL;
}

/* ---- looking a handle up ---- */

static const struct texture *bound(struct warp *w, const struct insn *in, struct arg handle,
                                   uint32_t lane, bool surface, uint32_t shape)
{
    uint64_t value = arg_lane(w, handle, lane);
    const struct texture *t = texture_get(value);

    if (!t || t->surface != surface) {
        sim_fault(w, in, lane, 719, FIND_OOB, CAUSE_NONE, "", "0x%llx is no %s object",
                  (unsigned long long)value, surface ? "surface" : "texture");
        return NULL;
    }
    if (t->shape == shape || (t->shape == TEXTURE_LINEAR && shape == TEXTURE_1D)) return t;
    sim_fault(w, in, lane, 719, FIND_OOB, CAUSE_NONE, "",
              "the %s object's geometry is not the instruction's", surface ? "surface" : "texture");
    return NULL;
}

/* ---- tex ---- */

static float lane_float(const struct warp *w, struct arg a, uint32_t lane)
{
    uint32_t word = (uint32_t)arg_lane(w, a, lane);
    float f;

    memcpy(&f, &word, sizeof f);
    return f;
}

/* One lane's fetch. */
struct fetch {
    struct warp *w;
    const struct insn *in;
    const struct tex_form *form;
    const struct texture *t;
    uint32_t lane;
    float at[TEXTURE_DIMS], lod;
    uint32_t layer;    /* counts a cube's faces too */
    float sum[4];      /* of the texels read, times their weights */
    uint32_t words[4]; /* the last texel read */
    uint64_t texel;    /* its address, or 0: so far only the border was read */
};

/* Programming Guide, "Texture Object API": how far neighbouring pixels lie apart, in texels. */
static float lod_of(const struct fetch *f)
{
    const struct tex_form *form = f->form;
    float longest = 0;

    for (uint32_t list = 0; list < 2; list++) {
        const struct arg *slopes = &f->in->list[form->slopes + list * form->slope_width];
        float square = 0;
        for (uint32_t d = 0; d < form->coords; d++) {
            float slope = lane_float(f->w, slopes[d], f->lane);
            slope *= f->t->normalized ? (float)f->t->level[0].size[d] : 1.0F;
            square += slope * slope;
        }
        if (square > longest) longest = square;
    }
    return longest > 0 ? 0.5F * log2f(longest) : -126.0F;
}

static float coordinate(const struct fetch *f, struct arg a)
{
    return f->form->integers ? (float)(int32_t)arg_lane(f->w, a, f->lane)
                             : lane_float(f->w, a, f->lane);
}

static void read_coordinates(struct fetch *f)
{
    const struct texture *t = f->t;
    const struct arg *c = &f->in->list[DEST];
    float face[2];

    if (f->form->layered) {
        uint32_t layer = (uint32_t)arg_lane(f->w, *c++, f->lane);
        f->layer = layer < t->layers ? layer : t->layers - 1;
    }
    for (uint32_t d = 0; d < f->form->coords; d++) f->at[d] = coordinate(f, c[d]);
    if (f->form->level) f->lod = coordinate(f, f->in->arg[2]);
    if (f->form->slopes) f->lod = lod_of(f);
    if (t->shape == TEXTURE_CUBE || t->shape == TEXTURE_CUBE_LAYERED) {
        f->layer = f->layer * CUBE_FACES + texture_face(f->at, face);
        memcpy(f->at, face, sizeof face);
    }
}

static bool add_texel(struct fetch *f, uint32_t level, const int32_t at[TEXTURE_DIMS], float weight)
{
    uint64_t address;

    if (texture_place(f->t, level, at, f->layer, &address)) {
        const void *texel = mem_global(f->w, f->in, f->lane, address, texel_bytes(&f->t->format),
                                       ACCESS_READ, "a texel");
        if (!texel) return false;
        texture_unpack(f->t, texel, f->words);
        f->texel = address;
    } else {
        texture_border(f->t, f->words);
    }
    for (uint32_t c = 0; c < 4 && texture_floats(f->t); c++) {
        float v;
        memcpy(&v, &f->words[c], sizeof v);
        f->sum[c] += weight * v;
    }
    return true;
}

static bool sample_level(struct fetch *f, uint32_t level, float weight)
{
    struct texture_taps taps;

    texture_taps(f->t, level, f->at, &taps);
    for (uint32_t i = 0; i < taps.count; i++)
        if (!add_texel(f, level, taps.at[i], weight * taps.weight[i])) return false;
    return true;
}

/* Which levels a fetch reads, and how much of the second. */
static void choose_levels(const struct texture *t, float lod, uint32_t level[2], float *second)
{
    float most = (float)(t->levels - 1);

    lod += t->bias;
    if (lod < t->least_level) lod = t->least_level;
    if (t->levels > 1 && lod > t->most_level) lod = t->most_level;
    if (!(lod > 0)) lod = 0;
    if (lod > most) lod = most;
    level[0] = (uint32_t)(t->linear_levels ? floorf(lod) : floorf(lod + 0.5F));
    level[1] = level[0] + 1 < t->levels ? level[0] + 1 : level[0];
    *second = t->linear_levels ? floorf((lod - floorf(lod)) * 256.0F + 0.5F) / 256.0F : 0.0F;
}

static bool sample(struct fetch *f, uint32_t out[4])
{
    float second;
    uint32_t level[2];

    choose_levels(f->t, f->lod, level, &second);
    if (!sample_level(f, level[0], 1.0F - second)) return false;
    if (second > 0 && !sample_level(f, level[1], second)) return false;
    memcpy(out, f->t->linear || second > 0 ? (const void *)f->sum : f->words, sizeof f->sum);
    return true;
}

/* One channel of the four texels that the linear filter would mix, counter-clockwise from the one
 * with the least x and the most y. */
static bool gather(struct fetch *f, uint32_t out[4])
{
    static const uint8_t order[4] = {2, 3, 1, 0}; /* taps: bit 0 is x, bit 1 y */
    struct texture filtered = *f->t;
    struct texture_taps taps;

    filtered.linear = true;
    texture_taps(&filtered, 0, f->at, &taps);
    for (uint32_t i = 0; i < 4; i++) {
        if (!add_texel(f, 0, taps.at[order[i]], 0)) return false;
        out[i] = f->words[f->form->gather - 1];
    }
    return true;
}

static enum step exec_tex(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct tex_form *form = in->aux;
    uint32_t result[WARP_LANES][4], texels = 0, bytes = 0;
    uint64_t address[WARP_LANES] = {0};

    for (uint32_t m = mask; m; m &= m - 1) {
        struct fetch f = {.w = w, .in = in, .form = form, .lane = first_lane(m)};
        f.t = bound(w, in, in->arg[1], f.lane, false, form->shape);
        if (!f.t) return STEP_FAULT;
        read_coordinates(&f);
        if (!(form->gather ? gather : sample)(&f, result[f.lane])) return STEP_FAULT;
        address[f.lane] = f.texel;
        if (f.texel) texels |= 1U << f.lane;
        bytes = texel_bytes(&f.t->format);
    }
    for (uint32_t m = mask; m; m &= m - 1)
        for (uint32_t c = 0; c < DEST; c++)
            arg_set_lane(w, in->list[c], first_lane(m), result[first_lane(m)][c]);
    if (texels && w->cta->group->observer)
        access_tell(w, in, texels, SPACE_GLOBAL, address, bytes, ACCESS_READ);
    return STEP_NEXT;
}

static int bind_form(struct decoder *dc, struct insn *out, struct tex_form form)
{
    const struct geometry *g = geometry_of(dc);
    struct tex_form *kept = bind_alloc(dc, sizeof *kept);
    uint32_t elements = DEST + g->width + (form.level ? 1U : 0U);

    if (!kept) return -1;
    if (dc->src->operands[1].items[0].kind == OPD_VAR)
        return bind_unsupported(dc, "texture references");
    form.shape = g->shape;
    form.coords = g->coords;
    form.layered = g->layered;
    form.integers = out->type2 == T_S32;
    if (form.slopes) {
        form.slopes = (uint8_t)elements;
        form.slope_width = g->coords == 3 ? 4 : g->coords;
        elements += 2U * form.slope_width;
    }
    if (out->list_count != elements)
        return bind_invalid(dc, "%u registers in braces where .%s takes %u", out->list_count,
                            g->name, elements);
    if (form.integers && (g->shape == TEXTURE_CUBE || g->shape == TEXTURE_CUBE_LAYERED))
        return bind_invalid(dc, ".%s takes coordinates of .f32", g->name);
    *kept = form;
    out->aux = kept;
    out->fn = exec_tex;
    return 0;
}

int bind_tex(struct decoder *dc, struct insn *out)
{
    return bind_form(
        dc, out, (struct tex_form){.level = mod_has(dc, "level"), .slopes = mod_has(dc, "grad")});
}

int bind_tld4(struct decoder *dc, struct insn *out)
{
    static const char channels[] = "rgba";
    const char *which = strchr(channels, dc->mod[0][0]);

    return bind_form(dc, out, (struct tex_form){.gather = (uint8_t)(1 + (which - channels))});
}

/* ---- surfaces: x counts bytes ---- */

enum surface_edge { EDGE_TRAP, EDGE_CLAMP, EDGE_ZERO };

struct surface_form {
    uint8_t shape, coords, edge; /* enum surface_edge */
    bool layered, store;
    uint32_t bytes, elements; /* of an element, and how many */
    uint32_t first;           /* of the coordinates in insn.list */
};

/* The address of a lane's texel in *address; 0 outside (zero), -1 after a fault. */
static int surface_place(struct warp *w, const struct insn *in, const struct surface_form *form,
                         uint32_t lane, uint64_t *address)
{
    const struct texture *t = bound(w, in, in->arg[form->store ? 0 : 1], lane, true, form->shape);
    const struct arg *c = &in->list[form->first];
    const struct texture_level *l;
    uint32_t layer = 0, bytes = form->bytes * form->elements;
    int64_t at[TEXTURE_DIMS] = {0, 0, 0};
    bool outside = false;

    if (!t) return -1;
    l = &t->level[0];
    if (form->layered) {
        layer = (uint32_t)arg_lane(w, *c++, lane);
        outside = layer >= t->layers * (t->shape == TEXTURE_CUBE_LAYERED ? CUBE_FACES : 1U);
    }
    for (uint32_t d = 0; d < form->coords; d++) {
        int64_t size = d ? (int64_t)l->size[d] : (int64_t)l->size[0] * texel_bytes(&t->format),
                most;
        at[d] = (int32_t)arg_lane(w, c[d], lane);
        most = size - (d ? 1 : (int64_t)bytes);
        if (t->shape == TEXTURE_CUBE && d == 2) most = CUBE_FACES - 1;
        if (at[d] >= 0 && at[d] <= most) continue;
        outside = true;
        at[d] = at[d] < 0 || most < 0 ? 0 : most;
    }
    if (outside && form->edge == EDGE_ZERO) return 0;
    if (outside && form->edge == EDGE_TRAP) {
        sim_fault(w, in, lane, 719, FIND_OOB, CAUSE_NONE, "",
                  "the coordinates lie outside of the surface");
        return -1;
    }
    if (layer >= t->layers) layer = t->layers - 1;
    *address = l->address + (uint64_t)at[0] + (uint64_t)at[1] * l->row +
               ((uint64_t)at[2] + layer) * l->slice;
    if (*address % form->bytes == 0) return 1;
    sim_fault(w, in, lane, 716, FIND_MISALIGNED, CAUSE_NONE, "",
              "x is %lld, no multiple of the %u bytes of an element", (long long)at[0],
              form->bytes);
    return -1;
}

static enum step exec_surface(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct surface_form *form = in->aux;
    uint32_t bytes = form->bytes * form->elements, inside = 0, data;
    uint64_t address[WARP_LANES] = {0};

    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t lane = first_lane(m);
        uint64_t element = 0;
        uint8_t *host = NULL;
        int where = surface_place(w, in, form, lane, &address[lane]);
        if (where < 0) return STEP_FAULT;
        if (where) {
            inside |= 1U << lane;
            host = mem_global(w, in, lane, address[lane], bytes,
                              form->store ? ACCESS_WRITE : ACCESS_READ, "a texel");
            if (!host) return STEP_FAULT;
        }
        data = form->store ? in->list_count - form->elements : 0;
        for (uint32_t e = 0; e < form->elements; e++) {
            if (form->store && host) {
                element = arg_lane(w, in->list[data + e], lane);
                memcpy(host + e * form->bytes, &element, form->bytes);
            } else if (!form->store) {
                element = 0;
                if (host) memcpy(&element, host + e * form->bytes, form->bytes);
                arg_set_lane(w, in->list[data + e], lane, element);
            }
        }
    }
    if (inside && form->store) access_changed(w->cta->group);
    if (inside && w->cta->group->observer)
        access_tell(w, in, inside, SPACE_GLOBAL, address, bytes,
                    form->store ? ACCESS_WRITE : ACCESS_READ);
    return STEP_NEXT;
}

static int bind_surface(struct decoder *dc, struct insn *out, bool store)
{
    const struct geometry *g = geometry_of(dc);
    struct surface_form *form = bind_alloc(dc, sizeof *form);
    uint32_t elements = mod_has(dc, "v2") ? 2 : mod_has(dc, "v4") ? 4 : 1;

    if (!form) return -1;
    if (dc->src->operands[store ? 0 : 1].items[0].kind == OPD_VAR)
        return bind_unsupported(dc, "surface references");
    if (out->list_count != g->width + elements)
        return bind_invalid(dc, "%u registers in braces where .%s takes %u", out->list_count,
                            g->name, g->width + elements);
    *form = (struct surface_form){.shape = g->shape,
                                  .coords = g->coords,
                                  .layered = g->layered,
                                  .store = store,
                                  .edge = mod_has(dc, "zero")    ? EDGE_ZERO
                                          : mod_has(dc, "clamp") ? EDGE_CLAMP
                                                                 : EDGE_TRAP,
                                  .bytes = ptx_type_bits(out->type) / 8U,
                                  .elements = elements,
                                  .first = store ? 0 : elements};
    out->aux = form;
    out->fn = exec_surface;
    return 0;
}

int bind_suld(struct decoder *dc, struct insn *out)
{
    return bind_surface(dc, out, false);
}

int bind_sust(struct decoder *dc, struct insn *out)
{
    return bind_surface(dc, out, true);
}

/* ---- queries ---- */

enum query {
    QUERY_WIDTH,
    QUERY_HEIGHT,
    QUERY_DEPTH,
    QUERY_LAYERS,
    QUERY_LEVELS,
    QUERY_SAMPLES,
    QUERY_NORMALIZED
};

static uint32_t answer(const struct texture *t, enum query query, uint32_t level)
{
    const struct texture_level *l = &t->level[level < t->levels ? level : 0];
    uint32_t dims = texture_dims(t);

    switch (query) {
    case QUERY_WIDTH: return l->size[0];
    case QUERY_HEIGHT: return dims > 1 ? l->size[1] : 0;
    case QUERY_DEPTH: return dims > 2 ? l->size[2] : 0;
    case QUERY_LAYERS: return t->layers;
    case QUERY_LEVELS: return t->levels;
    case QUERY_SAMPLES: return 1;
    default: return t->normalized;
    }
}

static enum step exec_query(struct warp *w, const struct insn *in, uint32_t mask)
{
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t lane = first_lane(m),
                 level = in->arg[2].sink ? 0 : (uint32_t)arg_lane(w, in->arg[2], lane);
        uint64_t handle = arg_lane(w, in->arg[1], lane);
        const struct texture *t = texture_get(handle);
        if (!t)
            return sim_fault(w, in, lane, 719, FIND_OOB, CAUSE_NONE, "",
                             "0x%llx is no texture or surface object", (unsigned long long)handle);
        arg_set_lane(w, in->arg[0], lane, answer(t, (enum query)in->flags, level));
    }
    return STEP_NEXT;
}

int bind_txq(struct decoder *dc, struct insn *out)
{
    static const char *const names[] = {
        "width",       "height",           "depth", "array_size", "num_mipmap_levels",
        "num_samples", "normalized_coords"};

    out->fn = exec_query;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (mod_has(dc, names[i])) out->flags = (uint16_t)i;
    return 0;
}
