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
#define BM 128  // rows of C in a block's tile
#endif
#ifndef BN
#define BN 128  // columns of C in a block's tile
#endif
#ifndef BK
#define BK 8  // columns of A, and rows of B, that are in shared memory at a time
#endif
#ifndef TM
#define TM 8  // rows of C in a thread's tile
#endif
#ifndef TN
#define TN 8  // columns of C in a thread's tile
#endif

// ---- the hole begins: about 160 lines; helper functions may stand above the kernel --------
constexpr int THREADS = (BN / TN) * (BM / TM);
constexpr int A_QUADS = BM * BK / 4 / THREADS;  // of the tile of A, each thread brings so many times 4 numbers
constexpr int B_QUADS = BK * BN / 4 / THREADS;
constexpr int A_ROW = BM + 4;  // words in a row of the transposed tile of A
static_assert(TM % 4 == 0 && TN % 4 == 0, "TM and TN must be multiples of 4: fragments are read as float4");
static_assert(BM % (8 * TM) == 0 && BN % (4 * TN) == 0, "BM and BN must hold whole warps of 8 x 4 threads");
static_assert(BK % 8 == 0, "BK must be a multiple of 8: a sector of A is 8 numbers");
static_assert(A_QUADS * 4 * THREADS == BM * BK && B_QUADS * 4 * THREADS == BK * BN,
              "BM * BK and BK * BN must be multiples of 4 * threads: every thread loads equally much");

// Four neighbours of a row of which `left` more numbers exist; zero outside, which adds nothing to any sum.
// ALIGNED: the row begins at a multiple of 16 bytes and its length is a multiple of 4, so that all four exist or none.
template <bool ALIGNED>
__device__ float4 load4(const float *from, int left)
{
    float4 x = {0.0f, 0.0f, 0.0f, 0.0f};
    if (ALIGNED) {
        if (left > 0) x = *(const float4 *)from;
    } else {
        if (left > 0) x.x = from[0];
        if (left > 1) x.y = from[1];
        if (left > 2) x.z = from[2];
        if (left > 3) x.w = from[3];
    }
    return x;
}

// The whole product, for rows that are aligned as load4 wants them, or not.
template <bool ALIGNED>
__device__ void multiply(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C,
                         float (*As)[BK][A_ROW], float (*Bs)[BK][BN])
{
    int tile_row = blockIdx.y * BM, tile_col = blockIdx.x * BN;  // where the block's tile begins in C

    // A warp is 8 rows of 4 threads. Bits 0 and 2 of the lane are its column, bits 1, 3, 4 its row: so lanes i and
    // i ^ 1 read the same of A, lanes i and i ^ 2 the same of B, and a float4 read takes 2 wavefronts, not 4.
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int lane_row = (lane >> 1 & 1) | (lane >> 2 & 6);  // 0 to 7
    int lane_col = (lane & 1) | (lane >> 1 & 2);       // 0 to 3
    // In the block's tile this thread has rows row + i / 4 * 32 + i % 4 for i < TM, and columns
    // col + j / 4 * 16 + j % 4 for j < TN: fours, so that the four lanes of a row read 16 neighbours.
    int row = warp / (BN / TN / 4) * (8 * TM) + 4 * lane_row;
    int col = warp % (BN / TN / 4) * (4 * TN) + 4 * lane_col;

    // What this thread brings from global memory: two neighbouring lanes take 8 neighbours of a row of A, one
    // sector; a warp takes 128 neighbours of a row of B. Offsets of 32 bits keep two registers a quad free; they
    // reach to matrices of 2^32 elements.
    int a_row[A_QUADS], a_k[A_QUADS], b_k[B_QUADS], b_col[B_QUADS];
    unsigned a_from[A_QUADS], b_from[B_QUADS];
    for (int n = 0; n < A_QUADS; ++n) {
        int quad = threadIdx.x + n * THREADS;
        a_row[n] = quad / 2 % BM;
        a_k[n] = quad / (2 * BM) * 8 + quad % 2 * 4;
        a_from[n] = (unsigned)(tile_row + a_row[n]) * K + a_k[n];
    }
    for (int n = 0; n < B_QUADS; ++n) {
        int quad = threadIdx.x + n * THREADS;
        b_k[n] = quad / (BN / 4);
        b_col[n] = quad % (BN / 4) * 4;
        b_from[n] = (unsigned)b_k[n] * N + tile_col + b_col[n];
    }

    float4 a_next[A_QUADS], b_next[B_QUADS];
    auto fetch = [&](int k0) {  // global memory -> registers, for the step that begins at k0
        for (int n = 0; n < A_QUADS; ++n) {
            a_next[n] = load4<ALIGNED>(A + a_from[n], tile_row + a_row[n] < M ? K - k0 - a_k[n] : 0);
            a_from[n] += BK;
        }
        for (int n = 0; n < B_QUADS; ++n) {
            b_next[n] = load4<ALIGNED>(B + b_from[n], k0 + b_k[n] < K ? N - tile_col - b_col[n] : 0);
            b_from[n] += BK * N;
        }
    };
    auto put = [&](int buffer) {  // registers -> shared memory; A's four become a column
        for (int n = 0; n < A_QUADS; ++n) {
            float *to = &As[buffer][a_k[n]][a_row[n]];
            to[0] = a_next[n].x;
            to[A_ROW] = a_next[n].y;
            to[2 * A_ROW] = a_next[n].z;
            to[3 * A_ROW] = a_next[n].w;
        }
        for (int n = 0; n < B_QUADS; ++n)
            *(float4 *)&Bs[buffer][b_k[n]][b_col[n]] = b_next[n];
    };

    float sum[TM][TN] = {};  // every index below is known to the compiler, or this would be no registers
    fetch(0);
    put(0);
    __syncthreads();

    int now = 0;  // the buffer that is read; the other one is filled
    for (int k0 = 0; k0 < K; k0 += BK) {
        bool more = k0 + BK < K;
        if (more)
            fetch(k0 + BK);  // under way while this step is multiplied

        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            float4 a[TM / 4], b[TN / 4];  // fragments: TM + TN numbers read for TM * TN multiplications
            for (int i = 0; i < TM / 4; ++i)
                a[i] = *(const float4 *)&As[now][k][row + i * 32];
            for (int j = 0; j < TN / 4; ++j)
                b[j] = *(const float4 *)&Bs[now][k][col + j * 16];
            #pragma unroll
            for (int i = 0; i < TM; ++i)
                #pragma unroll
                for (int n = 0; n < TN; ++n) {
                    // There and back: neighbouring multiplications share a register, and fewer of them
                    // ask one register bank for two operands.
                    int j = i % 2 ? TN - 1 - n : n;
                    sum[i][j] += (&a[i / 4].x)[i % 4] * (&b[j / 4].x)[j % 4];
                }
        }

        if (more)
            put(now ^ 1);
        // One barrier a step: the other buffer is full, and nobody reads this one any more, which the next
        // step overwrites.
        __syncthreads();
        now ^= 1;
    }

    #pragma unroll
    for (int i = 0; i < TM; ++i) {
        int r = tile_row + row + i / 4 * 32 + i % 4;
        for (int j = 0; j < TN; j += 4) {
            int c = tile_col + col + j / 4 * 16;
            float *to = C + (size_t)r * N + c;
            if (ALIGNED && r < M && c < N) {
                float4 x = {alpha * sum[i][j], alpha * sum[i][j + 1], alpha * sum[i][j + 2], alpha * sum[i][j + 3]};
                if (beta != 0.0f) {  // 0 times the NaN of a C that nobody set would be NaN
                    float4 old = *(const float4 *)to;
                    x = {x.x + beta * old.x, x.y + beta * old.y, x.z + beta * old.z, x.w + beta * old.w};
                }
                *(float4 *)to = x;
            }
            if (!ALIGNED && r < M)
                for (int n = 0; n < 4; ++n)
                    if (c + n < N)
                        to[n] = alpha * sum[i][j + n] + (beta != 0.0f ? beta * to[n] : 0.0f);
        }
    }
}

extern "C" __global__ void __launch_bounds__((BN / TN) * (BM / TM))
sgemm_register(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    // Two buffers for each tile. A's is transposed, so that a thread finds its rows side by side. The 4 words more
    // put the rows k and k + 4, which a warp stores at once, 16 banks apart, and keep every row aligned for float4.
    __shared__ __align__(16) float As[2][BK][A_ROW];
    __shared__ __align__(16) float Bs[2][BK][BN];

    if (K % 4 == 0 && N % 4 == 0)
        multiply<true>(M, N, K, alpha, A, B, beta, C, As, Bs);
    else
        multiply<false>(M, N, K, alpha, A, B, beta, C, As, Bs);
}
// ---- the hole ends ------------------------------------------------------------------------
