/* The commands that run no model, and run. */
#include "command.h"
#include "check.h"
#include "engine.h"
#include "setup.h"
#include "tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int command_fail(const struct problem *p)
{
    fprintf(stderr, "hewn-engine: %s\n", p->text);
    return 1;
}

int command_info(const char *folder)
{
    struct problem p;
    struct checkpoint m;
    struct tokenizer *t;
    if (checkpoint_open(folder, &m, &p)) return command_fail(&p);
    printf("%lld layers of %lld, %lld heads of %lld on %lld, feed-forward %lld, %lld positions\n",
           (long long)m.config.layers, (long long)m.config.hidden, (long long)m.config.heads,
           (long long)m.config.head_dim, (long long)m.config.kv_heads,
           (long long)m.config.intermediate, (long long)m.config.positions);
    printf("%zu tensors\n", weights_count(m.weights));
    t = tokenizer_open(folder, &p);
    if (t)
        printf("vocabulary of %lld, tokenizer of %zu\n", (long long)m.config.vocab,
               tokenizer_size(t));
    checkpoint_close(&m);
    if (!t) return command_fail(&p);
    tokenizer_close(t);
    return 0;
}

static int show_line(const struct tokenizer *t, const char *text, size_t length)
{
    struct tokens ids = {.id = NULL};
    struct problem p;
    const int failed = tokenizer_encode(t, text, length, true, &ids, &p);
    for (size_t i = 0; !failed && i < ids.count; i++) printf("%s%d", i ? " " : "", ids.id[i]);
    if (!failed) putchar('\n');
    free(ids.id);
    return failed ? command_fail(&p) : 0;
}

int command_tokens(const char *folder, const char *text)
{
    struct problem p;
    struct tokenizer *t = tokenizer_open(folder, &p);
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    int status = 0;
    if (!t) return command_fail(&p);
    if (text) status = show_line(t, text, strlen(text));
    while (!text && !status && (n = getline(&line, &room, stdin)) >= 0) {
        if (n > 0 && line[n - 1] == '\n') n--;
        status = show_line(t, line, (size_t)n);
    }
    free(line);
    tokenizer_close(t);
    return status;
}

/* ---- run ---- */

/* Writes tokens as they come; a character of several bytes may come in several tokens. The prompt
 * stands before them, so the first one keeps its blank. */
struct writer {
    const struct tokenizer *tokenizer;
};

static void write_token(void *user, int32_t token)
{
    struct writer *w = user;
    char text[512];
    const size_t n = tokenizer_decode(w->tokenizer, token, false, text, sizeof text);
    fwrite(text, 1, n < sizeof text ? n : sizeof text, stdout);
    fflush(stdout);
}

static struct engine_sampling sampling_of(const struct command *c)
{
    return (struct engine_sampling){.temperature = (float)c->temperature,
                                    .top_p = (float)c->top_p,
                                    .top_k = command_top_k(c->top_k),
                                    .seed = (uint64_t)c->seed};
}

static void dump(const struct check_run *run, int64_t vocab)
{
    printf("drawn:");
    for (int64_t i = run->prompt_count; i < run->count; i++) printf(" %d", run->tokens[i]);
    for (int64_t i = 0; i < (run->count - run->prompt_count) * vocab; i++)
        printf("%s%.9g %.17g", i % vocab ? " " : "\nlogits: ", (double)run->logits[i],
               run->exact[i]);
    putchar('\n');
}

static int run_checked(struct setup *s, const struct command *c, const struct tokens *prompt,
                       struct problem *p)
{
    const struct engine_sampling sampling = sampling_of(c);
    struct reference_difference d;
    struct writer w = {s->tokenizer};
    struct check_run run;
    int agrees;
    if (check_generate(s->model, 0, prompt->id, (int64_t)prompt->count, c->most, &sampling, &run,
                       p))
        return command_fail(p);
    for (int64_t i = run.prompt_count; s->tokenizer && i < run.count; i++)
        write_token(&w, run.tokens[i]);
    putchar('\n');
    agrees = check_compare(&s->checkpoint, &run, &d, p);
    if (agrees >= 0)
        printf("logits of %lld steps %s float64: off by %.4f (rms), %.4f at most; rounding to bf16 "
               "alone costs %.4f, %.4f\n",
               (long long)(run.count - run.prompt_count), agrees ? "agree with" : "differ from",
               d.rms, d.most, d.rms_rounded, d.most_rounded);
    if (agrees >= 0 && c->dump) dump(&run, s->checkpoint.config.vocab);
    check_free(&run);
    return agrees < 0 ? command_fail(p) : agrees ? 0 : 1;
}

static int run_engine(struct setup *s, const struct command *c, const struct tokens *prompt,
                      struct problem *p)
{
    const struct engine_events events = {.token = write_token};
    struct writer w = {s->tokenizer};
    const struct engine_request request = {.prompt = prompt->id,
                                           .prompt_count = (int64_t)prompt->count,
                                           .most = c->most,
                                           .temperature = (float)c->temperature,
                                           .top_p = (float)c->top_p,
                                           .top_k = command_top_k(c->top_k),
                                           .seed = (uint64_t)c->seed,
                                           .user = &w};
    struct engine *e;
    int64_t left;
    if (engine_open(s->model, 1, &events, &e, p)) return command_fail(p);
    left = engine_submit(e, &request, p) < 0 ? -1 : 1;
    while (left > 0) left = engine_step(e, p);
    engine_close(e);
    putchar('\n');
    return left < 0 ? command_fail(p) : 0;
}

/* Numbers with blanks between them. */
static int take_ids(const char *text, struct tokens *out, struct problem *p)
{
    while (*text) {
        char *end;
        const long id = strtol(text, &end, 10);
        if (end == text || id < 0 || id > INT32_MAX)
            return problem(p, "--ids: '%.20s' is no token's number", text);
        if (tokens_add(out, (int32_t)id)) return problem(p, "--ids: no memory");
        text = end + strspn(end, " ");
    }
    return 0;
}

static int run(struct setup *s, const struct command *c)
{
    struct problem p;
    struct tokens prompt = {.id = NULL};
    int status;
    if (c->ids ? take_ids(c->ids, &prompt, &p)
               : tokenizer_encode(s->tokenizer, c->prompt, strlen(c->prompt), true, &prompt, &p)) {
        status = command_fail(&p);
    } else {
        if (c->prompt) fputs(c->prompt, stdout);
        status = c->check ? run_checked(s, c, &prompt, &p) : run_engine(s, c, &prompt, &p);
    }
    free(prompt.id);
    return status;
}

int command_run(const struct command *c)
{
    struct problem p;
    struct command one = *c;
    if (!c->prompt == !c->ids || (c->ids && !c->check)) {
        problem(&p, "run: give --prompt TEXT, or --check and --ids '1 2 3'");
        return command_fail(&p);
    }
    if (!one.slots) one.slots = 1;
    return setup_run(&one, run);
}
