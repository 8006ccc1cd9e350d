#include "ptx/parse.h"

#include <inttypes.h>

static bool conditional(struct parser *p, struct constant *out);

static bool enter(struct parser *p)
{
    if (++p->nesting > MAX_DEPTH)
        return parse_fail(p, peek(p)->pos, "constant expression is nested too deeply");
    return true;
}

static bool primary(struct parser *p, struct constant *out)
{
    struct token tok = *peek(p);

    if (tok.kind == TOK_INT) {
        next(p);
        *out = (struct constant){(int64_t)tok.value, tok.is_unsigned};
        return true;
    }
    if (tok.kind == TOK_NAME && token_is(&tok, "WARP_SZ")) {
        next(p);
        *out = (struct constant){32, false};
        return true;
    }
    if (tok.kind == TOK_F32 || tok.kind == TOK_F64)
        return parse_fail(p, tok.pos, "a floating-point constant cannot be part of an expression");
    if (!accept(p, '(')) return unexpected(p, "an integer constant");
    return enter(p) && conditional(p, out) && (p->nesting--, expect(p, ')'));
}

/* `(.s64)` or `(.u64)`: true when one was consumed. */
static bool cast(struct parser *p, bool *to_unsigned)
{
    struct token type;

    if (!at_punct(p, '(')) return false;
    type = peek_second(p);
    if (type.kind != TOK_DOT) return false;
    *to_unsigned = token_is(&type, "u64");
    if (!*to_unsigned && !token_is(&type, "s64")) return false;
    next(p);
    next(p);
    return expect(p, ')');
}

static bool unary(struct parser *p, struct constant *out)
{
    bool to_unsigned = false;
    int op;

    if (cast(p, &to_unsigned)) {
        if (!enter(p) || !unary(p, out)) return false;
        p->nesting--;
        out->is_unsigned = to_unsigned;
        return true;
    }
    if (p->failed) return false;
    op = peek(p)->kind == TOK_PUNCT ? peek(p)->punct : 0;
    if (op != '-' && op != '+' && op != '~' && op != '!') return primary(p, out);
    next(p);
    if (!enter(p) || !unary(p, out)) return false;
    p->nesting--;
    if (op == '-') out->value = (int64_t)(0 - (uint64_t)out->value);
    if (op == '~') out->value = ~out->value;
    if (op == '!') *out = (struct constant){!out->value, false};
    return true;
}

/* Binding strength, as in C; 0 for what is no binary operator. */
static int strength(int op)
{
    switch (op) {
    case '*':
    case '/':
    case '%': return 10;
    case '+':
    case '-': return 9;
    case PUNCT_SHL:
    case PUNCT_SHR: return 8;
    case '<':
    case '>':
    case PUNCT_LE:
    case PUNCT_GE: return 7;
    case PUNCT_EQ:
    case PUNCT_NE: return 6;
    case '&': return 5;
    case '^': return 4;
    case '|': return 3;
    case PUNCT_AND: return 2;
    case PUNCT_OR: return 1;
    default: return 0;
    }
}

static bool divide(struct parser *p, const struct token *op, struct constant *a, uint64_t b)
{
    bool rest = op->punct == '%';
    uint64_t x = (uint64_t)a->value;

    if (!b) return parse_fail(p, op->pos, "division by zero in a constant expression");
    if (a->is_unsigned)
        a->value = (int64_t)(rest ? x % b : x / b);
    else if (b == UINT64_MAX) /* by -1: INT64_MIN / -1 would overflow */
        a->value = rest ? 0 : (int64_t)(0 - x);
    else
        a->value = rest ? a->value % (int64_t)b : a->value / (int64_t)b;
    return true;
}

static bool shift(struct parser *p, const struct token *op, struct constant *a, uint64_t count)
{
    if (count > 63)
        return parse_fail(p, op->pos, "shift by %" PRId64 " in a 64-bit constant expression",
                          (int64_t)count);
    if (op->punct == PUNCT_SHL)
        a->value = (int64_t)((uint64_t)a->value << count);
    else
        a->value = a->is_unsigned ? (int64_t)((uint64_t)a->value >> count) : a->value >> count;
    return true;
}

static bool compare(int op, const struct constant *a, const struct constant *b, bool is_unsigned)
{
    bool less = is_unsigned ? (uint64_t)a->value < (uint64_t)b->value : a->value < b->value;
    bool same = a->value == b->value;

    switch (op) {
    case '<': return less;
    case '>': return !less && !same;
    case PUNCT_LE: return less || same;
    case PUNCT_GE: return !less;
    case PUNCT_EQ: return same;
    default: return !same;
    }
}

static bool apply(struct parser *p, const struct token *op, struct constant *a, struct constant b)
{
    uint64_t x = (uint64_t)a->value, y = (uint64_t)b.value;
    bool is_unsigned = a->is_unsigned || b.is_unsigned;

    if (op->punct == PUNCT_SHL || op->punct == PUNCT_SHR) return shift(p, op, a, y);
    a->is_unsigned = is_unsigned;
    switch (op->punct) {
    case '*': a->value = (int64_t)(x * y); return true;
    case '+': a->value = (int64_t)(x + y); return true;
    case '-': a->value = (int64_t)(x - y); return true;
    case '&': a->value = (int64_t)(x & y); return true;
    case '^': a->value = (int64_t)(x ^ y); return true;
    case '|': a->value = (int64_t)(x | y); return true;
    case '/':
    case '%': return divide(p, op, a, y);
    case PUNCT_AND: *a = (struct constant){x && y, false}; return true;
    case PUNCT_OR: *a = (struct constant){x || y, false}; return true;
    default: *a = (struct constant){compare(op->punct, a, &b, is_unsigned), false}; return true;
    }
}

static bool binary(struct parser *p, int floor, struct constant *out)
{
    if (!unary(p, out)) return false;
    for (;;) {
        struct token op = *peek(p);
        int power = op.kind == TOK_PUNCT ? strength(op.punct) : 0;
        struct constant right = {0, false};

        if (!power || power < floor) return true;
        next(p);
        if (!binary(p, power + 1, &right) || !apply(p, &op, out, right)) return false;
    }
}

static bool conditional(struct parser *p, struct constant *out)
{
    struct constant yes = {0, false}, no = {0, false};

    if (!binary(p, 1, out)) return false;
    if (!accept(p, '?')) return true;
    if (!enter(p) || !conditional(p, &yes) || !expect(p, ':') || !conditional(p, &no)) return false;
    p->nesting--;
    *out = out->value ? yes : no;
    out->is_unsigned = yes.is_unsigned || no.is_unsigned;
    return true;
}

bool parse_constant(struct parser *p, struct constant *out)
{
    return conditional(p, out);
}

/* Only a sign may stand before a floating-point literal. */
bool parse_literal(struct parser *p, struct operand *out)
{
    bool sign = at_punct(p, '-') || at_punct(p, '+');
    struct token tok = sign ? peek_second(p) : *peek(p);
    struct constant c = {0, false};

    if (tok.kind == TOK_F32 || tok.kind == TOK_F64) {
        bool negative = sign && next(p).punct == '-';
        next(p);
        if (negative) tok.value ^= tok.kind == TOK_F32 ? 1ULL << 31 : 1ULL << 63;
        out->kind = tok.kind == TOK_F32 ? OPD_F32 : OPD_F64;
        out->imm = (int64_t)tok.value;
        return true;
    }
    if (!parse_constant(p, &c)) return false;
    out->kind = OPD_INT;
    out->imm = c.value;
    return true;
}

bool parse_bounded(struct parser *p, const char *what, int64_t low, int64_t high, int64_t *out)
{
    struct src_pos pos = peek(p)->pos;
    struct constant c = {0, false};

    if (!parse_constant(p, &c)) return false;
    if (c.value < low || c.value > high || (c.is_unsigned && c.value < 0))
        return parse_fail(p, pos, "%s %" PRId64 " is not in %" PRId64 "..%" PRId64, what, c.value,
                          low, high);
    *out = c.value;
    return true;
}
