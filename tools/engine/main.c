/* hewn-engine: runs language models of the Llama family from a folder as Hugging Face lays it out.
 */
#include "config.h"
#include "tokenizer.h"
#include "weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 64 };

static const char usage[] =
    "usage: hewn-engine info FOLDER             what the folder's model is\n"
    "       hewn-engine tokens FOLDER [TEXT]    token ids of TEXT, or of each line of the input\n"
    "FOLDER holds config.json, tokenizer.json and model.safetensors, or its shards and their "
    "index.\n";

static int fail(const struct problem *p)
{
    fprintf(stderr, "hewn-engine: %s\n", p->text);
    return 1;
}

static int show_info(const char *folder)
{
    struct problem p;
    struct config c;
    struct weights *w;
    struct tokenizer *t;
    if (config_read(folder, &c, &p)) return fail(&p);
    printf("%lld layers of %lld, %lld heads of %lld on %lld, feed-forward %lld, %lld positions\n",
           (long long)c.layers, (long long)c.hidden, (long long)c.heads, (long long)c.head_dim,
           (long long)c.kv_heads, (long long)c.intermediate, (long long)c.positions);
    w = weights_open(folder, &p);
    if (!w) return fail(&p);
    printf("%zu tensors\n", weights_count(w));
    weights_close(w);
    t = tokenizer_open(folder, &p);
    if (!t) return fail(&p);
    printf("vocabulary of %lld, tokenizer of %zu\n", (long long)c.vocab, tokenizer_size(t));
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
    return failed ? fail(&p) : 0;
}

static int show_tokens(const char *folder, const char *text)
{
    struct problem p;
    struct tokenizer *t = tokenizer_open(folder, &p);
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    int status = 0;
    if (!t) return fail(&p);
    if (text) status = show_line(t, text, strlen(text));
    while (!text && !status && (n = getline(&line, &room, stdin)) >= 0) {
        if (n > 0 && line[n - 1] == '\n') n--;
        status = show_line(t, line, (size_t)n);
    }
    free(line);
    tokenizer_close(t);
    return status;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "info")) return show_info(argv[2]);
    if ((argc == 3 || argc == 4) && !strcmp(argv[1], "tokens"))
        return show_tokens(argv[2], argc == 4 ? argv[3] : NULL);
    fputs(usage, argc == 2 && !strcmp(argv[1], "--help") ? stdout : stderr);
    return argc == 2 && !strcmp(argv[1], "--help") ? 0 : EXIT_USAGE;
}
