/*
 * mbarriers for Spin, written from the PTX ISA ("Phase Completion of the mbarrier object", "mbarrier.try_wait")
 * and sharing nothing with the simulator. Bytes of copies are counted in whole copies.
 */
typedef mbar { byte phase = 0; byte pending = 0; byte expected = 0; short tx = 0 };

inline SETTLE(b)
{
    if
    :: b.pending == 0 && b.tx == 0 -> b.phase = b.phase + 1; b.pending = b.expected
    :: else
    fi
}
inline INIT(b, n) { d_step { b.pending = n; b.expected = n } }
/* More arrivals than a phase has pending: undefined. */
inline ARRIVE(b) { atomic { assert(b.pending > 0); b.pending--; SETTLE(b) } }
inline ARRIVE_DROP(b) { atomic { assert(b.pending > 0); b.pending--; b.expected--; SETTLE(b) } }
/* arrive.expect_tx for one copy */
inline ARRIVE_TX(b) { atomic { assert(b.pending > 0); b.tx++; b.pending--; SETTLE(b) } }
inline LAND(b) { atomic { b.tx--; SETTLE(b) } }
/* True for the phase before the current one, as long as only its parity tells it. */
#define PASSED(b, parity) ((b.phase & 1) != (parity))
inline WAIT(b, parity) { PASSED(b, parity) }
