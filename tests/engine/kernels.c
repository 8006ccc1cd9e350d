/*
 * The engine's own kernels against C in float64, every launch clean under the checker: rows of every size, gaps
 * between rows, rows chosen by number, idle and damaged rows. --random N: so many random cases of each kernel more, of engine_sample a
 * quarter.
 */
#include "kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool array_new(struct array *a, size_t size)
{
    memset(a, 0, sizeof *a);
    a->size = size;
    a->host = malloc(size + 1);
    if (a->host) memset(a->host, POISON, size);
    return a->host != NULL;
}

void array_random(struct array *a, struct rng *r, double scale)
{
    for (size_t i = 0; i < a->size / 2; i++)
        bf16(a)[i] = double_to_bf16((double)rng_unit(r) * scale);
}

hewn_deviceptr array_up(struct bench *b, struct array *a)
{
    if (!a->host || !guarded_new(b->dev, &a->device, a->size, POISON)) return 0;
    if (a->size && b->dev->to_device(a->device.data, a->host, a->size) != 0) return 0;
    return a->device.data;
}

void array_down(struct bench *b, struct array *a, const char *name)
{
    if (!a->device.base) return;
    const char *damage = guarded_damage(b->dev, &a->device);
    CHECK(!damage, "%s: %s", name, damage);
    CHECK(b->dev->to_host(a->host, a->device.data, a->size) == 0, "%s cannot be read", name);
}

void array_free(struct bench *b, struct array *a)
{
    if (a->device.base) guarded_free(b->dev, &a->device);
    free(a->host);
    memset(a, 0, sizeof *a);
}

bool launched(struct bench *b, int status, const hewn_error *err)
{
    CHECK(status == HEWN_OK, "launch: %s", err->message);
    int rc = b->dev->synchronize();
    CHECK(rc == 0, "the kernel failed with CUresult %d", rc);
    verdict_check(status == HEWN_OK && b->dev->info.simulated, false);
    return status == HEWN_OK && rc == 0;
}

bool near_bf16(uint16_t got, double want, double slack)
{
    const double value = bf16_to_double(got);
    if (isnan(want) || isnan(value)) return isnan(want) && isnan(value);
    if (isinf(want) || isinf(value)) return want == value;
    int exponent;
    (void)frexp(want, &exponent);
    if (exponent < -125) exponent = -125;
    return fabs(value - want) <= ldexp(0.5, exponent - 8) + slack;
}

int main(int argc, char **argv)
{
    struct device dev;
    hewn_error err = {0};
    const int random = suite_number(&argc, argv, "--random");
    if (!suite_begin(&dev, "kernels", argc, argv)) return suite_end(&dev);
    struct bench b = {.dev = &dev};
    int status = engine_kernels_open(&b.kernels, dev.context, &err);
    if (test_case("the kernels are there")) CHECK(status == HEWN_OK, "open: %s", err.message);
    if (!status) {
        test_norm(&b, random);
        test_rope(&b, random);
        test_attend(&b, random);
        test_multiply(&b, random);
        test_swiglu(&b, random);
        test_quant(&b, random);
        test_project(&b, random);
        test_slots(&b, random);
        test_sample(&b, random / 4);
        test_route(&b, random);
        test_place(&b, random);
        test_latent(&b, random);
        test_exchange(&b, random);
        test_rules(&b);
    }
    return suite_end(&dev);
}
