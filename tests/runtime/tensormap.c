/*
 * hewn_tensormap_check against the driver's cuTensorMapEncodeTiled, request by request: whatever ours
 * accepts the driver must accept, or a caller would meet a bare "invalid argument"; and ours must
 * refuse nothing that the driver takes. Requests are random, biased to one broken rule at a time.
 */
#include "lib/device.h"
#include "lib/harness.h"

#include <stdio.h>
#include <string.h>

enum { REQUESTS = 8000, BLOCK = 500 };

typedef int encode_fn(void *map, int dtype, uint32_t rank, void *address, const uint64_t *dim,
                      const uint64_t *stride, const uint32_t *box, const uint32_t *element_stride,
                      int interleave, int swizzle, int l2, int oob);

static const uint32_t element_bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4, 1, 1, 1};

static uint64_t pick64(struct rng *r, const uint64_t *from, uint32_t count)
{
    return from[rng_below(r, count)];
}

/* A request that breaks no rule most of the time: 128-byte rows of some dtype. */
static void draw_plain(hewn_tensormap_desc *d, struct rng *r)
{
    static const uint64_t extents[] = {1, 2, 7, 64, 100, 129, 1000, 4096};
    uint64_t row;
    memset(d, 0, sizeof *d);
    d->struct_size = sizeof *d;
    d->dtype = (int)rng_below(r, 13);
    d->rank = 1 + (int)rng_below(r, 5);
    d->swizzle = (int)rng_below(r, 4);
    d->l2 = (int)rng_below(r, 4);
    d->address = 0x7f0000000000ULL + 1024 * (uint64_t)rng_below(r, 1000);
    for (int i = 0; i < 5; i++) {
        d->dim[i] = pick64(r, extents, 8);
        d->box[i] = 1 + rng_below(r, 32);
        d->element_stride[i] = rng_below(r, 8) ? 1 : 1 + rng_below(r, 8);
    }
    if (d->rank >= 3 && rng_below(r, 4) == 0) d->interleave = 1 + (int)rng_below(r, 2);
    row = (16U << rng_below(r, 4)) / element_bytes[d->dtype];
    if (!d->interleave || rng_below(r, 2)) d->box[0] = row > 0 ? (uint32_t)row : 1;
    row = (d->dim[0] * element_bytes[d->dtype] + 15) / 16 * 16;
    for (int i = 0; i < 4; i++) {
        d->stride[i] = row + 16 * (uint64_t)rng_below(r, 3);
        row = d->stride[i] * d->dim[i + 1];
    }
}

/* Moves one field to where a rule lies. (Never to a negative rank, on which driver 580 crashes.) */
static void spoil(hewn_tensormap_desc *d, struct rng *r)
{
    static const uint64_t dims[] = {0,         1, 0xFFFFFFFFULL, 0x100000000ULL, 0x100000001ULL,
                                    1ULL << 40};
    static const uint64_t strides[] = {
        0, 1, 8, 16, 24, 32, 48, 1ULL << 39, (1ULL << 40) - 16, 1ULL << 40, 1ULL << 41};
    static const uint32_t boxes[] = {0, 1, 2, 3, 16, 32, 33, 64, 100, 128, 255, 256, 257, 512};
    uint32_t at = rng_below(r, 5);
    switch (rng_below(r, 12)) {
    case 0: d->address += rng_below(r, 64); break;
    case 1: d->dtype = (int)rng_below(r, 18) - 1; break;
    case 2: d->rank = (int)rng_below(r, 7); break;
    case 3: d->dim[at] = pick64(r, dims, 6); break;
    case 4: d->stride[at % 4] = pick64(r, strides, 11); break;
    case 5: d->box[at] = boxes[rng_below(r, 14)]; break;
    case 6: d->element_stride[at] = 1 + rng_below(r, 10); break;
    case 7: d->interleave = (int)rng_below(r, 5) - 1; break;
    case 8: d->swizzle = (int)rng_below(r, 9) - 1; break;
    case 9: d->l2 = (int)rng_below(r, 6) - 1; break;
    case 10: d->oob = (int)rng_below(r, 4) - 1; break;
    default: d->address = rng_below(r, 3) ? d->address : 0; break;
    }
}

static int encode(encode_fn *f, const hewn_tensormap_desc *d)
{
    _Alignas(64) unsigned char map[128];
    void *address;
    memcpy(&address, &d->address, sizeof address);
    return f(map, d->dtype, (uint32_t)d->rank, address, d->dim, d->stride, d->box,
             d->element_stride, d->interleave, d->swizzle, d->l2, d->oob);
}

static void print_request(const hewn_tensormap_desc *d, char *text, size_t size)
{
    snprintf(text, size,
             "dtype %d rank %d address 0x%llx dim %llu,%llu,%llu,%llu,%llu stride "
             "%llu,%llu,%llu,%llu box "
             "%u,%u,%u,%u,%u es %u,%u,%u,%u,%u il %d sw %d l2 %d oob %d",
             d->dtype, d->rank, d->address, (unsigned long long)d->dim[0],
             (unsigned long long)d->dim[1], (unsigned long long)d->dim[2],
             (unsigned long long)d->dim[3], (unsigned long long)d->dim[4],
             (unsigned long long)d->stride[0], (unsigned long long)d->stride[1],
             (unsigned long long)d->stride[2], (unsigned long long)d->stride[3], d->box[0],
             d->box[1], d->box[2], d->box[3], d->box[4], d->element_stride[0], d->element_stride[1],
             d->element_stride[2], d->element_stride[3], d->element_stride[4], d->interleave,
             d->swizzle, d->l2, d->oob);
}

static void compare(struct device *dev, encode_fn *f, const hewn_tensormap_desc *d,
                    unsigned accepted[2])
{
    hewn_error err = {0};
    char text[512];
    bool ours = hewn_tensormap_check(d, "T", dev->info.cc_major, dev->info.cc_minor, &err) == 0;
    bool driver = encode(f, d) == 0;
    accepted[0] += ours;
    accepted[1] += driver;
    if (ours == driver) return;
    print_request(d, text, sizeof text);
    CHECK(!ours, "accepted here, refused by the driver: %s", text);
    CHECK(ours, "taken by the driver, refused here (%s): %s", err.message, text);
}

int main(int argc, char **argv)
{
    struct device dev;
    hewn_error err = {0};
    encode_fn *f = NULL;
    void *symbol;
    test_begin("tensormap", argc, argv);
    if (!device_open(&dev, &err)) {
        if (test_case("open")) CHECK(false, "%s", err.message);
        return test_end();
    }
    test_where("sm_%d%d, %s", dev.info.cc_major, dev.info.cc_minor, dev.info.name);
    symbol = hewn_driver_symbol(dev.driver, "cuTensorMapEncodeTiled");
    memcpy(&f, &symbol, sizeof f);
    for (int block = 0; block < REQUESTS / BLOCK; block++) {
        struct rng r = {test_seed() + (uint64_t)block};
        unsigned accepted[2] = {0, 0};
        if (!test_case("requests %d to %d", block * BLOCK, (block + 1) * BLOCK - 1)) continue;
        for (int i = 0; i < BLOCK; i++) {
            hewn_tensormap_desc d;
            draw_plain(&d, &r);
            for (uint32_t n = rng_below(&r, 3); n > 0; n--) spoil(&d, &r);
            compare(&dev, f, &d, accepted);
        }
        CHECK(accepted[1] > BLOCK / 10,
              "only %u requests were accepted: the test has lost its force", accepted[1]);
    }
    device_close(&dev);
    return test_end();
}
