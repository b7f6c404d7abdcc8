// Kata 04: a matrix product whose sums live in registers, with the parameters of BLAS (SGEMM).
//
// Task     C = alpha * A * B + beta * C for float32 matrices stored row by row: A has M rows of K, B has K rows of N,
//          C has M rows of N, any M, N, K >= 1. With beta = 0 C is written and never read: it may hold NaN, as in BLAS.
//          A block computes a tile of BM x BN elements of C, a thread TM x TN of them: then a number that comes
//          from shared memory serves TM or TN multiplications, not one as in kata 02.
// Launch   one-dimensional blocks of (BN / TN) * (BM / TM) threads, in a grid of ceil(N / BN) x ceil(M / BM) blocks.
//          Shared memory is static; a file that defines SHARED_BYTES gets so many bytes of dynamic shared memory.
// Graded   compiles: this name, these parameters, constants BM BN BK TM TN (yours to change; the #ifndef lets
//                    `make kata=register tune` vary them); a card must be able to launch what they ask for
//          safe:     no access out of bounds or off its alignment, no read of what nobody wrote, no race, and every
//                    thread of a block reaches every barrier
//          result:   right at ragged M, N, K, below one tile, with many steps, with rows that are not 16-byte aligned,
//                    for (alpha, beta) = (1, 0), (0.5, -3), (0, 0.5), (2, 1), (1, 0.5)
//          traffic:  more than 0.75 warp FMAs for each wavefront of shared loads (kata 02 has 0.5), no more sectors
//                    from global memory than 1.25 times what BM and BN promise, no bank conflicts, no spills
//          speed:    on a GPU, beside cuBLAS
// Lesson   katas/04_register.md

#ifndef BM
#define BM 64  // rows of C in a block's tile
#endif
#ifndef BN
#define BN 128  // columns of C in a block's tile
#endif
#ifndef BK
#define BK 8  // columns of A, and rows of B, that are in shared memory at a time
#endif
#ifndef TM
#define TM 4  // rows of C in a thread's tile
#endif
#ifndef TN
#define TN 8  // columns of C in a thread's tile
#endif

// ---- the hole begins: about 300 lines; helper functions may stand above the kernel --------
// The clear solution's tiles and fragments, and what it takes from there to the card's limit. Three things are new:
// copies that need no registers (copy_async), a larger tile for large products (LARGE_...), and one block a
// multiprocessor that does tile after tile, where the last tiles, too few for all, are shared out (work).
constexpr int LARGE_BM = 128, LARGE_BN = 256, LARGE_TM = 16, LARGE_TN = 8;
constexpr int THREADS = (BN / TN) * (BM / TM);
constexpr int STAGES = 3;  // steps in shared memory: one is multiplied, two are on their way
#define SHARED_BYTES (4 * STAGES * BK * (LARGE_BM + 4 + LARGE_BN))
#ifndef WORKERS
#define WORKERS 132  // blocks that work on a large product: the multiprocessors of an H100 or H200
#endif
#ifndef MIN_STEPS
#define MIN_STEPS 8  // the tiles that do not go round are cut into shares of at least so many steps
#endif
constexpr int BAND = 16;  // rows of large tiles: those that are in work together make about a square of C
static_assert((LARGE_BM / LARGE_TM) * (LARGE_BN / LARGE_TN) == THREADS, "both kinds of tile must fit a block");
static_assert(THREADS % BK == 0 && BM % (THREADS / BK) == 0, "every thread copies equally much of A");
static_assert(THREADS % BN == 0 && BK % (4 * THREADS / BN) == 0, "every thread copies equally much of B");
static_assert(BM % (8 * TM) == 0 && BN % (4 * TN) == 0, "BM and BN must hold whole warps of 8 x 4 threads");
static_assert(TM % 4 == 0 && TN % 4 == 0, "TM and TN must be multiples of 4: fragments are read as float4");

struct Product {
    int M, N, K;
    float alpha;
    const float *A, *B;
    float beta;
    float *C;
};

// The tile at this row and column of C, or a share of it: the steps from `first` to `last` - 1.
struct Share {
    int row, col, first, last;
    int *in_C;  // the sums of the steps from *in_C on are in C; 0: none are
};

// One for each tile that is shared out. 0 between launches, which must not overlap.
__device__ int in_C[WORKERS];

// A copy that goes its own way: BYTES from global memory to the address `to` in shared memory; zeros, which add
// nothing to any sum, if they are not there.
template <int BYTES>
__device__ void copy_async(unsigned to, const float *from, bool there = true)
{
    int bytes = there ? BYTES : 0;
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

// The copies since the last call are those of one step.
__device__ void end_of_step()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until this thread's copies are there, but for the latest STAGES - 2 steps.
__device__ void wait_for_step()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
}

// Four neighbours of a row of C of which `left` more numbers exist. ALIGNED as in the clear solution. Past the L1
// cache: another multiprocessor may have written them.
template <bool ALIGNED>
__device__ float4 load4(const float *from, int left)
{
    float4 x = {0.0f, 0.0f, 0.0f, 0.0f};
    if (ALIGNED) {
        if (left > 0) x = __ldcg((const float4 *)from);
    } else {
        if (left > 0) x.x = __ldcg(from);
        if (left > 1) x.y = __ldcg(from + 1);
        if (left > 2) x.z = __ldcg(from + 2);
        if (left > 3) x.w = __ldcg(from + 3);
    }
    return x;
}

template <bool ALIGNED>
__device__ void store4(float *to, float4 x, int left)
{
    if (ALIGNED) {
        if (left > 0) *(float4 *)to = x;
    } else {
        if (left > 0) to[0] = x.x;
        if (left > 1) to[1] = x.y;
        if (left > 2) to[2] = x.z;
        if (left > 3) to[3] = x.w;
    }
}

// One share of a tile of R x S, TR x TS a thread.
template <int R, int S, int TR, int TS, bool ALIGNED>
__device__ __forceinline__ void multiply(Product p, Share share, float *shared)
{
    // A stage: the tile of A, transposed, in rows of R + 4 words, then the tile of B. Of A a thread copies one
    // number at a time, which transposes it: BK lanes take neighbours of a row. Of B it copies 4 if rows are aligned.
    constexpr int A_ROW = R + 4, STAGE = BK * (A_ROW + S);
    constexpr int A_STEP = THREADS / BK, A_COPIES = R / A_STEP;
    constexpr int WIDTH = ALIGNED ? 4 : 1, ACROSS = S / WIDTH;
    constexpr int B_STEP = THREADS / ACROSS, B_COPIES = BK / B_STEP;
    int t = threadIdx.x, lane = t % 32, warp = t / 32, steps = (p.K + BK - 1) / BK;

    // As in the clear solution: rows row + i / 4 * 32 + i % 4, columns col + j / 4 * 16 + j % 4 of the tile.
    int lane_row = (lane >> 1 & 1) | (lane >> 2 & 6);
    int lane_col = (lane & 1) | (lane >> 1 & 2);
    int row = warp / (S / TS / 4) * (8 * TR) + 4 * lane_row;
    int col = warp % (S / TS / 4) * (4 * TS) + 4 * lane_col;

    // No copy in the loop asks what exists. If K is no multiple of BK, the first step is the short one: it begins
    // before column 0 of A, and is copied before the loop. Rows and columns past the end are the last one once
    // more: nobody stores their sums.
    int k0 = p.K - (steps - share.first) * BK;  // where the share begins
    int a_k = t % BK, a_row = t / BK, b_k = t / ACROSS, b_col = t % ACROSS * WIDTH;
    const float *a_from = p.A + k0 + a_k;
    const float *b_from = p.B + (ptrdiff_t)(k0 + b_k) * p.N + min(share.col + b_col, p.N - WIDTH);
    unsigned a_offset[A_COPIES];  // 32 bits: they reach to matrices of 2^32 elements
    for (int n = 0; n < A_COPIES; ++n)
        a_offset[n] = (unsigned)min(share.row + a_row + n * A_STEP, p.M - 1) * p.K;
    unsigned a_to = (unsigned)__cvta_generic_to_shared(shared + a_k * A_ROW + a_row);
    unsigned b_to = (unsigned)__cvta_generic_to_shared(shared + BK * A_ROW + b_k * S + b_col);

    for (int s = 0; s < STAGES - 1; ++s) {
        if (share.first + s < share.last) {
            for (int n = 0; n < A_COPIES; ++n) {
                bool there = k0 + s * BK + a_k >= 0;
                copy_async<4>(a_to + 4 * n * A_STEP, there ? a_from + a_offset[n] : p.A, there);
            }
            for (int n = 0; n < B_COPIES; ++n) {
                bool there = k0 + s * BK + b_k + n * B_STEP >= 0;
                const float *from = there ? b_from + (ptrdiff_t)(n * B_STEP) * p.N : p.B;
                copy_async<4 * WIDTH>(b_to + 4 * n * B_STEP * S, from, there);
            }
        }
        end_of_step();
        a_from += BK;
        b_from += (ptrdiff_t)BK * p.N;
        a_to += 4 * STAGE;
        b_to += 4 * STAGE;
    }

    constexpr int COPIES = A_COPIES + B_COPIES;
    auto copy = [&](int c) {  // one of a step's copies, from where the pointers are
        if (c < A_COPIES) {
            copy_async<4>(a_to + 4 * c * A_STEP, a_from + a_offset[c]);
        } else {
            c -= A_COPIES;
            copy_async<4 * WIDTH>(b_to + 4 * c * B_STEP * S, b_from + (size_t)(c * B_STEP) * p.N);
        }
    };
    constexpr int FRAGMENTS = TR / 4 + TS / 4, APART = TR * TS / FRAGMENTS;
    float4 a[2][TR / 4], b[2][TS / 4];  // the fragments of this k and of the next
    const float *As = shared + row, *Bs = shared + BK * A_ROW + col;
    auto read_fragment = [&](int n, int k) {
        if (n < TR / 4)
            a[k % 2][n] = *(const float4 *)(As + k * A_ROW + n * 32);
        else
            b[k % 2][n - TR / 4] = *(const float4 *)(Bs + k * S + (n - TR / 4) * 16);
    };
    wait_for_step();
    __syncthreads();
    #pragma unroll
    for (int n = 0; n < FRAGMENTS; ++n)
        read_fragment(n, 0);

    float sum[TR][TS] = {};
    int stage = 0;  // the one that is multiplied; the one before it is filled
    for (int s = share.first; s < share.last; ++s) {
        bool more = s + STAGES - 1 < share.last;
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            // The copies are spread over k, the reads of the next fragments over the multiplications: at one place
            // each would wait for the one before.
            #pragma unroll
            for (int c = 0; c < COPIES; ++c)
                if (more && k == c * (BK - 2) / COPIES)
                    copy(c);
            if (k == BK - 3) {
                if (more) {
                    a_from += BK;
                    b_from += (ptrdiff_t)BK * p.N;
                    a_to += 4 * (stage == 0 ? (1 - STAGES) * STAGE : STAGE);
                    b_to += 4 * (stage == 0 ? (1 - STAGES) * STAGE : STAGE);
                }
                end_of_step();
            }
            if (k == BK - 1) {
                // The next fragments are of the next step. So here is the one barrier a step: everybody's copies
                // are there, and nobody reads any more what the next ones will overwrite.
                wait_for_step();
                __syncthreads();
                As += stage == STAGES - 1 ? (1 - STAGES) * STAGE : STAGE;
                Bs += stage == STAGES - 1 ? (1 - STAGES) * STAGE : STAGE;
                stage = stage == STAGES - 1 ? 0 : stage + 1;
            }
            // Row by row, there and back: each FMA has an operand of the last one, whose register is held. How the
            // assembler then places the reads is luck: of all the forms measured, this was among the fastest.
            #pragma unroll
            for (int m = 0; m < TR * TS; ++m) {
                if (m % APART == 0 && m / APART < FRAGMENTS)
                    read_fragment(m / APART, (k + 1) % BK);
                int i = m / TS, j = i % 2 ? TS - 1 - m % TS : m % TS;
                sum[i][j] += (&a[k % 2][i / 4].x)[i % 4] * (&b[k % 2][j / 4].x)[j % 4];
            }
        }
    }
    __syncthreads();  // the stages are free for the next share

    bool add = share.last < steps;  // to what the block with the later steps has put into C, or will put there
    if (add) {
        if (t == 0) {
            while (*(volatile int *)share.in_C != share.last) {
            }
            __threadfence();
        }
        __syncthreads();
    }
    float keep = add ? 1.0f : p.beta;
    #pragma unroll
    for (int i = 0; i < TR; i += 4) {
        // Four rows are loaded before any is stored: so the loads wait together, not one after the other.
        float4 old[4][TS / 4] = {};
        int r = share.row + row + i * 8, c = share.col + col;
        if (keep != 0.0f) {  // 0 times the NaN of a C that nobody set would be NaN
            #pragma unroll
            for (int n = 0; n < TS; ++n) {
                int h = n / (TS / 4), j = n % (TS / 4);
                const float *from = p.C + (size_t)(r + h) * p.N + c + j * 16;
                old[h][j] = load4<ALIGNED>(from, r + h < p.M ? p.N - c - j * 16 : 0);
            }
        }
        #pragma unroll
        for (int n = 0; n < TS; ++n) {
            int h = n / (TS / 4), j = n % (TS / 4);
            const float *y = &sum[i + h][4 * j];
            float4 x = {p.alpha * y[0], p.alpha * y[1], p.alpha * y[2], p.alpha * y[3]};
            if (keep != 0.0f) {
                float4 o = old[h][j];
                x = {x.x + keep * o.x, x.y + keep * o.y, x.z + keep * o.z, x.w + keep * o.w};
            }
            store4<ALIGNED>(p.C + (size_t)(r + h) * p.N + c + j * 16, x, r + h < p.M ? p.N - c - j * 16 : 0);
        }
    }
    if (share.first > 0 || add) {
        __syncthreads();
        if (t == 0) {
            __threadfence();
            atomicExch(share.in_C, share.first);  // 0 after the last one: ready for the next launch
        }
    }
}

// All that this block has to do.
template <bool ALIGNED>
__device__ __forceinline__ void work(Product p, float *shared)
{
    int down = (p.M + LARGE_BM - 1) / LARGE_BM, across = (p.N + LARGE_BN - 1) / LARGE_BN, tiles = down * across;
    int steps = (p.K + BK - 1) / BK;
    if (2 * tiles < WORKERS) {  // large tiles would leave half of the card idle: a block for each small one
        Share mine = {(int)blockIdx.y * BM, (int)blockIdx.x * BN, 0, steps, nullptr};
        multiply<BM, BN, TM, TN, ALIGNED>(p, mine, shared);
        return;
    }
    // Blocks begin in the order of their numbers, and number 0 here is the last of those that work: so a block
    // waits only for blocks that began before it. The rest of the grid ends at once.
    int workers = min(WORKERS, (int)(gridDim.x * gridDim.y));
    int me = workers - 1 - (int)(blockIdx.y * gridDim.x + blockIdx.x);
    if (me < 0)
        return;
    // As many tiles as go round are done whole. The steps of the rest are put in a row and cut into equal shares. A
    // share may end one tile and begin the next, in this order: so what is waited for was done long before.
    int whole = tiles / workers * workers;
    long long rest = (long long)(tiles - whole) * steps;
    int sharers = (int)min((long long)workers, max(rest / MIN_STEPS, (long long)(tiles - whole)));
    long long at = rest * min(me, sharers) / sharers, end = rest * min(me + 1, sharers) / sharers;
    for (int tile = me; tile < whole || at < end; tile += workers) {
        Share mine = {0, 0, 0, steps, in_C};
        int number = tile;
        if (tile >= whole) {
            number = whole + (int)(at / steps);
            mine.first = (int)(at % steps);
            mine.last = (int)min((long long)steps, mine.first + end - at);
            mine.in_C = in_C + number - whole;
            at += mine.last - mine.first;
        }
        int band = number / (BAND * across) * BAND, high = min(BAND, down - band), place = number % (BAND * across);
        mine.row = (band + place % high) * LARGE_BM;
        mine.col = place / high * LARGE_BN;
        multiply<LARGE_BM, LARGE_BN, LARGE_TM, LARGE_TN, ALIGNED>(p, mine, shared);
    }
}

extern "C" __global__ void __launch_bounds__((BN / TN) * (BM / TM), 1)
sgemm_register(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    extern __shared__ __align__(16) float shared[];
    Product p = {M, N, K, alpha, A, B, beta, C};
    if (N % 4 == 0)
        work<true>(p, shared);
    else
        work<false>(p, shared);
}
// ---- the hole ends ------------------------------------------------------------------------
