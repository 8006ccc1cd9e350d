#!/bin/sh
# The attention kernels under many schedules, and against the worksheets they declare: small shapes, some for
# Hopper alone, that cover every variant, mask, layout and output, each right and clean under 50 seeds
# (one in check), and
# each module's roles, storage, tensor memory and barriers as its banner and plan header say.
. "$SRC/tests/lib/lib.sh"
work=$BUILD/tests/attention_schedules
rm -rf "$work"
mkdir -p "$work"
out=$work/out
hewn=$BUILD/hewn attention=$BUILD/tests/attention
unset HEWN_SIM_QUIET HEWN_SIM_GPU HEWN_LIBCUDA
. "$SRC/tests/lib/seeds.sh"

shapes() {
    cat <<'EOT'
in=bf16 qk=64 sq=257 sk=300 causal=1
in=f16 qk=64 b=2 sq=130 sk=65 hq=4 hkv=2
in=e4m3 qk=64 sq=140 sk=200 causal=1
in=bf16 qk=96 sq=140 sk=257 left=40 right=3
in=f16 qk=96 sq=70 sk=129 causal=1 sink=1
in=e4m3 qk=96 sq=129 sk=129
in=bf16 qk=128 sq=300 sk=300 causal=1
in=bf16 qk=128 b=2 hq=16 hkv=1 sq=17 sk=600 causal=1 pack=16
in=bf16 qk=128 sq=1 sk=1000 hq=8 hkv=2 splits=4
in=f16 qk=128 sq=128 sk=384 peak=400 pattern=1
in=f16 qk=128 b=3 sq=100 sk=300 keys=2 packed=1 ragged=1 causal=1
in=e4m3 qk=128 sq=256 sk=320 causal=1 peak=400 pattern=1
in=bf16 qk=128 b=2 sq=60 sk=290 keys=1 page=16 ragged=2 causal=1
in=bf16 qk=128 b=2 sq=33 sk=200 keys=1 page=48 ragged=2 left=90
in=bf16 qk=128 sq=150 sk=150 causal=1 win=40
in=bf16 qk=192 v=128 sq=257 sk=300 causal=1
in=f16 qk=192 v=128 sq=70 sk=140
in=e4m3 qk=192 v=128 sq=130 sk=257 causal=1
in=bf16 qk=256 sq=200 sk=300 causal=1
in=bf16 qk=256 sq=1 sk=700 hq=4 hkv=1 splits=3
in=f16 qk=256 b=2 sq=130 sk=130 peak=400 pattern=1
in=e4m3 qk=256 sq=129 sk=260
in=bf16 qk=512 sq=129 sk=257 causal=1
in=f16 qk=512 b=2 hq=2 hkv=1 sq=20 sk=300 causal=1
in=e4m3 qk=512 sq=100 sk=300 peak=400 pattern=1
in=bf16 qk=512 sq=64 sk=200 out=f32 layout=1
in=bf16 qk=128 sq=200 sk=100 causal=1 out=f16
in=bf16 qk=128 sq=100 sk=300 unnorm=1 out=f32
in=bf16 qk=64 b=2 sq=50 sk=200 sources=2 sk1=140
in=bf16 qk=256 sq=50 sk=200 sources=2 sk1=300 causal=1
in=bf16 qk=128 b=3 sq=1 sk=1500 hq=8 hkv=2 keys=1 ragged=2
in=f16 qk=128 b=2 sq=3 sk=700 hq=20 keys=1 page=5 ragged=1 causal=1 sink=1
in=bf16 qk=64 b=5 sq=2 sk=600 hq=4 hkv=4 packed=1 keys=2 ragged=2
in=bf16 qk=256 b=2 sq=2 sk=500 hq=32 hkv=2 keys=1 page=32 ragged=1 left=300
in=f16 qk=192 v=128 b=2 sq=1 sk=800 hq=5 out=f32
in=bf16 qk=64 b=3 sq=2 sk=4500 hq=2 inv=1 keys=1 ragged=1
in=bf16 qk=128 b=2 sq=5 sk=300 hq=4 tree=1 keys=1 ragged=1 cap=500
in=f16 qk=512 b=2 sq=2 sk=700 hq=9 keys=1 page=48 ragged=2 peak=400 pattern=1
in=bf16 qk=128 b=2 sq=1 sk=900 hq=4 hkv=2 kv=3 vs=2 keys=1 ragged=1
EOT
}

hopper() { # what only sm_90a has
    cat <<'EOT'
in=bf16 qk=128 sq=300 sk=300 causal=1 cap=500
in=e4m3 qk=128 sq=140 sk=400 causal=1 page=16 keys=1
in=e4m3 qk=256 sq=140 sk=300 causal=1 page=16 keys=1
in=e4m3 qk=192 v=128 sq=130 sk=500 promo=2 causal=1
in=e4m3 qk=256 sq=130 sk=260 promo=1 hq=2
in=e4m3 qk=128 sq=140 sk=333 vt=1 promo=1
in=f16 qk=256 b=2 sq=2 sk=700 hq=8 kv=3 keys=1 page=8 ragged=2
EOT
}

count=0
shapes >"$work/shapes"
for gpu in b200 h200; do
    if [ $gpu = h200 ]; then
        sed -i -e '/e4m3/d' "$work/shapes"
        hopper >>"$work/shapes"
    fi
    while read -r shape; do
        count=$((count + 1))
        HEWN_SIM_SEED=$first_seed timeout 900 "$hewn" check --gpu $gpu --schedules $seeds "$attention" --one "$shape" >"$out" 2>&1
        status "$seeds schedules of $shape on $gpu" 0 $?
        [ -t 2 ] && printf '\r\033[K… shape %d' $count >&2
    done <"$work/shapes"
done

# The worksheet: a module at a time, on a shape with several items a CTA, rows of V to make zero, and maxima
# that grow.
sheet() { # GPU IN QK V [MORE]; on sm_90a from pages, which all roles of its worksheet need
    pages=
    [ "$1" = h200 ] && pages="page=16 keys=1"
    HEWN_SIM_SMS=4 timeout 120 "$hewn" worksheet --gpu "$1" "$attention" \
        --one "in=$2 qk=$3 v=$4 b=2 hq=2 hkv=1 sq=300 sk=444 causal=1 peak=400 pattern=1 $pages $5" >"$out" 2>&1
    want "$*: declared and seen" '^declared and seen agree' "$out"
    [ "$1" = h200 ] || want "$*: nothing declared is left out" ' 0 of them not wholly seen' "$out"
}
for type in bf16 f16 e4m3; do
    for dims in '64 64' '96 96' '128 128' '192 128' '256 256' '512 512'; do
        [ "$SUITE" = all ] || [ $type = bf16 ] || continue
        sheet b200 $type $dims
    done
done
decode_sheet() { # QK V HEADS [MORE]: of the decode schedule on Blackwell, several tiles a CTA
    timeout 120 "$hewn" worksheet --gpu b200 "$attention" \
        --one "in=bf16 qk=$1 v=$2 b=3 hq=$3 hkv=1 sq=2 sk=700 causal=1 peak=400 pattern=1 tail=1 $4" >"$out" 2>&1
    want "decode $*: declared and seen" '^declared and seen agree' "$out"
}
for dims in '64 64 32' '96 96 8' '128 128 8' '192 128 16' '256 256 32' '512 512 16' '64 64 32 kv=3'; do decode_sheet $dims; done
for dims in '64 64' '128 128' '192 128' '256 256'; do sheet h200 bf16 $dims; done
for dims in '64 64' '96 96' '128 128' '192 128' '256 256'; do
    sheet h200 e4m3 $dims
    sheet h200 e4m3 $dims promo=1
done
finish
