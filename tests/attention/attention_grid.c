#include "attention_grid.h"

#include "attention_data.h"

#include "hewn.h"

#include <stdio.h>
#include <stdlib.h>

static int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

/* ---- the sample ---- */

static const char *const sample[] = {
    /* rows that see no key; no queries; no keys */
    "qk=64 sq=200 sk=100 causal=1 b=2",
    "qk=64 sq=130 sk=130 causal=1 win=-3 b=2",
    "qk=128 sq=0 sk=64",
    "qk=128 sq=40 sk=0 b=2 out=f32",
    "qk=128 sq=40 sk=0 sink=1",
    "qk=64 sq=70 sk=90 keys=1 ragged=2 b=6 causal=1 hq=2 hkv=1",
    "qk=128 packed=1 keys=2 ragged=2 b=7 sq=150 sk=190 hq=2 hkv=2 causal=1 tail=9",
    /* lengths around the tile and the block */
    "qk=64 sq=1 sk=1",
    "qk=64 sq=1 sk=129 hq=4 hkv=4 in=f16 out=f32",
    "qk=128 sq=127 sk=127 causal=1",
    "qk=128 sq=128 sk=128 hq=3 hkv=3 out=f16 in=f16",
    "qk=128 sq=129 sk=129 causal=1 in=f16 out=f16",
    "qk=128 sq=384 sk=1000 b=2 hq=2 hkv=1",
    "qk=64 sq=1000 sk=1000 causal=1 out=f32",
    "qk=128 sq=1024 sk=1024 causal=1",
    /* masks */
    "qk=128 sq=300 sk=300 left=77 right=31 b=2",
    "qk=128 sq=300 sk=300 left=60 causal=1",
    "qk=64 sq=257 sk=400 right=5",
    "qk=128 sq=260 sk=700 causal=1 win=150 b=3",
    "qk=64 sq=100 sk=500 win=130 right=9 b=3 in=f16",
    /* layouts, strides, packing, paging */
    "qk=128 layout=1 b=2 hq=4 hkv=2 sq=150 sk=170 causal=1",
    "qk=64 pad=7 b=3 hq=6 hkv=2 sq=90 sk=210 out=f32",
    "qk=128 pad=11 b=2 hq=2 hkv=2 sq=140 sk=260 layout=1 in=f16 out=f16",
    "qk=128 packed=1 keys=2 ragged=1 b=4 sq=200 sk=300 hq=4 hkv=2 causal=1 layout=1",
    "qk=64 packed=1 keys=1 ragged=2 b=5 sq=140 sk=300 hq=2 hkv=1 pad=3 tail=40",
    "qk=128 page=16 keys=1 ragged=1 b=3 sq=70 sk=300 hq=4 hkv=1 causal=1",
    "qk=128 page=64 keys=1 ragged=2 b=4 sq=17 sk=600 hq=4 hkv=2 layout=1",
    "qk=64 page=256 keys=1 ragged=1 b=2 sq=130 sk=700 pad=5",
    "qk=64 page=1 keys=0 b=2 sq=30 sk=140 in=f16",
    "qk=128 page=48 keys=1 ragged=1 b=2 sq=60 sk=290 packed=1",
    /* heads in a tile */
    "qk=128 hq=16 hkv=1 sq=5 sk=300 pack=16 causal=1",
    "qk=64 hq=24 hkv=2 sq=33 sk=200 pack=8 b=2 causal=1",
    "qk=128 hq=7 hkv=1 sq=50 sk=150 pack=4 out=f32",
    "qk=512 hq=16 hkv=1 sq=4 sk=200 pack=16",
    /* splits */
    "qk=128 hq=8 hkv=1 sq=1 sk=2000 splits=4 b=2",
    "qk=64 hq=2 hkv=2 sq=3 sk=1500 splits=5 sink=1 keys=1 ragged=2 b=3 out=f32",
    "qk=256 hq=2 hkv=1 sq=20 sk=900 splits=3 causal=1 in=f16 out=f16",
    "qk=512 hq=2 hkv=1 sq=9 sk=700 splits=2 packed=1 ragged=1 b=2 tail=3",
    /* sinks, two sources, raw sums */
    "qk=128 sink=1 hq=4 hkv=2 sq=140 sk=260 causal=1 b=2",
    "qk=64 sink=1 hq=4 hkv=2 sq=200 sk=100 causal=1",
    "qk=128 sink=1 hq=3 hkv=1 sq=3 sk=900 splits=4 keys=1 ragged=2 b=4",
    "qk=128 sources=2 hq=2 hkv=1 sq=150 sk=300 causal=1 left=120 sk1=70 b=2",
    "qk=64 sources=2 sq=100 sk=256 win=64 causal=1 sk1=200 keys1=1 ragged=2 b=4 sink=1",
    "qk=512 sources=2 hq=4 hkv=1 sq=20 sk=180 page=64 keys=1 ragged=1 b=2 sk1=130 page1=32 keys1=1",
    "qk=128 sources=2 packed=1 keys=2 keys1=2 ragged=2 b=5 sq=90 sk=140 sk1=60 causal=1 tail=5",
    "qk=128 sources=2 sq=4 sk=700 sk1=500 splits=3 hq=4 hkv=1",
    "qk=128 unnorm=1 out=f32 sq=140 sk=400 causal=1",
    "qk=64 unnorm=1 sq=70 sk=300 hq=2 hkv=1 sink=1",
    "qk=512 unnorm=1 out=f32 sq=30 sk=300 pattern=1",
    /* values */
    "qk=128 sq=130 sk=600 pattern=1",
    "qk=64 sq=130 sk=600 pattern=2 in=f16 out=f16 causal=1",
    "qk=256 sq=100 sk=500 pattern=1 peak=300",
    "qk=128 sq=140 sk=400 pattern=3 causal=1",
    "qk=64 sq=140 sk=400 pattern=3 in=f16 out=f32 left=60 right=20",
    "qk=128 sq=100 sk=300 scale=350 lse=0",
    /* e4m3 and its scales */
    "in=e4m3 qk=128 sq=150 sk=300 causal=1 qs=1 ks=1 vs=1 hq=2 hkv=1",
    "in=e4m3 qk=64 sq=100 sk=500 hq=4 hkv=2 qs=2 ks=2 vs=2 b=2 pad=9",
    "in=e4m3 qk=256 sq=60 sk=200 page=32 keys=1 ragged=1 b=2",
    "in=e4m3 qk=128 packed=1 keys=2 ragged=2 b=4 sq=100 sk=150 pattern=3 vs=2",
    /* more blocks of queries than are taken together: sequences with few, many, none; more than a warp */
    "qk=64 packed=1 keys=2 ragged=2 b=9 sq=1400 sk=1400 hq=2 hkv=2 causal=1",
    "qk=64 packed=1 keys=2 ragged=2 b=40 sq=600 sk=600 causal=1",
    "qk=64 keys=1 ragged=1 b=3 sq=700 sk=700 hq=2 hkv=2 causal=1",
    /* references that grow: from block to block, in the last one, by more than P has room for, with
       rows that see nothing yet, into a sink, and where they are an output */
    "qk=64 sq=130 sk=700 peak=2000 pattern=4 splits=1",
    "qk=128 sq=130 sk=700 peak=2000 pattern=4 splits=1 causal=1",
    "qk=256 v=256 sq=130 sk=700 peak=2000 pattern=4 splits=1",
    "qk=64 sq=130 sk=900 peak=10000 pattern=4 splits=1",
    "qk=128 sq=130 sk=900 peak=10000 pattern=4 splits=1 out=f32",
    "qk=192 v=128 sq=130 sk=900 peak=10000 pattern=4 splits=1",
    "in=f16 out=f16 qk=64 sq=130 sk=900 peak=700 pattern=4 splits=1",
    "in=f16 out=f32 qk=128 sq=130 sk=900 peak=2000 pattern=4 splits=1",
    "qk=64 sq=200 sk=900 peak=5500 pattern=5 splits=1 sink=1",
    "qk=128 sq=200 sk=384 peak=5500 pattern=5 splits=1",
    "qk=128 sq=200 sk=384 peak=8500 pattern=5 splits=1 hq=2 hkv=1",
    "qk=128 sq=200 sk=600 peak=30000 pattern=5 splits=1",
    "qk=64 sq=200 sk=600 peak=30000 pattern=5 splits=1 left=150 right=20",
    "qk=128 sq=200 sk=900 peak=6400 splits=1",
    "qk=64 sq=200 sk=900 peak=6400 splits=1 win=-3 b=3",
    "in=f16 out=f16 qk=128 sq=200 sk=900 peak=1600 splits=1",
    "in=f16 out=f32 qk=64 sq=200 sk=900 peak=6400 splits=1 left=300",
    "qk=64 unnorm=1 sq=130 sk=700 peak=2000 pattern=4",
    "qk=128 unnorm=1 out=f32 sq=130 sk=700 peak=300 pattern=4",
    "in=f16 out=f32 qk=128 unnorm=1 sq=130 sk=700 peak=12000 pattern=5",
    /* pages asked for ahead: by shift and by division, boxes of four rows, in one source of two */
    "qk=64 page=4 keys=1 ragged=1 b=2 sq=70 sk=500 hq=4 hkv=2",
    "qk=128 page=200 keys=1 ragged=2 b=2 sq=130 sk=700 hq=2 hkv=2",
    "qk=128 page=256 keys=1 b=2 sq=130 sk=700 hq=2 hkv=2 sources=2 sk1=333 page1=8 keys1=1",
    "qk=64 page=24 keys=1 ragged=2 b=2 sq=130 sk=400 hq=2 hkv=2 sources=2 sk1=333 keys1=1",
    "qk=64 keys=1 ragged=2 b=2 sq=130 sk=400 hq=2 hkv=2 sources=2 sk1=333 page1=16 keys1=1",
};

/* Few rows, where sm_90a shares the keys among its SMs by the lengths. */
static const char *const few_rows[] = {
    "qk=128 sq=1 sk=100 hq=4",
    "qk=128 sq=1 sk=3000 hq=16 hkv=4 keys=1 ragged=2 b=5 out=f32",
    "qk=128 sq=1 sk=900 hq=1 b=3 in=f16 out=f16",
    "qk=128 sq=1 sk=700 hq=5 page=16 keys=1 ragged=1 b=3",
    "qk=128 sq=1 sk=700 hq=4 page=1 keys=1 ragged=2 b=3 sink=1",
    "qk=128 sq=3 sk=500 hq=8 hkv=2 page=13 keys=1 ragged=2 b=5 causal=1",
    "qk=128 sq=2 sk=600 hq=12 hkv=1 page=256 keys=1 ragged=1 b=2 layout=1",
    "qk=128 sq=1 sk=500 hq=2 page=128 keys=0 b=2 pad=3",
    "qk=128 sq=4 sk=500 hq=16 hkv=1 causal=1 b=2 sink=1",
    "qk=128 sq=9 sk=400 pattern=3 causal=1 in=f16",
    "qk=128 sq=2 sk=1200 hq=8 pattern=1 peak=300 b=2",
    "qk=128 sq=5 sk=3 hq=2 sink=1 b=3 causal=1",
    "qk=128 sq=8 sk=700 hq=4 hkv=1 left=200 right=2 b=2",
    "qk=64 sq=4 sk=900 hq=16 hkv=1 causal=1 b=2 packed=1 keys=2 ragged=2 tail=4",
    "qk=64 sq=1 sk=140 hq=2 b=500 packed=1 keys=2 ragged=2",
    "qk=64 sq=1 sk=40 hq=2 sink=1 b=700 keys=1 ragged=2",
    "qk=64 sq=6 sk=500 hq=4 causal=1 win=-90 b=4",
    "qk=96 sq=4 sk=300 hq=10 hkv=1 causal=1 b=2 page=61 keys=1 ragged=1",
    "qk=96 sq=2 sk=300 hq=10 hkv=2 packed=1 b=5 keys=2 ragged=2 in=f16",
    "qk=96 sq=150 sk=200 hq=2 causal=1 out=f32",
    /* two KV heads a tile; the last three also on 132 SMs */
    "qk=96 sq=1 sk=700 hq=16 hkv=4 b=3",
    "qk=96 sq=1 sk=3000 hq=64 hkv=4 in=f16 out=f16 page=8 keys=1",
    "qk=96 sq=5 sk=260 hq=24 hkv=4 b=9 page=5 keys=1 ragged=1 in=f16 out=f32",
    "qk=96 sq=2 sk=500 hq=40 hkv=8 b=33 page=16 keys=1 ragged=2 causal=1 sink=1",
    "qk=96 sq=6 sk=400 hq=4 hkv=2 b=135 tree=1 keys=1 ragged=2 left=300",
    "qk=96 sq=11 sk=400 hq=12 hkv=6 b=45 packed=1 keys=2 ragged=2 tail=3 cap=2000 pattern=3",
    /* rows one behind the other */
    "qk=96 sq=1 sk=700 hq=4 hkv=1 b=3 page=32 keys=1 ragged=2",
    "qk=96 sq=3 sk=700 hq=4 hkv=4 b=2 layout=1 causal=1",
    "kv=3 qk=96 sq=2 sk=700 hq=8 hkv=1 b=3 ks=1",
    "qk=192 sq=2 sk=300 hq=10 hkv=2 b=2 page=64 keys=1 ragged=1 in=f16 out=f32",
    "qk=192 sq=3 sk=400 hq=20 hkv=1 b=2 causal=1",
    "qk=256 sq=2 sk=300 hq=32 hkv=2 left=100 right=3 b=2",
    "qk=256 sq=1 sk=800 hq=8 hkv=2 page=32 keys=1 ragged=2 b=4",
    "qk=512 sq=2 sk=300 hq=8 hkv=2 win=-100 causal=1 b=4",
    "qk=512 sq=40 sk=300 hq=2 hkv=2 causal=1 pattern=1 in=f16",
    "qk=128 sq=70 sk=100 causal=1 hq=2 sink=1 schedule=2",
    "qk=128 sq=1 sk=900 hq=4 schedule=1",
    "qk=128 sq=7 sk=600 hq=4 hkv=2 b=3 tree=1 keys=1 ragged=2",
    "qk=64 sq=64 sk=300 hq=1 b=2 tree=1 in=f16 left=90",
    "qk=128 sq=12 sk=260 hq=8 hkv=2 b=4 tree=1 packed=1 keys=2 ragged=2 tail=3 out=f32",
    "qk=256 sq=16 sk=400 hq=16 hkv=1 b=2 tree=1 page=16 keys=1 ragged=1 sink=1",
};

/* Scores that a soft cap bends: slightly, and so that most of them are at the cap; masks, sinks, splits,
 * two sources and references that grow go by the capped scores. */
static const char *const capped[] = {
    "qk=64 sq=140 sk=300 causal=1 cap=5000",
    "qk=64 sq=1000 sk=1000 cap=100 peak=400 in=f16 out=f16",
    "qk=128 sq=300 sk=700 causal=1 left=200 cap=3000 peak=800 hq=2",
    "qk=128 sq=130 sk=900 cap=700 pattern=4 peak=2000 splits=1 sink=1 out=f32",
    "qk=128 sq=140 sk=400 cap=400 pattern=3 causal=1",
    "in=f16 qk=128 sq=150 sk=300 sources=2 sk1=500 cap=900 b=2 packed=1 keys=2 keys1=2 ragged=2",
    "qk=256 sq=135 sk=600 causal=1 cap=5000 peak=1000",
    "qk=256 in=f16 out=f32 sq=70 sk=300 cap=200 pattern=3 hq=2",
    "qk=64 unnorm=1 out=f32 sq=140 sk=400 cap=1500 peak=800",
    "qk=128 sq=9 sk=900 hq=2 splits=3 cap=2000 peak=500",
    "qk=128 sq=1 sk=3000 hq=16 hkv=4 keys=1 ragged=2 b=5 cap=5000",
    "qk=64 sq=4 sk=900 hq=16 causal=1 b=2 cap=300 peak=500 sink=1 in=f16",
    "qk=96 sq=20 sk=300 hq=4 cap=1000 page=16 keys=1 ragged=1 b=2",
    "qk=192 sq=140 sk=300 causal=1 cap=3000 peak=300",
    "qk=256 sq=2 sk=700 hq=8 hkv=2 b=2 cap=5000 pattern=3 in=f16",
    "qk=512 sq=7 sk=500 hq=4 cap=2500 peak=1000 tree=1 b=2",
};

/* e4m3 K and V (kv=3) beside 16-bit Q: tiles of every size, tails, scales, pages by boxes and by rows. */
static const char *const narrow[] = {
    "kv=3 qk=128 sq=1 sk=100 hq=4 ks=1 vs=1",
    "kv=3 qk=128 sq=1 sk=3000 hq=16 hkv=4 keys=1 ragged=2 b=5 ks=2 vs=2",
    "kv=3 qk=128 in=f16 out=f16 sq=3 sk=700 hq=8 hkv=1 b=2 causal=1 vs=1",
    "kv=3 qk=128 sq=8 sk=900 hq=16 hkv=2 b=2 causal=1 ks=2 out=f32",
    "kv=3 qk=128 sq=40 sk=500 hq=4 in=f16 out=f32 causal=1 left=100 schedule=2",
    "kv=3 qk=128 sq=1 sk=700 hq=4 page=16 keys=1 ragged=1 b=3 vs=2 hkv=2",
    "kv=3 qk=128 sq=2 sk=700 hq=4 page=1 keys=1 ragged=2 b=3 sink=1",
    "kv=3 qk=128 sq=3 sk=500 hq=8 hkv=2 page=13 keys=1 ragged=2 b=4 causal=1 ks=2 vs=2 in=f16",
    "kv=3 qk=128 sq=4 sk=400 hq=2 pattern=3 causal=1 pad=5",
    "kv=3 qk=128 sq=2 sk=1200 hq=8 pattern=1 peak=300 b=2 cap=2000 ks=2 hkv=2",
    "kv=3 qk=256 sq=1 sk=900 hq=8 hkv=2 b=2 ks=2 vs=2",
    "kv=3 qk=256 in=f16 sq=5 sk=500 hq=16 hkv=1 page=64 keys=1 ragged=1 b=2 causal=1",
    "kv=3 qk=256 sq=3 sk=300 hq=8 packed=1 keys=2 ragged=2 b=5 page=0 tail=3",
    "kv=3 qk=128 sq=2 sk=5000 hq=8 hkv=2 inv=1 keys=1 ragged=1 b=2 vs=2 tree=1",
    /* rows of 64 bytes one by one and by boxes; rows of 96; units that end within a row */
    "kv=3 qk=64 sq=1 sk=900 hq=8 hkv=2 page=5 keys=1 ragged=2 b=3 ks=2 vs=2",
    "kv=3 qk=64 in=f16 sq=4 sk=600 hq=16 hkv=1 page=48 keys=1 ragged=1 b=2 causal=1",
    "kv=3 qk=96 sq=3 sk=500 hq=8 hkv=2 page=7 keys=1 ragged=2 b=3 ks=1 sink=1",
    "kv=3 qk=96 in=f16 out=f32 sq=2 sk=700 hq=8 packed=1 keys=2 ragged=2 b=4 tail=3",
    "kv=3 qk=192 sq=2 sk=700 hq=8 hkv=2 page=3 keys=1 ragged=2 b=3 causal=1 vs=2",
    "kv=3 qk=192 in=f16 sq=1 sk=1500 hq=16 hkv=2 page=64 keys=1 ragged=1 b=2 ks=2 vs=1",
    "kv=3 qk=512 sq=2 sk=600 hq=8 hkv=2 page=1 keys=1 ragged=2 b=2 ks=2 vs=2 tree=1",
    "kv=3 qk=512 in=f16 out=f16 sq=8 sk=400 hq=8 hkv=2 page=32 keys=1 ragged=1 b=2 causal=1",
    /* several tiles a CTA, one behind the other */
    "kv=3 qk=64 sq=2 sk=150 hq=4 b=400 pattern=3 keys=1 ragged=2",
    "kv=3 qk=128 sq=1 sk=140 hq=4 hkv=2 b=200 packed=1 keys=2 ragged=2 in=f16 vs=2",
    /* rows of Q far below 1, and among them rows that count */
    "kv=3 qk=128 sq=4 sk=500 hq=16 hkv=1 fade=1 ks=1",
    "kv=3 qk=96 sq=16 sk=300 hq=4 hkv=1 fade=1 cap=2000 peak=300",
    "kv=3 qk=512 sq=8 sk=200 hq=4 hkv=1 fade=1 peak=300 causal=1",
    "kv=3 qk=64 sq=8 sk=900 hq=8 hkv=1 pattern=3 cap=3000 ks=2",
};

/* Lanes of the planner that wait for Q's place one behind the other: behind rows that see no key. */
static const char *const apart[] = {
    "in=f16 out=f32 qk=64 b=4 hq=2 hkv=2 sq=257 sk=63 right=4 keys=1 pack=1 splits=5",
};

/* 256 columns from small pages: boxes of all columns, but not where heads are apart. */
static const char *const small_pages[] = {
    "qk=256 sq=150 sk=431 page=16 keys=1 ragged=2 b=3 hq=4 hkv=2 causal=1",
    "qk=256 in=f16 out=f32 sq=70 sk=300 page=16 keys=1 sources=2 sk1=333 keys1=1 page1=8 b=2",
    "qk=256 sq=140 sk=700 page=24 keys=1 ragged=1 b=2 hq=2 hkv=1 causal=1 splits=2",
    "qk=256 out=f32 sq=130 sk=300 page=32 keys=1 ragged=2 b=2 hq=4 hkv=2 layout=1",
    /* four KV heads a tile; the last also on 132 SMs */
    "kv=3 qk=96 sq=1 sk=700 hq=16 hkv=4 b=3 ks=1",
    "kv=3 qk=96 sq=2 sk=900 hq=32 hkv=8 b=3 page=16 keys=1 ragged=2 causal=1 in=f16 sink=1",
    "kv=3 qk=96 sq=7 sk=600 hq=4 hkv=4 b=4 packed=1 keys=2 ragged=1 tree=1 vs=1 out=f32",
    "kv=3 qk=96 sq=1 sk=400 hq=40 hkv=8 b=66 page=4 keys=1 ragged=2 cap=2000 pattern=3",
    /* two of 64 columns, likewise */
    "qk=64 sq=1 sk=700 hq=16 hkv=4 b=3",
    "qk=64 sq=4 sk=600 hq=16 hkv=4 b=2 in=f16 out=f16 page=16 keys=1 ragged=1 causal=1 sink=1",
    "qk=64 sq=8 sk=500 hq=8 hkv=2 b=4 packed=1 keys=2 ragged=2 tail=3 out=f32 tree=1",
    "qk=64 sq=1 sk=400 hq=64 hkv=8 b=66 page=4 keys=1 ragged=2 cap=2000 pattern=3",
    "kv=3 qk=64 sq=1 sk=700 hq=16 hkv=4 b=3 ks=1",
    "kv=3 qk=64 sq=4 sk=600 hq=16 hkv=4 b=2 in=f16 out=f16 page=16 keys=1 ragged=1 causal=1 vs=1",
    "kv=3 qk=64 sq=16 sk=500 hq=4 hkv=2 b=4 packed=1 keys=2 ragged=2 left=300 out=f32 fade=1",
    "kv=3 qk=64 sq=1 sk=400 hq=64 hkv=8 b=66 page=4 keys=1 ragged=2 cap=2000 pattern=3",
};

/* e4m3 inputs: what the 16-bit cases above vary, scales of all kinds, outputs in e4m3. */
static const char *const eight_bit[] = {
    "in=e4m3 qk=64 sq=257 sk=257 causal=1 hq=8 hkv=2 b=2 layout=1",
    "in=e4m3 qk=96 sq=200 sk=700 hq=2 hkv=1 left=150 right=20 pad=3",
    "in=e4m3 qk=128 out=f16 sq=130 sk=900 keys=1 ragged=2 b=3 win=-60 causal=1",
    ("in=e4m3 qk=128 out=f32 sq=150 sk=300 packed=1 keys=2 ragged=2 b=6 tail=9 causal=1 sink=1 "
     "hq=4 hkv=2"),
    "in=e4m3 qk=128 sq=300 sk=500 page=16 keys=1 ragged=1 b=2 hq=2 hkv=1",
    "in=e4m3 qk=64 sq=140 sk=300 page=48 keys=1 ragged=2 b=3 causal=1",
    "in=e4m3 qk=192 v=128 out=f32 sq=150 sk=300 causal=1 page=1 keys=1 ragged=1 b=2 hq=2 hkv=1",
    "in=e4m3 qk=256 sq=140 sk=400 page=64 keys=1 ragged=1 b=2 causal=1",
    "in=e4m3 qk=128 sq=5 sk=1500 hq=8 hkv=2 splits=3 sink=1",
    /* 256 columns: items of one block and of many, ends in either half of a block, pages of one row */
    "in=e4m3 qk=256 sq=150 sk=65 hq=4 hkv=2 b=3 sink=1 qs=3 ks=3 vs=3 out=f32",
    "in=e4m3 qk=256 sq=130 sk=700 left=200 right=40 layout=1 hq=2 hkv=1",
    "in=e4m3 qk=256 sources=2 packed=1 keys=2 keys1=2 ragged=2 b=5 sq=90 sk=340 sk1=130 causal=1",
    "in=e4m3 qk=256 sq=70 sk=300 page=1 keys=1 ragged=2 b=2 causal=1 hq=2 hkv=2",
    "in=e4m3 qk=256 sq=5 sk=1500 hq=8 hkv=2 splits=3 sink=1",
    "in=e4m3 qk=256 unnorm=1 out=f32 sq=140 sk=400 causal=1 win=-120 b=2",
    "in=e4m3 qk=256 sq=130 sk=700 peak=2000 pattern=4 splits=1",
    "in=e4m3 qk=256 sq=300 sk=500 packed=1 keys=1 page=48 ragged=1 b=3 hq=2 hkv=1",
    "in=e4m3 qk=64 sq=20 sk=700 hq=4 hkv=1 pack=3 splits=2 out=f16 causal=1",
    "in=e4m3 qk=128 sources=2 sq=150 sk=300 sk1=170 left=120 causal=1 hq=2 hkv=1 b=2 sink=1",
    ("in=e4m3 qk=64 sources=2 packed=1 keys=2 keys1=2 ragged=2 b=5 sq=90 sk=140 sk1=60 causal=1 "
     "tail=5"),
    "in=e4m3 qk=128 unnorm=1 out=f32 sq=140 sk=400 causal=1",
    "in=e4m3 qk=96 unnorm=1 out=f32 sq=70 sk=300 hq=2 hkv=1 sink=1 vs=4 b=2",
    "in=e4m3 qk=128 sq=130 sk=700 peak=2000 pattern=4 splits=1",
    "in=e4m3 qk=64 sq=200 sk=900 peak=5500 pattern=5 splits=1 sink=1",
    "in=e4m3 qk=128 sq=130 sk=600 pattern=1 peak=300",
    "in=e4m3 qk=192 v=128 sq=130 sk=400 pattern=3 causal=1 out=f32",
    "in=e4m3 qk=64 sq=140 sk=200 qs=3 ks=3 vs=3 hq=4 hkv=2",
    "in=e4m3 qk=128 sq=60 sk=200 qs=4 ks=4 vs=4 hq=6 hkv=2 b=3 sgap=5 causal=1",
    "in=e4m3 qk=96 sq=60 sk=200 qs=5 ks=5 vs=5 hq=6 hkv=2 b=3 pack=2",
    "in=e4m3 qk=128 sq=90 sk=150 qs=5 ks=1 vs=4 sgap=1 packed=1 keys=2 ragged=2 b=5 hq=4 hkv=2",
    "in=e4m3 qk=64 sq=100 sk=300 qs=4 vs=5 hq=4 hkv=2 b=2 splits=2 unnorm=0 sink=1",
    /* sums promoted: after every block, after some, in the block that ends an item; items of fewer */
    "in=e4m3 promo=1 qk=64 sq=257 sk=400 causal=1 hq=8 hkv=2 b=2",
    "in=e4m3 promo=4 qk=96 sq=140 sk=1300 left=900 hq=2 hkv=1 out=f32",
    "in=e4m3 promo=1 qk=128 sq=130 sk=1024 vs=1 b=3 keys=1 ragged=2",
    "in=e4m3 promo=2 qk=128 sq=300 sk=700 packed=1 keys=2 ragged=2 b=6 tail=9 causal=1 sink=1 hq=4",
    "in=e4m3 promo=4 qk=128 sq=300 sk=1500 page=16 keys=1 ragged=1 b=2 hq=2 hkv=1 causal=1",
    "in=e4m3 promo=4 qk=192 v=128 sq=140 sk=1200 causal=1 b=2 out=f16",
    "in=e4m3 promo=1 qk=192 v=128 sources=2 sq=150 sk=300 sk1=470 left=120 causal=1 hq=2 hkv=1",
    "in=e4m3 promo=1 qk=256 sq=140 sk=500 page=64 keys=1 ragged=1 b=2 causal=1",
    "in=e4m3 promo=1 qk=256 sq=130 sk=700 peak=2000 pattern=4 splits=1 sink=1",
    "in=e4m3 promo=3 qk=128 sq=130 sk=1700 peak=2000 pattern=4 splits=1",
    "in=e4m3 promo=1 qk=64 sq=200 sk=900 peak=5500 pattern=5 splits=1 sink=1",
    "in=e4m3 promo=2 qk=128 sq=130 sk=900 pattern=1 peak=300 causal=1",
    "in=e4m3 promo=1 qk=128 sq=130 sk=600 pattern=3 causal=1 out=f32",
    "in=e4m3 promo=4 qk=128 sq=5 sk=3000 hq=8 hkv=2 splits=3 sink=1",
    "in=e4m3 promo=2 qk=64 unnorm=1 out=f32 sq=140 sk=900 causal=1",
    "in=e4m3 promo=1 out=e4m3 qk=96 sq=135 sk=300 os=1 vs=5 hq=4 hkv=2 b=2 pad=5",
    "in=e4m3 promo=-1 qk=128 sq=130 sk=600",
    /* V as columns: ends within a group of 16 keys and behind one, of K and V longer than any */
    "in=e4m3 vt=1 qk=64 sq=257 sk=257 causal=1 hq=8 hkv=2 b=2",
    "in=e4m3 vt=1 qk=96 sq=200 sk=709 hq=2 hkv=1 left=150 right=20 promo=1",
    "in=e4m3 vt=1 qk=128 sq=130 sk=900 keys=1 ragged=2 b=3 win=-60 causal=1 vs=3 promo=4",
    "in=e4m3 vt=1 qk=128 sq=150 sk=300 packed=1 keys=1 ragged=2 b=6 causal=1 sink=1 hq=4 hkv=2",
    "in=e4m3 vt=1 qk=192 v=128 sq=140 sk=3 out=f32 b=2",
    "in=e4m3 vt=1 qk=192 v=128 sources=2 sq=150 sk=300 sk1=171 keys1=1 ragged=1 b=3 promo=2",
    "in=e4m3 vt=1 qk=256 sq=140 sk=333 causal=1 b=2 hq=4 hkv=2 layout=1 promo=1",
    "in=e4m3 vt=1 qk=256 sq=100 sk=500 packed=1 keys=1 ragged=2 b=5 pattern=2",
    "in=e4m3 vt=1 qk=128 sq=40 sk=0 b=2",
    /* the soft cap */
    "in=e4m3 qk=64 sq=140 sk=300 causal=1 cap=5000 hq=2 qs=2",
    "in=e4m3 qk=96 sq=140 sk=700 cap=700 pattern=4 peak=2000 splits=1 sink=1 out=f32",
    "in=e4m3 qk=128 sq=300 sk=700 causal=1 left=200 cap=3000 peak=800 hq=4 hkv=2 qs=3 ks=3",
    "in=e4m3 qk=192 sq=140 sk=300 causal=1 cap=3000 peak=300",
    "in=e4m3 qk=256 sq=135 sk=600 causal=1 cap=5000 peak=1000 keys=1 ragged=2 b=3",
    "in=e4m3 qk=128 sq=140 sk=400 cap=400 pattern=3 causal=1 page=16 keys=1 ragged=1 b=2",
    "in=e4m3 out=e4m3 qk=64 sq=140 sk=200 os=1 causal=1 hq=2 hkv=1",
    "in=e4m3 out=e4m3 qk=96 sq=135 sk=300 os=1 vs=5 hq=4 hkv=2 b=2 pad=5",
    "in=e4m3 out=e4m3 qk=128 sq=150 sk=150 packed=1 keys=2 ragged=2 b=4 tail=3 causal=1 vs=1",
    "in=e4m3 out=e4m3 qk=192 v=128 sq=50 sk=300 keys=1 ragged=2 b=3 os=1 sink=1",
    "in=e4m3 out=e4m3 qk=256 sq=130 sk=260 os=1 page=32 keys=1 ragged=1 b=2",
    "in=e4m3 out=e4m3 qk=512 sq=20 sk=260 os=1 hq=2 hkv=1",
    "in=e4m3 out=e4m3 qk=128 sq=5 sk=900 hq=4 hkv=2 splits=3 os=1 vs=4 b=2",
};

/* Scores that are all negative: maxima that rise, and that do not. */
static const char *const below_zero[] = {
    "in=e4m3 qk=128 sq=130 sk=900 pattern=8 peak=300",
    "in=e4m3 qk=64 sq=150 sk=500 pattern=8 peak=-200 causal=1 splits=1 sink=1",
    "in=e4m3 qk=96 sq=70 sk=600 pattern=8 peak=100 promo=1 left=300",
    "in=e4m3 qk=192 v=128 sq=130 sk=400 pattern=8 peak=500 causal=1",
    "in=e4m3 qk=256 sq=130 sk=700 pattern=8 peak=400 splits=1",
    "in=e4m3 promo=1 qk=128 sq=130 sk=900 pattern=8 peak=300",
};

struct dims {
    int64_t qk, v;
};
static const struct dims all_dims[] = {{64, 64},   {96, 96},   {128, 128},
                                       {192, 128}, {256, 256}, {512, 512}};
enum { DIMS = sizeof all_dims / sizeof all_dims[0] };
static const int inputs[] = {HEWN_BF16, HEWN_F16, HEWN_E4M3};
static const int outputs[] = {HEWN_BF16, HEWN_F32, HEWN_F16};

/* Two cases of each module: causal, two blocks of keys and two tiles of queries; and one whose
 * maximum grows from block to block. */
static void every_module(attention_visit *visit, void *user)
{
    for (int in = 0; in < 3; in++)
        for (int n = 0; n < DIMS; n++) {
            struct attention_case c;
            attention_case_init(&c);
            c.in = inputs[in], c.out = outputs[(in + n) % 3];
            c.qk = all_dims[n].qk, c.v = all_dims[n].v;
            c.hq = 2, c.hkv = 1 + n % 2, c.sq = 135, c.source[0].sk = 215;
            c.source[0].causal = 1;
            c.source[0].left = n % 3 == 2 ? 100 : -1;
            visit(user, &c);
            c.hq = c.hkv, c.sq = 40, c.source[0].sk = 420;
            c.source[0].causal = 0, c.source[0].left = -1;
            c.pattern = n % 2 ? PATTERN_SPIKES : PATTERN_RISING;
            c.peak = 200;
            visit(user, &c);
        }
}

static void visit_texts(attention_visit *visit, void *user, const char *const *texts, size_t count)
{
    char word[64];
    for (size_t n = 0; n < count; n++) {
        struct attention_case c;
        if (!attention_case_parse(&c, texts[n], word)) {
            fprintf(stderr, "attention: '%s' in the sample\n", word);
            exit(2);
        }
        visit(user, &c);
    }
}

void attention_sample(attention_visit *visit, void *user)
{
    every_module(visit, user);
    visit_texts(visit, user, sample, sizeof sample / sizeof sample[0]);
}

void attention_small_pages(attention_visit *visit, void *user)
{
    visit_texts(visit, user, small_pages, sizeof small_pages / sizeof small_pages[0]);
}

void attention_eight_bit(attention_visit *visit, void *user)
{
    visit_texts(visit, user, eight_bit, sizeof eight_bit / sizeof eight_bit[0]);
}

void attention_below_zero(attention_visit *visit, void *user)
{
    visit_texts(visit, user, below_zero, sizeof below_zero / sizeof below_zero[0]);
}

void attention_few_rows(attention_visit *visit, void *user)
{
    visit_texts(visit, user, few_rows, sizeof few_rows / sizeof few_rows[0]);
}

void attention_capped(attention_visit *visit, void *user)
{
    visit_texts(visit, user, capped, sizeof capped / sizeof capped[0]);
}

/* Each module: a full tile of each size, causal, over three blocks. */
static void every_narrow_module(attention_visit *visit, void *user)
{
    static const int64_t heads[] = {4, 8, 16};
    for (int in = 0; in < 2; in++)
        for (int n = 0; n < DIMS; n++)
            for (int h = 0; h < 3; h++) {
                struct attention_case c;
                attention_case_init(&c);
                c.in = inputs[in], c.out = outputs[(in + n + h) % 3];
                c.kv = HEWN_E4M3;
                c.qk = all_dims[n].qk, c.v = all_dims[n].v;
                c.hkv = 2, c.hq = 2 * heads[h], c.sq = 4, c.source[0].sk = 300 + h;
                c.source[0].causal = 1;
                c.ks = h, c.vs = 2 - h;
                visit(user, &c);
            }
}

void attention_narrow(attention_visit *visit, void *user)
{
    every_narrow_module(visit, user);
    visit_texts(visit, user, narrow, sizeof narrow / sizeof narrow[0]);
    visit_texts(visit, user, apart, sizeof apart / sizeof apart[0]);
}

/* ---- the grid ---- */

enum mask { FULL, CAUSAL, WINDOW, SWA_LEN, MASKS };
enum heads { MHA, GQA4, MQA16, HEADS };

static void set_mask(struct attention_case *c, enum mask mask, int64_t length)
{
    struct attention_case_source *s = &c->source[0];
    switch (mask) {
    case CAUSAL: s->causal = 1; break;
    case WINDOW: s->left = length / 4 + 3, s->right = length / 8; break;
    case SWA_LEN: s->causal = 1, s->win = length / 3 + 1; break;
    default: break;
    }
}

/* From length 1000 on one KV head; there, MQA takes 64 query tokens of 16 heads, and 4096 keys meet
 * 4096 queries of one head or the last 1024 of four. */
static void set_heads(struct attention_case *c, enum heads heads, int64_t length)
{
    c->hkv = length < 384 ? 2 : 1;
    c->hq = c->hkv * (heads == MHA ? 1 : heads == GQA4 ? 4 : 16);
    c->b = length < 384 ? 2 : 1;
    c->sq = length;
    if (heads == GQA4) c->sq = least(length, 1024);
    if (heads == MQA16) c->sq = length < 1000 ? length : 64, c->pack = 16;
}

static void grid_of(attention_visit *visit, void *user, const struct dims *dims, int64_t length,
                    int index)
{
    for (int mask = 0; mask < MASKS; mask++)
        for (int heads = 0; heads < HEADS; heads++) {
            struct attention_case c;
            attention_case_init(&c);
            c.in = (index + mask + heads) % 2 ? HEWN_F16 : HEWN_BF16;
            c.out = (index + mask) % 4 == 3 ? HEWN_F32 : c.in;
            c.qk = dims->qk, c.v = dims->v;
            c.source[0].sk = length;
            set_heads(&c, (enum heads)heads, length);
            set_mask(&c, (enum mask)mask, length);
            visit(user, &c);
        }
}

void attention_grid(attention_visit *visit, void *user)
{
    static const int64_t lengths[] = {1, 17, 127, 128, 129, 384, 1000, 1024, 4096};
    static const int64_t fewer[] = {17, 129, 384, 1024};
    for (int n = 0; n < DIMS; n++) {
        const bool main_grid = all_dims[n].qk != 96 && all_dims[n].qk != 192;
        for (int l = 0; l < (main_grid ? 9 : 4); l++)
            grid_of(visit, user, &all_dims[n], main_grid ? lengths[l] : fewer[l], n + l);
    }
}

/* ---- random cases ---- */

static int64_t below(struct rng *r, int64_t bound)
{
    return rng_below(r, (uint32_t)bound);
}

static int64_t length(struct rng *r, int64_t most)
{
    switch (below(r, 8)) {
    case 0: return below(r, 4);
    case 1: return 126 + below(r, 5);
    case 2: return least(most, 254 + below(r, 5));
    case 3: return 1 + below(r, most);
    default: return 1 + below(r, most / 3);
    }
}

static void random_mask(struct rng *r, struct attention_case_source *s)
{
    int64_t kind = below(r, 6);
    if (kind == 1 || kind == 2 || kind == 3) s->causal = 1;
    if (kind == 2 || kind == 4) s->left = below(r, 3) ? below(r, s->sk + 2) : below(r, 3);
    if (kind >= 4) s->right = below(r, 3) ? below(r, s->sk / 2 + 2) : 0;
}

static void random_source(struct rng *r, struct attention_case *c, int n)
{
    struct attention_case_source *s = &c->source[n];
    static const int64_t pages[] = {16, 32, 64, 128, 256};
    s->sk = length(r, 700);
    s->keys = below(r, 3);
    if (s->keys != HEWN_KEYS_PACKED && below(r, 3) == 0)
        s->page = below(r, 2) ? pages[below(r, 5)] : 1 + below(r, 256);
    random_mask(r, s);
    if (n == 0 && below(r, 5) == 0) {
        s->left = -1;
        s->win = 1 + below(r, s->sk + 8);
        if (below(r, 4) == 0) s->win = -s->win;
    }
}

static void random_heads(struct rng *r, struct attention_case *c)
{
    static const int64_t groups[] = {1, 1, 2, 3, 4, 5, 8, 16};
    c->hkv = 1 + below(r, 3);
    c->hq = c->hkv * groups[below(r, 8)];
    if (below(r, 3) == 0) c->pack = 1 + below(r, c->hq / c->hkv);
}

static void random_outputs(struct rng *r, struct attention_case *c)
{
    c->out = outputs[below(r, 3)];
    c->lse = below(r, 8) != 0;
    c->sink = below(r, 4) == 0;
    if (below(r, 5) == 0) c->unnorm = 1, c->lse = 1;
    if (!c->unnorm && below(r, 3) == 0) c->splits = 1 + below(r, 6);
    if (c->unnorm) c->splits = 1;
}

static void random_values(struct rng *r, struct attention_case *c)
{
    c->pattern = below(r, 2) ? PATTERN_NORMAL : below(r, PATTERNS);
    if (below(r, 4) == 0) c->peak = 30 + below(r, 400);
    if (below(r, 5) == 0) c->scale = 20 + below(r, 300);
    if (c->in == HEWN_E4M3) c->qs = below(r, 3), c->ks = below(r, 3), c->vs = below(r, 3);
}

/* Products of the case, in multiply-adds. */
static int64_t work(const struct attention_case *c)
{
    int64_t keys = c->source[0].sk + (c->sources > 1 ? c->source[1].sk : 0);
    return c->b * c->hq * c->sq * keys * 2 * c->qk;
}

void attention_random(struct rng *r, struct attention_case *c)
{
    do {
        const struct dims *dims = &all_dims[below(r, DIMS)];
        attention_case_init(c);
        c->in = inputs[below(r, 5) % 3];
        c->qk = dims->qk, c->v = below(r, 2) ? dims->v : 0;
        c->b = 1 + below(r, 4);
        c->sq = length(r, 400);
        c->packed = below(r, 3) == 0;
        c->ragged = below(r, 3);
        c->tail = below(r, 3) ? 0 : below(r, 40);
        c->layout = below(r, 2);
        c->pad = below(r, 2) ? 1 + below(r, 1 << 20) : 0;
        random_heads(r, c);
        random_source(r, c, 0);
        if (below(r, 4) == 0) {
            c->sources = 2;
            random_source(r, c, 1);
        }
        random_outputs(r, c);
        random_values(r, c);
    } while (work(c) > 60000000);
}

void attention_random_eight_bit(struct rng *r, struct attention_case *c)
{
    if (c->in != HEWN_E4M3) return;
    c->qs = below(r, 6), c->ks = below(r, 6), c->vs = below(r, 6);
    c->sgap = below(r, 3);
    if (c->unnorm || below(r, 3)) return;
    c->out = HEWN_E4M3;
    c->os = below(r, 2);
}

void attention_random_promoted(struct rng *r, struct attention_case *c)
{
    static const int64_t blocks[] = {-1, 1, 1, 2, 3, 4, 1000};
    if (c->in == HEWN_E4M3) c->promo = c->qk == 256 ? below(r, 2) : blocks[below(r, 7)];
    for (int i = 0; i < 2; i++)
        if (c->source[i].page || c->source[i].keys == HEWN_KEYS_PACKED || c->pad) return;
    if (c->in == HEWN_E4M3) c->vt = below(r, 3) == 0;
}

void attention_random_narrow(struct rng *r, struct attention_case *c)
{
    if (below(r, 3) || c->in == HEWN_E4M3 || c->sources > 1 || c->unnorm || c->splits) return;
    if (attention_v_dim(c) != (c->qk == 192 ? 128 : c->qk)) return;
    c->kv = HEWN_E4M3;
    c->ks = below(r, 3), c->vs = below(r, 3);
    c->fade = c->in == HEWN_BF16 && below(r, 4) == 0;
    c->sq = 1 + c->sq % 40;
    c->pack = 0;
    if (below(r, 5) == 0) c->cap = 500 + below(r, 4000);
    if (c->source[0].win || below(r, 5)) return;
    c->tree = 1, c->source[0].causal = 0, c->source[0].right = -1;
}
