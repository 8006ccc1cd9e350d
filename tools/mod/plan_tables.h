/* The lists of a plan header as the tables of mod.h: PLAN_RANGES(ROLES(PLAN_ROLE)), and so on. */
#ifndef MOD_PLAN_TABLES_H
#define MOD_PLAN_TABLES_H

#include "mod.h"

#define PLAN_NAME(name)                            #name,
#define PLAN_SCALAR(type, name, rule)              {#name, rule},
#define PLAN_ROLE(name, first, warps)              {#name, first, 1, warps},
#define PLAN_SHARED(name, offset, bytes, count)    {#name, offset, bytes, count},
#define PLAN_TMEM(name, first, columns)            {#name, first, 1, columns},
#define PLAN_HANDOFF(name, count, bytes, from, to) {#name, count, bytes, bytes, #from, #to, 0},
#define PLAN_HANDOFF_SPAN(name, count, least, most, from, to) \
    {#name, count, least, most, #from, #to, 0},
#define PLAN_HANDOFF_MORE(name, count, more, least, most, from, to) \
    {#name, count, least, most, #from, #to, more},
#define PLAN_FLOW(name, writers, readers) {#name, #writers, #readers},

/* Initialisers, each with the end that mod.h asks for; the list may be empty. */
#define PLAN_NAMES(...)    {__VA_ARGS__ NULL}
#define PLAN_SCALARS(...)  {__VA_ARGS__{NULL, NULL}}
#define PLAN_RANGES(...)   {__VA_ARGS__{NULL, 0, 0, 0}}
#define PLAN_HANDOFFS(...) {__VA_ARGS__{NULL, 0, 0, 0, NULL, NULL, 0}}
#define PLAN_FLOWS(...)    {__VA_ARGS__{NULL, NULL, NULL}}

#endif
