#include "bench_cudnn.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool put_file(const struct cudnn *c, const char *name, const uint16_t *values, size_t count)
{
    char path[64];
    FILE *f;
    bool ok;
    snprintf(path, sizeof path, "%s/%s", c->folder, name);
    f = fopen(path, "wb");
    ok = f && fwrite(values, sizeof *values, count, f) == count;
    if (f) ok = !fclose(f) && ok;
    return ok;
}

static void drop_line_end(char *line)
{
    line[strcspn(line, "\r\n")] = '\0';
}

/* The next answer; a line that begins with '#' before it says why a way is missing. */
static bool answer(struct cudnn *c, char line[CUDNN_LINE])
{
    fflush(c->to);
    while (fgets(line, CUDNN_LINE, c->from)) {
        drop_line_end(line);
        if (line[0] != '#') return strncmp(line, "error", 5) != 0;
        snprintf(c->reason, sizeof c->reason, "%.199s", line + 2);
    }
    return false;
}

static bool start(struct cudnn *c, const char *script)
{
    int there[2], back[2];
    if (pipe(there)) return false;
    if (pipe(back)) {
        close(there[0]);
        close(there[1]);
        return false;
    }
    signal(SIGPIPE, SIG_IGN); /* a peer that ends early is an answer that does not come */
    c->process = fork();
    if (c->process == 0) {
        if (dup2(there[0], STDIN_FILENO) < 0 || dup2(back[1], STDOUT_FILENO) < 0) _exit(127);
        close(there[1]);
        close(back[0]);
        execlp("python3", "python3", script, c->folder, (char *)NULL);
        _exit(127);
    }
    close(there[0]);
    close(back[1]);
    c->to = fdopen(there[1], "w");
    c->from = fdopen(back[0], "r");
    return c->process > 0 && c->to && c->from;
}

bool cudnn_open(struct cudnn *c, const char *script, const uint16_t *q, const uint16_t *k,
                const uint16_t *v, size_t count)
{
    char line[CUDNN_LINE] = "";
    memset(c, 0, sizeof *c);
    snprintf(c->folder, sizeof c->folder, "%s/hewn-bench-XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    if (!mkdtemp(c->folder)) c->folder[0] = '\0';
    if (c->folder[0] && put_file(c, "q", q, count) && put_file(c, "k", k, count) &&
        put_file(c, "v", v, count) && start(c, script) && answer(c, line)) {
        snprintf(c->about, sizeof c->about, "%.199s", line);
        return true;
    }
    snprintf(c->about, sizeof c->about, "%.199s", *line ? line : "the script does not answer");
    cudnn_close(c);
    return false;
}

/* "ways NAME…" */
static bool read_ways(struct cudnn *c)
{
    char line[CUDNN_LINE], *state = NULL;
    c->ways = 0;
    c->reason[0] = '\0';
    if (!answer(c, line)) return false;
    strtok_r(line, " ", &state);
    for (char *name; c->ways < CUDNN_WAYS && (name = strtok_r(NULL, " ", &state)); c->ways++)
        snprintf(c->way[c->ways], CUDNN_NAME, "%s", name);
    return c->ways > 0;
}

bool cudnn_fixed(struct cudnn *c, int64_t dim, int64_t heads, bool causal, int64_t length,
                 int64_t batch, int64_t times)
{
    fprintf(c->to, "fixed %lld %lld %d %lld %lld %lld\n", (long long)dim, (long long)heads, causal,
            (long long)length, (long long)batch, (long long)times);
    return read_ways(c);
}

bool cudnn_ragged(struct cudnn *c, int64_t dim, int64_t heads, const int64_t *lengths, int count)
{
    fprintf(c->to, "ragged %lld %lld", (long long)dim, (long long)heads);
    for (int i = 0; i < count; i++) fprintf(c->to, " %lld", (long long)lengths[i]);
    fputc('\n', c->to);
    return read_ways(c);
}

bool cudnn_rise(struct cudnn *c, int64_t dim, int64_t length, int keys, int rise)
{
    char line[CUDNN_LINE];
    fprintf(c->to, "rise %lld %lld %d %d\n", (long long)dim, (long long)length, keys, rise);
    return answer(c, line);
}

bool cudnn_output(struct cudnn *c, int way, uint16_t *o, size_t count)
{
    char line[CUDNN_LINE], path[64];
    FILE *f;
    bool ok;
    fprintf(c->to, "output %s\n", c->way[way]);
    if (!answer(c, line)) return false;
    snprintf(path, sizeof path, "%s/o", c->folder);
    f = fopen(path, "rb");
    ok = f && fread(o, sizeof *o, count, f) == count;
    if (f) fclose(f);
    return ok;
}

bool cudnn_time(struct cudnn *c, int way, double *us, int launches)
{
    char line[CUDNN_LINE], *at = line;
    fprintf(c->to, "time %s %d\n", c->way[way], launches);
    if (!answer(c, line)) return false;
    for (int i = 0; i < launches; i++) {
        char *end;
        us[i] = strtod(at, &end);
        if (end == at) return false;
        at = end;
    }
    return true;
}

void cudnn_close(struct cudnn *c)
{
    static const char *const names[] = {"q", "k", "v", "o"};
    if (c->to) fclose(c->to);
    if (c->from) fclose(c->from);
    if (c->process > 0) waitpid(c->process, NULL, 0);
    for (size_t i = 0; *c->folder && i < sizeof names / sizeof names[0]; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%s", c->folder, names[i]);
        unlink(path);
    }
    if (*c->folder) rmdir(c->folder);
    c->to = c->from = NULL;
    c->process = 0;
}
