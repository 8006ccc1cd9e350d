/*
 * hewn_attention against one float64 softmax (attention_reference.h) by the rules of
 * attention_judge.h, on whatever driver HEWN_LIBCUDA names; on the simulator every launch must also be
 * `clean` under the checker.
 *
 *   attention                 a sample that covers every variant, properties, 60 random cases
 *   attention --grid          every head dimension, length, mask and head ratio
 *   attention --random N      N random cases of the whole contract
 *   attention --one "qk=128 sq=17 sk=1000 causal=1"     that case, with its figures
 *   attention --promotion KEYS  what sums of 13 fraction bits lose there (sm_90a, e4m3)
 *   --dim D: cases of that head dimension alone; --seed S --case N --list --verbose as everywhere;
 *   --record, --digests FILE: digest.h
 */
#include "attention_grid.h"
#include "attention_judge.h"
#include "lib/number.h"
#include "attention_promotion.h"
#include "attention_properties.h"
#include "attention_run.h"
#include "lib/device.h"
#include "lib/digest.h"
#include "lib/harness.h"
#include "lib/verdict.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct options {
    bool grid;
    int64_t random, dim; /* random -1: not asked for */
    int64_t promotion;   /* keys, or 0 */
    const char *one, *hash;
    char path[512]; /* the program with what selects its cases, for the rerun line */
};

struct session {
    struct device dev;
    bool decode;    /* cases of the decode schedule alone count, too */
    bool eight_bit; /* cases with e4m3 inputs count, and no others */
    const struct options *options;
};

/* Module `index` of the family, described; false behind the last one. */
static bool module_at(size_t index, hewn_module_info *out)
{
    *out = (hewn_module_info){.struct_size = sizeof *out};
    return !hewn_module_describe(hewn_family_module(hewn_attention_family(), index), out, NULL);
}

/* The module that a case needs, of the family that the library ships for this device's target. */
static bool has_module(const struct device *dev, const char *name)
{
    hewn_module_info m;
    for (size_t n = 0; module_at(n, &m); n++)
        if (hewn_target_runs_on(m.target, dev->info.cc_major, dev->info.cc_minor) &&
            !strcmp(m.name, name))
            return true;
    return false;
}

/* The decode schedule takes what the device's target has no prefill kernel for. */
static bool decode_takes(const struct device *dev, const struct attention_case *c)
{
    bool few = c->qk == 96 || c->qk == 512 || (c->qk == 192 && c->cap); /* on sm_90a */
    bool none = dev->info.cc_major == 9 ? few : c->cap != 0;
    return none && c->in != HEWN_E4M3 && c->sources == 1 && !c->unnorm && !c->splits && !c->pack;
}

static const char *module_of(const struct device *dev, const struct attention_case *c,
                             char name[64])
{
    const bool sums = c->in == HEWN_E4M3 && (c->promo > 0 || c->vt) && dev->info.cc_major == 9;
    snprintf(name, 64, "attention_%s_%lld_%lld%s", hewn_dtype_name((int)c->in), (long long)c->qk,
             (long long)attention_v_dim(c),
             sums     ? "_sums"
             : c->cap ? "_cap"
                      : "");
    return name;
}

/* What the other targets ship and this device's does not: a skip each, a failure on Blackwell, whose
 * target ships all. */
static void skip_missing(const struct device *dev)
{
    hewn_module_info m;
    for (size_t n = 0; module_at(n, &m); n++) {
        if (strcmp(m.target, "sm_100f") != 0 || has_module(dev, m.name)) continue;
        if (!test_case("%s", m.name)) continue;
        CHECK(dev->info.cc_major < 10, "no module for this device");
        test_skip("no such module for compute capability %d.%d", dev->info.cc_major,
                  dev->info.cc_minor);
    }
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const char *hold(const struct session *s, const struct attention_data *d,
                        const hewn_attention_plan_info *info)
{
    char choice[DIGEST_CHOICE];
    uint64_t digest = digest_bytes(DIGEST_BEGIN, d->o.bytes, d->o.size);
    if (info->schedule == HEWN_SCHEDULE_DECODE)
        snprintf(choice, sizeof choice, "decode/%d", s->dev.info.sm_count);
    else
        snprintf(choice, sizeof choice, "splits/%u", info->splits);
    digest = digest_bytes(digest, d->lse, d->lse_count * sizeof *d->lse);
    if (d->row_max) digest = digest_bytes(digest, d->row_max, d->lse_count * sizeof *d->row_max);
    return digest_case(digest, choice);
}

/* The bits of the outputs against the recording, once more where other splits were recorded. */
static void hold_digest(struct session *s, const struct attention_case *c,
                        const struct attention_data *d, const hewn_attention_plan_info *info)
{
    const char *recorded = hold(s, d, info);
    struct attention_case other = *c;
    struct attention_data again;
    struct attention_run run = {0};
    if (!recorded || !strncmp(recorded, "decode/", 7)) return; /* of another number of SMs */
    if (sscanf(recorded, "splits/%" SCNd64, &other.splits) != 1) other.splits = 0;
    if (attention_data_new(&again, &other)) {
        attention_run(&s->dev, &again, &run);
        if (run.done) hold(s, &again, &run.info);
    }
    attention_data_free(&again);
}

static void run_case(struct session *s, const struct attention_case *c)
{
    struct attention_data d;
    struct attention_run run = {0};
    if (attention_data_new(&d, c)) {
        double begin = seconds();
        attention_run(&s->dev, &d, &run);
        double middle = seconds();
        if (run.done) {
            struct attention_figures f = attention_judge(&d);
            if (test_verbose() || s->options->one)
                printf(
                    "      O %.4g ideal %.4g limit %.4g, 1 - cosine %.2g, lse %.2g; %s, pack %u, "
                    "splits %u, %" PRIu64 " items; ran %.2f s, judged %.2f s\n",
                    f.error, f.ideal, f.limit, 1 - f.cosine, f.lse, run.info.module, run.info.pack,
                    run.info.splits, run.info.items, middle - begin, seconds() - middle);
            if (!test_case_failures()) hold_digest(s, c, &d, &run.info);
        }
    } else {
        CHECK(false, "no host memory for the case");
    }
    attention_data_free(&d);
}

static bool wanted(void *user, const struct attention_case *c)
{
    const struct session *s = user;
    char module[64];
    if (s->options->one) return true;
    if ((c->in == HEWN_E4M3) != s->eight_bit) return false;
    if (c->kv) return true;
    if (c->vt && s->dev.info.cc_major != 9) return false;
    return (!s->options->dim || c->qk == s->options->dim) &&
           (has_module(&s->dev, module_of(&s->dev, c, module)) ||
            (s->decode && decode_takes(&s->dev, c)));
}

static void visit(void *user, struct attention_case *c)
{
    struct session *s = user;
    char text[ATTENTION_TEXT];
    if (!wanted(s, c)) return;
    if (!s->options->one) {
        struct rng r = {test_seed() + (uint64_t)(test_case_number() + 2)};
        c->data = 1 + rng_below(&r, 1000000);
    }
    if (test_case("%s", attention_case_print(c, text))) run_case(s, c);
}

static void random_cases(struct session *s, int64_t count)
{
    struct rng r = {test_seed()};
    for (int64_t n = 0; n < count; n++) {
        struct attention_case c;
        attention_random(&r, &c);
        struct rng own = {r.state + 1};
        attention_random_narrow(&own, &c);
        attention_random_eight_bit(&own, &c);
        attention_random_promoted(&own, &c);
        visit(s, &c);
    }
}

/* The two writings of 16-bit floats in these tests agree. */
static void check_numbers(void)
{
    struct rng r = {test_seed()};
    for (int n = 0; n < 200000; n++) {
        uint16_t h = (uint16_t)rng_next(&r), stored;
        double x = ldexp((double)rng_unit(&r), (int)rng_below(&r, 44) - 27);
        if (n % 4 == 0) x = (f16_to_double(h) + f16_to_double((uint16_t)(h + 1))) / 2; /* a tie */
        double f16 = f16_to_double(double_to_f16(x)), bf16 = bf16_to_double(double_to_bf16(x));
        if (!isnan(x)) {
            CHECK(number_round(HEWN_F16, x) == f16, "f16 of %a", x);
            CHECK(number_round(HEWN_BF16, x) == bf16, "bf16 of %a", x);
            number_store(HEWN_F16, x, &stored);
            CHECK(stored == double_to_f16(x), "stored f16 of %a", x);
            number_store(HEWN_BF16, x, &stored);
            CHECK(stored == double_to_bf16(x), "stored bf16 of %a", x);
        }
        double v = f16_to_double(h);
        CHECK(isnan(v) ? isnan(number_load(HEWN_F16, &h)) : number_load(HEWN_F16, &h) == v,
              "f16 %#x", h);
    }
    for (unsigned b = 0; b < 256; b++) {
        unsigned char byte = (unsigned char)b, back;
        double v = number_load(HEWN_E4M3, &byte);
        number_store(HEWN_E4M3, v, &back);
        CHECK(isnan(v) ? (b & 0x7F) == 0x7F : back == byte, "e4m3 %#x", b);
    }
    CHECK(number_round(HEWN_E4M3, 1e6) == 448 && number_round(HEWN_E4M3, 432.0) == 416 + 32,
          "e4m3");
}

static bool one_case(struct session *s, const char *text)
{
    struct attention_case c;
    char word[64];
    if (!attention_case_parse(&c, text, word)) {
        fprintf(stderr, "attention: '%s' is not understood\n", word);
        return false;
    }
    visit(s, &c);
    return true;
}

static int print_hash(struct session *s, const char *text)
{
    struct attention_case c;
    char word[64];
    uint64_t hash;
    test_case("hash of %s", text);
    if (!attention_case_parse(&c, text, word) || !attention_hash(&s->dev, &c, &hash)) return 1;
    printf("hash %016" PRIx64 "\n", hash);
    return test_case_failures() != 0;
}

/* An option with or without a value, noted in the path for the rerun line. */
static bool take(struct options *o, const char *name, const char **value, int *i, int argc,
                 char **argv)
{
    size_t n = strlen(o->path);
    if (strcmp(argv[*i], name) != 0 || (value && *i + 1 >= argc)) return false;
    if (!value) {
        snprintf(o->path + n, sizeof o->path - n, " %s", name);
        return true;
    }
    *value = argv[++*i];
    const char *quote = strchr(*value, ' ') ? "\"" : "";
    snprintf(o->path + n, sizeof o->path - n, " %s %s%s%s", name, quote, *value, quote);
    return true;
}

/* Takes out what harness.c does not know; the rest stays in argv. */
static int read_options(struct options *o, int argc, char **argv)
{
    int kept = 1;
    const char *number;
    snprintf(o->path, sizeof o->path, "%s", argv[0]);
    for (int i = 1; i < argc; i++) {
        if (take(o, "--grid", NULL, &i, argc, argv))
            o->grid = true;
        else if (take(o, "--random", &number, &i, argc, argv))
            o->random = strtoll(number, NULL, 0);
        else if (take(o, "--dim", &number, &i, argc, argv))
            o->dim = strtoll(number, NULL, 0);
        else if (take(o, "--promotion", &number, &i, argc, argv))
            o->promotion = strtoll(number, NULL, 0);
        else if (!take(o, "--one", &o->one, &i, argc, argv) &&
                 !take(o, "--hash", &o->hash, &i, argc, argv))
            argv[kept++] = argv[i];
    }
    argv[0] = o->path;
    return kept;
}

static void run_all(struct session *s)
{
    const struct options *o = s->options;
    for (int n = 0; n < 2 && (o->grid || o->random >= 0); n++) {
        s->eight_bit = n;
        if (o->grid) attention_grid(visit, s);
        if (o->random >= 0) random_cases(s, o->random);
    }
    if (o->promotion) attention_promotion(&s->dev, o->dim ? o->dim : 128, o->promotion);
    if (o->grid || o->random >= 0 || o->promotion) return;
    if (test_case("numbers")) check_numbers();
    skip_missing(&s->dev);
    attention_sample(visit, s);
    attention_properties(&s->dev, wanted, s);
    random_cases(s, 60);
    s->decode = true;
    attention_few_rows(visit, s);
    attention_capped(visit, s);
    attention_invariant(&s->dev, wanted, s);
    attention_narrow(visit, s);
    s->decode = false;
    s->eight_bit = true;
    attention_sample(visit, s);
    attention_eight_bit(visit, s);
    attention_properties(&s->dev, wanted, s);
    random_cases(s, 60);
    if (s->dev.info.cc_major == 9) attention_promotion(&s->dev, 128, 4096);
    s->eight_bit = false;
    attention_small_pages(visit, s);
    s->eight_bit = true; /* the newest cases last: recorded digests of the others stay */
    attention_below_zero(visit, s);
    s->eight_bit = false;
    attention_far_from_zero(&s->dev, wanted, s);
}

int main(int argc, char **argv)
{
    struct options options = {.random = -1};
    struct session s = {.options = &options};
    hewn_error err = {0};
    int status = 2;
    argc = read_options(&options, digest_options(argc, argv), argv);
    test_begin("attention", argc, argv);
    verdict_begin("attention");
    if (!device_open(&s.dev, &err)) {
        if (test_case("open")) CHECK(false, "%s", err.message);
        verdict_end();
        return test_end();
    }
    test_where("sm_%d%d, %s", s.dev.info.cc_major, s.dev.info.cc_minor, s.dev.info.name);
    digest_device(&s.dev);
    if (options.hash) {
        status = print_hash(&s, options.hash);
    } else if (!options.one || one_case(&s, options.one)) {
        if (!options.one) run_all(&s);
        digest_end();
        status = -1;
    }
    device_close(&s.dev);
    verdict_end();
    return status < 0 ? test_end() : status;
}
