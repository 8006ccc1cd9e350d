/* Names in reports: kernels and their variables as people wrote them. */
#include "lib/harness.h"
#include "ptx/demangle.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *want;
} cases[] = {
    {"gemm_kernel", "gemm_kernel"},
    {"_Z9vectorAddPKfS0_Pfi", "vectorAdd"},
    {"_Z24compute_dgemm_async_copyPKdS0_S0_Pddd", "compute_dgemm_async_copy"},
    {"_ZN3foo3barILi4EfEEvPf", "foo::bar<4, float>"},
    {"_ZN3foo3barILin3ELb1ELj0EEEvv", "foo::bar<-3, true, 0>"},
    {"_ZN5outer36_GLOBAL__N__7f94570c_4_v_cu_cdf689eb4kernIfLi4EEEvPT_",
     "outer::(anonymous)::kern<float, 4>"},
    {"_Z6reduceI6MyTypeLj512EEvPT_S2_j", "reduce<MyType, 512>"},
    {"_ZZ38MatrixMulAsyncCopyMultiStageLargeChunkILi16EEvPfPKfS2_iiE2As", "As"},
    {"_ZZN3foo3barILi4EEEvPfE5stage", "stage"},
    {"_ZN3cub17CUB_300001_SM_9006detail10radix_sort29DeviceRadixSortOnesweepKernelINS1_"
     "5radix10policy_"
     "hubIjjyE10Policy1000ELNS0_9SortOrderE0EjjyiiNS1_21identity_decomposer_tEEEvPT5_SB_PT3_PKSC_"
     "PT1_"
     "PKSG_PT2_PKSK_T4_iiT6_",
     "cub::CUB_300001_SM_900::detail::radix_sort::DeviceRadixSortOnesweepKernel<...>"},
    {"_Z1fIN2ns1TIiLi3EEEEvT_", "f<...>"},
    {"_Z1fIJifEEvDpT_", "f<...>"},
    {"_ZNSt4pairIiE4moveEv", "std::pair<int>::move"},
    {"_ZL6statici", "static"},
    {"_Z1fIPKfEvT_", "f<...>"},
    {"_Z1fIXplLi1ELi2EEEvv", "f<...>"},
    /* not such names, or cut: as they are */
    {"_Z", "_Z"},
    {"_Z99x", "_Z99x"},
    {"_ZN3foo", "_ZN3foo"},
    {"_ZZ3fooi", "_ZZ3fooi"},
    {"_ZN3fooILi4", "_ZN3fooILi4"},
    {"", ""},
};

/* Whatever is given, it ends and stays in bounds. */
static void test_damaged(void)
{
    static const char letters[] = "_ZNSILEXJFDAPKRTv0123456789abfij";
    uint64_t state = test_seed();

    if (!test_case("damaged names")) return;
    for (int round = 0; round < 20000; round++) {
        char name[64] = "_Z", small[9], large[DEMANGLED_BYTES];
        size_t length = 2 + (size_t)(round % 60);

        for (size_t i = 2; i < length; i++) {
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            name[i] = letters[(state >> 33) % (sizeof letters - 1)];
        }
        memset(small, 1, sizeof small);
        demangle(name, small, sizeof small - 1);
        demangle(name, large, sizeof large);
        CHECK(small[8] == 1 && memchr(small, 0, 8), "%s runs over", name);
    }
}

int main(int argc, char **argv)
{
    test_begin("sim_demangle", argc, argv);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char got[DEMANGLED_BYTES];

        if (!test_case("%s", cases[i].name)) continue;
        demangle(cases[i].name, got, sizeof got);
        CHECK(!strcmp(got, cases[i].want), "want \"%s\" got \"%s\"", cases[i].want, got);
    }
    test_damaged();
    return test_end();
}
