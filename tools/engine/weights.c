#include "weights.h"
#include "json.h"

#include "hewn.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The format's own limit of a header, and of the files that an index may name. */
enum { LENGTH_BYTES = 8, HEADER_MAX = 100000000, FILES_MAX = 4096 };
enum { SCALE_BLOCK = 128, NAME_MAX_SCALE = 512 };

struct file {
    char *path;
    unsigned char *map;
    size_t size;
    struct json_document *header; /* holds the names of the tensors */
};

struct weights {
    struct file *files;
    size_t file_count;
    struct tensor *tensors; /* by name */
    size_t count, capacity;
};

static const struct {
    const char *name;
    unsigned bytes;
    int dtype; /* hewn_dtype, or -1 */
} dtypes[] = {
    {"F32", 4, HEWN_F32},   {"F16", 2, HEWN_F16},
    {"BF16", 2, HEWN_BF16}, {"F64", 8, -1},
    {"I64", 8, -1},         {"U64", 8, -1},
    {"I32", 4, -1},         {"U32", 4, -1},
    {"I16", 2, -1},         {"U16", 2, -1},
    {"I8", 1, -1},          {"U8", 1, -1},
    {"BOOL", 1, -1},        {"F8_E4M3", 1, HEWN_E4M3},
    {"F8_E5M2", 1, -1},
};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

static struct tensor *new_tensor(struct weights *w)
{
    if (w->count == w->capacity) {
        const size_t wanted = w->capacity ? 2 * w->capacity : 64;
        struct tensor *grown = realloc(w->tensors, wanted * sizeof *grown);
        if (!grown) return NULL;
        w->tensors = grown;
        w->capacity = wanted;
    }
    return &w->tensors[w->count++];
}

/* shape: sizes whose product, times the element's, is the tensor's bytes. */
static int take_shape(struct tensor *t, const struct json *shape, unsigned element,
                      struct problem *p)
{
    uint64_t bytes = element;
    if (!shape || shape->type != JSON_ARRAY)
        return problem(p, "%s: tensor '%s': shape is %s, not an array", t->file, t->name,
                       json_type_name(shape));
    for (const struct json *e = shape->in; e; e = e->next) {
        int64_t size;
        if (!json_whole(e, &size) || size < 0)
            return problem(p, "%s: tensor '%s': shape[%d] is no whole number from 0 on", t->file,
                           t->name, t->rank);
        if (size > 0 && bytes > (UINT64_C(1) << 62) / (uint64_t)size)
            return problem(p, "%s: tensor '%s': its shape has more than 2^62 bytes", t->file,
                           t->name);
        bytes *= (uint64_t)size;
        if (t->rank < TENSOR_RANK) t->dim[t->rank] = size;
        t->rank++;
    }
    if (bytes != t->bytes)
        return problem(p, "%s: tensor '%s': %s of its shape is %llu bytes, data_offsets say %zu",
                       t->file, t->name, t->dtype_name, (unsigned long long)bytes, t->bytes);
    return 0;
}

static int take_tensor(struct weights *w, const struct file *f, const struct json *e,
                       size_t data_at, struct problem *p)
{
    const struct json *dtype = json_get(e, "dtype"), *offsets = json_get(e, "data_offsets");
    struct tensor *t = new_tensor(w);
    int64_t begin, end;
    size_t i = 0;
    if (!t) return problem(p, "%s: no memory for its tensors", f->path);
    *t = (struct tensor){.name = e->name, .file = f->path, .dtype = -1};
    if (e->name_length != strlen(e->name))
        return problem(p, "%s: the name of tensor '%s' holds a NUL", f->path, e->name);
    if (!dtype || dtype->type != JSON_STRING)
        return problem(p, "%s: tensor '%s': dtype is %s, not a string", f->path, t->name,
                       json_type_name(dtype));
    if (!offsets || offsets->type != JSON_ARRAY || offsets->length != 2 ||
        !json_whole(offsets->in, &begin) || !json_whole(offsets->in->next, &end))
        return problem(p, "%s: tensor '%s': data_offsets are no two whole numbers", f->path,
                       t->name);
    if (begin < 0 || end < begin || (uint64_t)end > f->size - data_at)
        return problem(p, "%s: tensor '%s': data_offsets %lld to %lld, the data has %zu bytes",
                       f->path, t->name, (long long)begin, (long long)end, f->size - data_at);
    while (i < DTYPES && !json_is(dtype, dtypes[i].name)) i++;
    if (i == DTYPES)
        return problem(p, "%s: tensor '%s': dtype '%.40s' is unknown", f->path, t->name,
                       dtype->text);
    t->dtype = dtypes[i].dtype;
    t->dtype_name = dtypes[i].name;
    t->data = f->map + data_at + begin;
    t->bytes = (size_t)(end - begin);
    return take_shape(t, json_get(e, "shape"), dtypes[i].bytes, p);
}

static int by_place(const void *a, const void *b)
{
    const struct tensor *x = a, *y = b;
    if (x->data != y->data) return x->data < y->data ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* The tensors of one file cover its data without gap or overlap. */
static int check_cover(struct tensor *t, size_t count, const struct file *f, size_t data_at,
                       struct problem *p)
{
    const unsigned char *at = f->map + data_at;
    if (count) qsort(t, count, sizeof *t, by_place);
    for (size_t i = 0; i < count; at = t[i].data + t[i].bytes, i++)
        if (t[i].data != at)
            return problem(p,
                           "%s: tensor '%s' begins at byte %zu of the data, the one before it "
                           "ends at %zu",
                           f->path, t[i].name, (size_t)(t[i].data - f->map) - data_at,
                           (size_t)(at - f->map) - data_at);
    if (at != f->map + f->size)
        return problem(p, "%s: the tensors end at byte %zu of the data, which has %zu", f->path,
                       (size_t)(at - f->map) - data_at, f->size - data_at);
    return 0;
}

static int map_file(struct file *f, struct problem *p)
{
    struct stat about;
    const int fd = open(f->path, O_RDONLY | O_CLOEXEC);
    void *map;
    if (fd < 0) return problem(p, "%s: %s", f->path, strerror(errno));
    if (fstat(fd, &about) || !S_ISREG(about.st_mode)) {
        close(fd);
        return problem(p, "%s is not a regular file", f->path);
    }
    f->size = (size_t)about.st_size;
    if (f->size < LENGTH_BYTES) {
        close(fd);
        return problem(p, "%s: %zu bytes are too few for a header's length (8)", f->path, f->size);
    }
    map = mmap(NULL, f->size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (map == MAP_FAILED) return problem(p, "%s: %s", f->path, strerror(errno));
    f->map = map;
    return 0;
}

static int read_file(struct weights *w, struct file *f, struct problem *p)
{
    const size_t first = w->count;
    const struct json *root;
    uint64_t length = 0;
    if (map_file(f, p)) return -1;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--) length = length << 8 | f->map[i];
    if (length > HEADER_MAX || length > f->size - LENGTH_BYTES)
        return problem(p, "%s: the header's length is %llu, the file has %zu bytes", f->path,
                       (unsigned long long)length, f->size);
    f->header = json_read((const char *)f->map + LENGTH_BYTES, (size_t)length, f->path, p);
    root = json_root(f->header);
    if (!root) return -1;
    if (root->type != JSON_OBJECT)
        return problem(p, "%s: the header is %s, not an object", f->path, json_type_name(root));
    for (const struct json *e = root->in; e; e = e->next) {
        if (!strcmp(e->name, "__metadata__")) continue;
        if (take_tensor(w, f, e, LENGTH_BYTES + (size_t)length, p)) return -1;
    }
    return check_cover(w->tensors + first, w->count - first, f, LENGTH_BYTES + (size_t)length, p);
}

/* The path of `name` in `folder`, to be freed. */
static char *path_in(const char *folder, const char *name)
{
    const size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    if (path) snprintf(path, size, "%s/%s", folder, name);
    return path;
}

static int add_file(struct weights *w, const char *folder, const char *name, struct problem *p)
{
    struct file *f = &w->files[w->file_count];
    f->path = path_in(folder, name);
    if (!f->path) return problem(p, "%s: no memory", folder);
    w->file_count++;
    return read_file(w, f, p);
}

/* Every shard that the index's weight_map names, once. */
static int read_shards(struct weights *w, const char *folder, const char *index,
                       const struct json *root, struct problem *p)
{
    const struct json *map = json_get(root, "weight_map");
    const char *names[FILES_MAX];
    size_t count = 0;
    if (!map || map->type != JSON_OBJECT)
        return problem(p, "%s: weight_map is %s, not an object", index, json_type_name(map));
    for (const struct json *e = map->in; e; e = e->next) {
        size_t i = 0;
        if (e->type != JSON_STRING || !e->length || strlen(e->text) != e->length ||
            strchr(e->text, '/'))
            return problem(p, "%s: weight_map.%.100s does not name a file of this folder", index,
                           e->name);
        while (i < count && strcmp(names[i], e->text) != 0) i++;
        if (i == FILES_MAX) return problem(p, "%s names more than %d files", index, FILES_MAX);
        if (i == count) names[count++] = e->text;
    }
    w->files = calloc(count ? count : 1, sizeof *w->files);
    if (!w->files) return problem(p, "%s: no memory", index);
    for (size_t i = 0; i < count; i++)
        if (add_file(w, folder, names[i], p)) return -1;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct tensor *)a)->name, ((const struct tensor *)b)->name);
}

/* The index and the shards agree. */
static int check_index(const struct weights *w, const char *index, const struct json *root,
                       struct problem *p)
{
    for (const struct json *e = json_get(root, "weight_map")->in; e; e = e->next) {
        const struct tensor *t = weights_find(w, e->name);
        const char *file = t ? strrchr(t->file, '/') + 1 : NULL;
        if (!t || strcmp(file, e->text) != 0)
            return problem(p, "%s: '%.100s' should be in %s, and is in %s", index, e->name, e->text,
                           t ? file : "none of the files");
    }
    return 0;
}

/* ---- scales of e4m3 -- */

static int64_t blocks(int64_t size, int64_t block)
{
    return (size + block - 1) / block;
}

/* What a scale is for, by its shape: the whole matrix, a row each, or a block of 128 x 128. */
static int take_scale(struct tensor *t, const struct tensor *scale, struct problem *p)
{
    const int64_t rows = t->dim[0], columns = t->rank == 2 ? t->dim[1] : 1;
    int64_t count = 1;
    if (scale->rank > 2)
        return problem(p, "%s: tensor '%s' has %d dimensions; scales have at most two", scale->file,
                       scale->name, scale->rank);
    for (int i = 0; i < scale->rank; i++) count *= scale->dim[i];
    if (scale->dtype != HEWN_F32 && scale->dtype != HEWN_BF16)
        return problem(p, "%s: tensor '%s' is %s; scales are F32 or BF16", scale->file, scale->name,
                       scale->dtype_name);
    t->scale = scale;
    t->scale_rows = t->scale_columns = SCALE_BLOCK;
    if (scale->rank == 2 && scale->dim[0] == blocks(rows, SCALE_BLOCK) &&
        scale->dim[1] == blocks(columns, SCALE_BLOCK))
        return 0;
    t->scale_columns = columns ? columns : 1;
    t->scale_rows = 1;
    if (count == rows && (scale->rank == 1 || (scale->rank == 2 && scale->dim[1] == 1))) return 0;
    t->scale_rows = rows ? rows : 1;
    if (count == 1) return 0;
    return problem(p,
                   "%s: tensor '%s' has %lld numbers; '%s' of %lld x %lld wants one, one a row, or "
                   "one for each block of %d x %d",
                   scale->file, scale->name, (long long)count, t->name, (long long)rows,
                   (long long)columns, SCALE_BLOCK, SCALE_BLOCK);
}

/* Finds the scales of all matrices of e4m3: NAME_scale_inv, as DeepSeek names them, or NAME_scale. */
static int find_scales(struct weights *w, struct problem *p)
{
    static const char *const ends[] = {"_scale_inv", "_scale"};
    char name[NAME_MAX_SCALE];
    for (size_t i = 0; i < w->count; i++) {
        struct tensor *t = &w->tensors[i];
        const struct tensor *scale = NULL;
        if (t->dtype != HEWN_E4M3) continue;
        for (int e = 0; !scale && e < 2; e++) {
            const int length = snprintf(name, sizeof name, "%s%s", t->name, ends[e]);
            if (length > 0 && (size_t)length < sizeof name) scale = weights_find(w, name);
        }
        if (!scale || !t->rank || t->rank > 2)
            return problem(p, "%s: tensor '%s' is F8_E4M3, %s", t->file, t->name,
                           scale ? "and neither a matrix nor a vector"
                                 : "and there is no tensor of that name with _scale_inv or _scale");
        if (take_scale(t, scale, p)) return -1;
    }
    return 0;
}

static int read_folder(struct weights *w, const char *folder, struct problem *p)
{
    char *index = path_in(folder, "model.safetensors.index.json");
    struct json_document *d = NULL;
    int failed = 0;
    if (!index) return problem(p, "%s: no memory", folder);
    if (access(index, F_OK) == 0) {
        d = json_read_file(index, p);
        failed = d ? read_shards(w, folder, index, json_root(d), p) : -1;
    } else {
        w->files = calloc(1, sizeof *w->files);
        failed = w->files ? add_file(w, folder, "model.safetensors", p)
                          : problem(p, "%s: no memory", folder);
    }
    if (!failed && w->count) qsort(w->tensors, w->count, sizeof *w->tensors, by_name);
    for (size_t i = 1; !failed && i < w->count; i++)
        if (!strcmp(w->tensors[i - 1].name, w->tensors[i].name))
            failed = problem(p, "tensor '%s' stands in %s and in %s", w->tensors[i].name,
                             w->tensors[i - 1].file, w->tensors[i].file);
    if (!failed && d) failed = check_index(w, index, json_root(d), p);
    if (!failed) failed = find_scales(w, p);
    json_free(d);
    free(index);
    return failed;
}

struct weights *weights_open(const char *folder, struct problem *p)
{
    struct weights *w = calloc(1, sizeof *w);
    if (!w) return problem(p, "%s: no memory", folder), NULL;
    if (read_folder(w, folder, p)) {
        weights_close(w);
        return NULL;
    }
    return w;
}

void weights_close(struct weights *w)
{
    if (!w) return;
    for (size_t i = 0; i < w->file_count; i++) {
        if (w->files[i].map) munmap(w->files[i].map, w->files[i].size);
        json_free(w->files[i].header);
        free(w->files[i].path);
    }
    free(w->files);
    free(w->tensors);
    free(w);
}

size_t weights_count(const struct weights *w)
{
    return w->count;
}

const struct tensor *weights_find(const struct weights *w, const char *name)
{
    const struct tensor key = {.name = name};
    if (!w->count) return NULL;
    return bsearch(&key, w->tensors, w->count, sizeof *w->tensors, by_name);
}

const struct tensor *weights_want(const struct weights *w, const char *name,
                                  const int64_t dim[TENSOR_RANK], struct problem *p)
{
    const struct tensor *t = weights_find(w, name);
    int rank = 0;
    if (!t) return problem(p, "the checkpoint has no tensor '%s'", name), NULL;
    while (rank < TENSOR_RANK && dim[rank]) rank++;
    if (t->dtype < 0) {
        problem(p, "%s: tensor '%s' is %s; this engine reads BF16, F16, F32 and F8_E4M3", t->file,
                name, t->dtype_name);
        return NULL;
    }
    if (t->rank != rank) {
        problem(p, "%s: tensor '%s' has %d dimensions, config.json asks for %d", t->file, name,
                t->rank, rank);
        return NULL;
    }
    for (int i = 0; i < rank; i++)
        if (t->dim[i] != dim[i]) {
            problem(p, "%s: tensor '%s': dimension %d is %lld, config.json asks for %lld", t->file,
                    name, i, (long long)t->dim[i], (long long)dim[i]);
            return NULL;
        }
    return t;
}

uint16_t bf16_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return (uint16_t)(bits >> 16 | 0x40);
    bits += 0x7FFF + (bits >> 16 & 1);
    return (uint16_t)(bits >> 16);
}

float bf16_value(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static float f16_value(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, fraction = h & 0x3FF;
    const uint32_t exponent = h >> 10 & 31;
    uint32_t bits;
    float value;
    if (!exponent) {
        value = (float)fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    bits = sign | (exponent == 31 ? 0xFFu : exponent + 112) << 23 | fraction << 13;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float e4m3_value(uint8_t bits)
{
    const uint32_t exponent = bits >> 3 & 15, fraction = bits & 7;
    uint32_t wide = (exponent + 120) << 23 | fraction << 20;
    float value;
    if (exponent == 15 && fraction == 7) wide = 0x7FC00000; /* the only NaN; there is no infinity */
    memcpy(&value, &wide, sizeof value);
    if (!exponent) value = (float)fraction * 0x1p-9f;
    return bits & 0x80 ? -value : value;
}

uint8_t e4m3_of(float value)
{
    const uint8_t sign = signbit(value) ? 0x80 : 0;
    const float size = fabsf(value), most = 448;
    int exponent, steps;
    if (isnan(value)) return sign | 0x7F;
    if (size >= most) return sign | 0x7E;
    if (size < 0x1p-6f)
        return sign | (uint8_t)lrintf(size * 0x1p9f); /* 8 steps: the least normal */
    (void)frexpf(size, &exponent);                    /* size = 0.5 .. 1 times 2^exponent */
    steps = (int)lrintf(ldexpf(size, 4 - exponent));  /* 8 .. 16 */
    return sign | (uint8_t)((exponent + 6) * 8 + steps - 8);
}

static float element(const struct tensor *t, size_t index)
{
    uint16_t half;
    float value;
    if (t->dtype == HEWN_E4M3) {
        const size_t columns = t->rank == 2 ? (size_t)(t->pitch ? t->pitch : t->dim[1]) : 1;
        const size_t row = index / columns / (size_t)t->scale_rows;
        const size_t across = (columns + (size_t)t->scale_columns - 1) / (size_t)t->scale_columns;
        const size_t column = index % columns / (size_t)t->scale_columns;
        return e4m3_value(t->data[index]) * element(t->scale, row * across + column);
    }
    if (t->dtype == HEWN_F32) {
        memcpy(&value, t->data + index * sizeof value, sizeof value);
        return value;
    }
    memcpy(&half, t->data + index * sizeof half, sizeof half);
    return t->dtype == HEWN_BF16 ? bf16_value(half) : f16_value(half);
}

/* Where element `index` of a tensor lies among those of the one that it is a part of. */
static size_t place(const struct tensor *t, size_t index)
{
    if (!t->pitch) return (size_t)t->first + index;
    return (size_t)t->first + index / (size_t)t->dim[1] * (size_t)t->pitch +
           index % (size_t)t->dim[1];
}

double weights_value(const struct tensor *t, size_t index)
{
    return (double)element(t, place(t, index));
}

/* Elements that lie side by side in the file, from `at` on. */
static void take(const struct tensor *t, size_t at, size_t count, uint16_t *out)
{
    if (t->dtype == HEWN_BF16) {
        memcpy(out, t->data + at * sizeof *out, count * sizeof *out);
        return;
    }
    for (size_t i = 0; i < count; i++) out[i] = bf16_of(element(t, at + i));
}

void weights_bf16(const struct tensor *t, size_t from, size_t count, uint16_t *out)
{
    while (count) {
        const size_t left = t->pitch ? (size_t)t->dim[1] - from % (size_t)t->dim[1] : count;
        const size_t now = left < count ? left : count;
        take(t, place(t, from), now, out);
        from += now;
        out += now;
        count -= now;
    }
}

struct tensor weights_part(const struct tensor *t, int64_t row, int64_t rows, int64_t column,
                           int64_t columns)
{
    const int64_t pitch = !columns ? 0 : t->pitch ? t->pitch : t->dim[1];
    struct tensor part = *t;
    part.dim[0] = rows;
    part.dim[1] = columns;
    part.pitch = pitch;
    part.first += columns ? row * pitch + column : row;
    return part;
}
