#include "lib/verdict.h"

#include "lib/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];
static bool checks;

void verdict_begin(const char *program)
{
    const char *level = getenv("HEWN_SIM_CHECK");
    checks = !level || strcmp(level, "0") != 0;
    if (getenv("HEWN_SIM_REPORT")) return;
    snprintf(path, sizeof path, "/tmp/%s.XXXXXX", program);
    int fd = mkstemp(path);
    if (fd >= 0) close(fd);
    if (fd < 0 || setenv("HEWN_SIM_REPORT", path, 1)) path[0] = '\0';
}

void verdict_end(void)
{
    if (path[0]) unlink(path);
}

static void copy_value(const char *line, const char *key, char *out, size_t size)
{
    const char *at = strstr(line, key);
    size_t n = 0;
    if (at)
        for (at += strlen(key); *at && *at != '"' && n + 1 < size; at++) out[n++] = *at;
    out[n] = '\0';
}

/* One line of the report; true where it is a verdict. `first`: the first finding. */
static bool check_line(const char *line, bool outside, char *first, size_t room)
{
    char kind[48], message[360], word[24];
    copy_value(line, "\"severity\":\"", word, sizeof word);
    copy_value(line, "\"kind\":\"", kind, sizeof kind);
    if (outside && strcmp(kind, "tma-oob-box") == 0) return false;
    if (word[0] && strcmp(word, "advice") != 0 && !first[0]) {
        copy_value(line, "\"message\":\"", message, sizeof message);
        snprintf(first, room, "%s: %s", kind, message);
    }
    copy_value(line, "\"verdict\":\"", word, sizeof word);
    bool accepted = outside && !first[0] && strcmp(word, "review") == 0;
    CHECK(!word[0] || accepted || strcmp(word, "clean") == 0, "the checker says %s (%s)", word,
          first);
    return word[0] != '\0';
}

void verdict_check(bool launched, bool outside)
{
    char *line = NULL, first[440] = "";
    size_t room = 0;
    int verdicts = 0;
    FILE *f = path[0] ? fopen(path, "r") : NULL;
    while (f && getline(&line, &room, f) > 0)
        verdicts += check_line(line, outside, first, sizeof first);
    free(line);
    if (f) fclose(f);
    if (path[0] && checks && launched) CHECK(verdicts > 0, "the checker gave no verdict");
    if (path[0] && truncate(path, 0)) perror(path);
}
