#include "mbarrier.pml"
#define ITEMS 3
#ifdef FIXED
#define CONSUMERS 2
#else
#define CONSUMERS 1
#endif
mbar ready[2], vacant;
byte tile[2];
byte landed[2];
/* A multicast: lands in each CTA whenever it likes. */
proctype copy(byte cta; byte n)
{
    atomic { tile[cta] = n; landed[cta]++ };
    LAND(ready[cta])
}
active proctype leader()
{
    byte n;
    INIT(ready[0], 1); INIT(ready[1], 1); INIT(vacant, CONSUMERS);
    run expect(); run consumer(0); run consumer(1);
    for (n : 0 .. ITEMS - 1) {
        WAIT(vacant, (n & 1) ^ 1);
        ARRIVE_TX(ready[0]);
        atomic { run copy(0, n); run copy(1, n) }
    }
}
proctype expect()
{
    byte n;
    for (n : 0 .. ITEMS - 1) {
        ARRIVE_TX(ready[1]);
        WAIT(ready[1], n & 1)
    }
}
proctype consumer(byte cta)
{
    byte n;
    for (n : 0 .. ITEMS - 1) {
        WAIT(ready[cta], n & 1);
        assert(tile[cta] == n);
        ARRIVE(vacant)
    }
}
