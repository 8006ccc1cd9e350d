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

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t waiting_usual = 1024;

struct served { /* one request's answer so far */
    const struct tokenizer *tokenizer;
    int64_t number, count;
    char *text;
    size_t length, room;
    bool no_memory;
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
    size_t n = tokenizer_decode(s->tokenizer, token, s->count++ == 0, piece, sizeof piece);
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

static void on_end(void *user, int reason)
{
    struct served *s = user;
    printf("{\"request\": %lld, \"text\": ", (long long)s->number);
    put_json(s->text, s->length);
    printf(", \"tokens\": %lld, \"reason\": \"%s\"}\n", (long long)s->count,
           s->no_memory ? "no memory" : engine_reason_text(reason));
    fflush(stdout);
    free(s->text);
    free(s);
}

static double number_of(const struct json *in, const char *name, double usual)
{
    const struct json *value = json_get(in, name);
    return value && value->type == JSON_NUMBER ? value->number : usual;
}

static int64_t whole_of(const struct json *in, const char *name, int64_t usual)
{
    int64_t value;
    return json_whole(json_get(in, name), &value) ? value : usual;
}

static int submit(const struct setup *s, const struct command *c, struct engine *e,
                  const struct json *line, int64_t number, struct problem *p)
{
    const struct json *prompt = json_get(line, "prompt");
    struct tokens ids = {.id = NULL};
    struct engine_request r = {.most = whole_of(line, "max_tokens", c->most),
                               .temperature = (float)number_of(line, "temperature", c->temperature),
                               .top_p = (float)number_of(line, "top_p", c->top_p),
                               .top_k = (int32_t)whole_of(line, "top_k", c->top_k),
                               .seed = (uint64_t)whole_of(line, "seed", c->seed)};
    struct served *one;
    int failed = 0;
    if (!prompt || prompt->type != JSON_STRING)
        return problem(p, "prompt is %s, not a string", json_type_name(prompt));
    one = calloc(1, sizeof *one);
    if (!one) return problem(p, "no memory");
    *one = (struct served){.tokenizer = s->tokenizer, .number = number};
    r.user = one;
    failed = tokenizer_encode(s->tokenizer, prompt->text, prompt->length, true, &ids, p);
    r.prompt = ids.id;
    r.prompt_count = (int64_t)ids.count;
    if (!failed && engine_submit(e, &r, p) < 0) failed = -1;
    free(ids.id);
    if (failed) free(one);
    return failed;
}

/* Reads lines until as many requests wait as may; false at the end of the input. */
static bool take_lines(const struct setup *s, const struct command *c, struct engine *e,
                       int64_t room, int64_t *number)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t n = 0;
    for (; room > 0 && (n = getline(&line, &size, stdin)) >= 0; room--, ++*number) {
        struct problem p;
        struct json_document *d = json_read(line, (size_t)n, "request", &p);
        if (d && submit(s, c, e, json_root(d), *number, &p) == 0) {
            json_free(d);
            continue;
        }
        json_free(d);
        printf("{\"request\": %lld, \"error\": ", (long long)*number);
        put_json(p.text, strlen(p.text));
        puts("}");
    }
    free(line);
    return n >= 0;
}

static int serve(const struct setup *s, const struct command *c, struct problem *p)
{
    const struct engine_events events = {on_token, on_end};
    const int64_t waiting = c->waiting ? c->waiting : waiting_usual;
    struct engine *e;
    int64_t left = 0, number = 0;
    bool more = true;
    if (engine_open(s->model, waiting, &events, &e, p)) return command_fail(p);
    do {
        if (more) more = take_lines(s, c, e, waiting - engine_waiting(e), &number);
        left = engine_step(e, p);
    } while (left > 0 || (left == 0 && more));
    engine_close(e);
    return left < 0 ? command_fail(p) : 0;
}

int command_serve(const struct command *c)
{
    struct problem p;
    struct setup s;
    int status;
    if (setup_open(c, &s, &p)) return command_fail(&p);
    status = serve(&s, c, &p);
    setup_close(&s);
    return status;
}
