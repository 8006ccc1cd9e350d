#include "mbarrier.pml"
#define ITEMS 4
mbar loaded, converted, stored;
byte slot;
active proctype load()
{
    byte n;
    INIT(loaded, 1); INIT(converted, 1); INIT(stored, 1);
    run convert(); run store();
    for (n : 0 .. ITEMS - 1) {
#ifdef FIXED
        WAIT(stored, (n & 1) ^ 1);
#else
        WAIT(converted, (n & 1) ^ 1);
#endif
        slot = n;
        ARRIVE(loaded)
    }
}
proctype convert()
{
    byte n;
    for (n : 0 .. ITEMS - 1) {
        WAIT(loaded, n & 1);
        assert(slot == n);
        slot = slot + 100;
        ARRIVE(converted)
    }
}
proctype store()
{
    byte n;
    for (n : 0 .. ITEMS - 1) {
        WAIT(converted, n & 1);
        assert(slot == n + 100);
        ARRIVE(stored)
    }
}
