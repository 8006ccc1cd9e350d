# How many seeds a script asks for; sourced. A short run takes one, at which completions are late and stores reach
# the async proxy only through a fence (tools/sim/async/late.c): the programs themselves run with seed 1.
seeds=1 first_seed=3
[ "$SUITE" = all ] && seeds=50 first_seed=1
