/* Requests as lines of JSON:
 *
 *   {"prompt": "..", "max_tokens": 64, "temperature": 0, "top_p": 1, "top_k": 0, "seed": 0}
 *
 * and an answer a line as they end: {"request": 0, "text": "..", "tokens": 12, "reason": "length"}.
 * The requests are numbered as they come. A line that is no request is answered with "error". */
#include "engine.h"
#include "json.h"
#include "setup.h"
#include "utf8.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t waiting_usual = 1024;

struct served {                 /* one request's answer so far */
    struct served *next, *back; /* of the requests that have no answer yet */
    struct serving *in;
    const struct tokenizer *tokenizer;
    int64_t number, count;
    char *text;
    size_t length, room;
    bool no_memory;
};

struct serving {
    const struct command *command;
    const struct tokenizer *tokenizer;
    struct engine *engine;
    struct served *first; /* without an answer */
    int64_t number;       /* of the next line */
};

static void put_json(const char *text, size_t length)
{
    size_t n;
    putchar('"');
    for (size_t at = 0; at < length; at += n) {
        uint32_t c;
        n = utf8_take(text + at, length - at, &c);
        if (!n) { /* a token may end within a character */
            n = 1;
            fputs("\\ufffd", stdout);
        } else if (c == '"' || c == '\\') {
            printf("\\%c", (int)c);
        } else if (c < 0x20) {
            printf("\\u%04x", (unsigned)c);
        } else {
            fwrite(text + at, 1, n, stdout);
        }
    }
    putchar('"');
}

static void on_token(void *user, int32_t token)
{
    struct served *s = user;
    char piece[512];
    /* The text goes on from the prompt, so its first token keeps its blank. */
    size_t n = tokenizer_decode(s->tokenizer, token, false, piece, sizeof piece);
    s->count++;
    if (!n) return;
    if (n > sizeof piece) n = sizeof piece;
    if (s->length + n > s->room) {
        const size_t room = 2 * s->room + n + 256;
        char *grown = realloc(s->text, room);
        if (!grown) {
            s->no_memory = true;
            return;
        }
        s->text = grown;
        s->room = room;
    }
    memcpy(s->text + s->length, piece, n);
    s->length += n;
}

static void forget(struct served *s)
{
    if (s->back)
        s->back->next = s->next;
    else
        s->in->first = s->next;
    if (s->next) s->next->back = s->back;
    free(s->text);
    free(s);
}

static void put_error(int64_t number, const char *text)
{
    printf("{\"request\": %lld, \"error\": ", (long long)number);
    put_json(text, strlen(text));
    puts("}");
    fflush(stdout);
}

static void on_end(void *user, int reason)
{
    struct served *s = user;
    printf("{\"request\": %lld, \"text\": ", (long long)s->number);
    put_json(s->text, s->length);
    printf(", \"tokens\": %lld, \"reason\": \"%s\"}\n", (long long)s->count,
           s->no_memory ? "no memory" : engine_reason_text(reason));
    fflush(stdout);
    forget(s);
}

/* Fields of a line; one that is null or not there leaves `out` as it is. */
static int take_number(const struct json *in, const char *name, double *out, struct problem *p)
{
    const struct json *value = json_get(in, name);
    if (!value || value->type == JSON_NULL) return 0;
    if (value->type != JSON_NUMBER)
        return problem(p, "%s is %s, not a number", name, json_type_name(value));
    *out = value->number;
    return 0;
}

static int take_whole(const struct json *in, const char *name, int64_t *out, struct problem *p)
{
    const struct json *value = json_get(in, name);
    if (!value || value->type == JSON_NULL || json_whole(value, out)) return 0;
    return problem(p, "%s is %s, not a whole number", name,
                   value->type == JSON_NUMBER ? "a fraction or beyond 2^53"
                                              : json_type_name(value));
}

static int submit(struct serving *v, const struct json *line, int64_t number, struct problem *p)
{
    const struct command *c = v->command;
    const struct json *prompt = json_get(line, "prompt");
    struct tokens ids = {.id = NULL};
    double temperature = c->temperature, top_p = c->top_p;
    int64_t most = c->most, top_k = c->top_k, seed = c->seed;
    struct engine_request r;
    struct served *one;
    int failed = 0;
    if (!prompt || prompt->type != JSON_STRING)
        return problem(p, "prompt is %s, not a string", json_type_name(prompt));
    if (take_number(line, "temperature", &temperature, p) ||
        take_number(line, "top_p", &top_p, p) || take_whole(line, "max_tokens", &most, p) ||
        take_whole(line, "top_k", &top_k, p) || take_whole(line, "seed", &seed, p))
        return -1;
    one = calloc(1, sizeof *one);
    if (!one) return problem(p, "no memory");
    *one = (struct served){.next = v->first, .in = v, .tokenizer = v->tokenizer, .number = number};
    if (v->first) v->first->back = one;
    v->first = one;
    r = (struct engine_request){.most = most,
                                .temperature = (float)temperature,
                                .top_p = (float)top_p,
                                .top_k = command_top_k(top_k),
                                .seed = (uint64_t)seed,
                                .user = one};
    failed = tokenizer_encode(v->tokenizer, prompt->text, prompt->length, true, &ids, p);
    r.prompt = ids.id;
    r.prompt_count = (int64_t)ids.count;
    if (!failed && engine_submit(v->engine, &r, p) < 0) failed = -1;
    free(ids.id);
    if (failed) forget(one);
    return failed;
}

/* Whether a read of the input would wait. A file never does. */
static bool input_waits(void)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&in, 1, 0) == 0;
}

/* Reads lines until as many requests wait as may, or, while requests are there (`busy`), until the
 * next line has yet to come; false at the end of the input. */
static bool take_lines(struct serving *v, bool busy, int64_t room)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t n = 0;
    for (; room > 0 && !(busy && input_waits()) && (n = getline(&line, &size, stdin)) >= 0;
         room--, v->number++) {
        struct problem p;
        struct json_document *d = json_read(line, (size_t)n, "request", &p);
        if (d && submit(v, json_root(d), v->number, &p) == 0)
            busy = true;
        else
            put_error(v->number, p.text);
        json_free(d);
    }
    free(line);
    return n >= 0;
}

static int serve(struct setup *s, const struct command *c)
{
    struct problem p;
    const struct engine_events events = {on_token, on_end};
    const int64_t waiting = c->waiting ? c->waiting : waiting_usual;
    struct serving v = {.command = c, .tokenizer = s->tokenizer};
    struct stat about;
    int64_t left = 0;
    bool more = true;
    /* input_waits does not see what lies in a buffer of stdio. */
    if (fstat(STDIN_FILENO, &about) || !S_ISREG(about.st_mode)) setvbuf(stdin, NULL, _IONBF, 0);
    if (engine_open(s->model, waiting, &events, &v.engine, &p)) return command_fail(&p);
    do {
        if (more) more = take_lines(&v, left > 0, waiting - engine_waiting(v.engine));
        left = engine_step(v.engine, &p);
        if (ferror(stdout)) /* whoever read the answers has gone */
            left = problem(&p, "serve: the answers cannot be written");
    } while (left > 0 || (left == 0 && more));
    engine_close(v.engine);
    for (struct served *one = v.first, *next; one; one = next) { /* after a step that failed */
        next = one->next;
        put_error(one->number, p.text);
        free(one->text);
        free(one);
    }
    return left < 0 ? command_fail(&p) : 0;
}

int command_serve(const struct command *c)
{
    struct problem p;
    if (c->prompt || c->ids || c->check || c->dump) {
        problem(&p, "serve: --prompt, --ids, --check and --dump are options of run");
        return command_fail(&p);
    }
    return setup_run(c, serve);
}
