// Small kernels whose memory traffic is counted on a card and on the simulator: one launch each, in the shape
// that tests/fidelity/launches.py names (two blocks of 256 threads where it names none). `in` and `out` have
// 16,384 floats, n is 16,384.

#include <cuda_fp16.h>

#define KERNEL(name) extern "C" __global__ void name(const float *in, float *out, int n)
#define TID (blockIdx.x * blockDim.x + threadIdx.x)

// Global loads and stores: which lanes touch which sectors ----------------------------------------------------

KERNEL(copy) { out[TID] = in[TID]; }
KERNEL(stride_2) { out[TID] = in[2 * TID]; }
KERNEL(stride_3) { out[TID] = in[3 * TID]; }
KERNEL(stride_8) { out[TID] = in[8 * TID]; }
KERNEL(stride_32) { out[TID] = in[32 * TID]; }
KERNEL(stride_17_store) { out[17 * TID] = in[TID]; }
KERNEL(shifted_by_one) { out[TID] = in[TID + 1]; }
KERNEL(shifted_by_seven_store) { out[TID + 7] = in[TID]; }
KERNEL(reversed) { out[TID] = in[511 - TID]; }
KERNEL(broadcast) { out[TID] = in[blockIdx.x]; }
KERNEL(broadcast_to_warp) { out[TID] = in[TID / 32]; }
KERNEL(pairs_of_lanes) { out[TID] = in[TID / 2]; }
KERNEL(shuffled_lanes) { out[TID] = in[TID ^ 21]; }
KERNEL(scattered) { out[TID * 61 % 4096] = in[TID * 37 % 4096]; }
KERNEL(one_cell_for_all)
{
    if (threadIdx.x == 0)
        out[blockIdx.x] = in[TID];
}
KERNEL(odd_lanes)
{
    if (threadIdx.x % 2)
        out[TID] = in[TID];
}
KERNEL(half_warps)
{
    if (threadIdx.x % 32 < 16)
        out[TID] = in[TID];
    else
        out[TID] = in[TID + 8192];
}
KERNEL(two_branches_two_strides)
{
    if (threadIdx.x % 3 == 0)
        out[TID] = in[2 * TID];
    else
        out[TID + 4096] = in[4 * TID] * 2.0f;
}
KERNEL(ragged_end)
{
    if (TID < 333)
        out[TID] = in[TID];
}
KERNEL(row_of_67_words)
{
    int Row = threadIdx.y + blockIdx.y * blockDim.y, Col = threadIdx.x + blockIdx.x * blockDim.x;
    if (Row < 67 && Col < 67)
        out[Row * 67 + Col] = in[Row * 67 + Col];
}
KERNEL(column_of_67_words)
{
    int Col = threadIdx.y + blockIdx.y * blockDim.y, Row = threadIdx.x + blockIdx.x * blockDim.x;
    if (Row < 67 && Col < 67)
        out[Row * 67 + Col] = in[Row * 67 + Col];
}
KERNEL(block_3d)
{
    int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
    out[(z * 64 + y * 9 + x) + 512 * blockIdx.x] = in[x * 100 + y * 10 + z];
}
KERNEL(last_warp_partial) { out[TID] = in[TID] + 1.0f; }
KERNEL(trip_count_by_lane)
{
    float sum = 0.0f;
    for (int k = 0; k < threadIdx.x % 7; ++k)
        sum += in[TID + 64 * k];
    out[TID] = sum;
}
KERNEL(grid_stride)
{
    for (int i = TID; i < 3000; i += gridDim.x * blockDim.x)
        out[i] = 2.0f * in[i];
}
KERNEL(saxpy) { out[TID] = fmaf(3.0f, in[TID], out[TID]); }

// Vectors and small types ---------------------------------------------------------------------------------------

KERNEL(float2_copy) { ((float2 *)out)[TID] = ((const float2 *)in)[TID]; }
KERNEL(float4_copy) { ((float4 *)out)[TID] = ((const float4 *)in)[TID]; }
KERNEL(float4_stride_2) { ((float4 *)out)[TID] = ((const float4 *)in)[2 * TID]; }
KERNEL(float4_masked)
{
    if (threadIdx.x % 4 != 1)
        ((float4 *)out)[TID] = ((const float4 *)in)[TID];
}
KERNEL(float4_of_the_next)
{
    ((float4 *)out)[TID] = ((const float4 *)in)[TID + 1];
}
KERNEL(int4_reversed) { ((int4 *)out)[TID] = ((const int4 *)in)[511 - TID]; }
KERNEL(double_copy) { ((double *)out)[TID] = ((const double *)in)[TID]; }
KERNEL(char_copy) { ((char *)out)[TID] = ((const char *)in)[TID]; }
KERNEL(char_stride_5) { ((char *)out)[5 * TID] = ((const char *)in)[5 * TID]; }
KERNEL(short_copy) { ((short *)out)[TID + 3] = ((const short *)in)[TID + 1]; }
KERNEL(half_sum)
{
    const __half *h = (const __half *)in;
    ((__half *)out)[TID] = __hadd(h[TID], h[TID + 512]);
}
KERNEL(half2_fma)
{
    const __half2 *h = (const __half2 *)in;
    ((__half2 *)out)[TID] = __hfma2(h[TID], h[TID + 512], h[TID + 1024]);
}
KERNEL(char4_sum)
{
    char4 c = ((const char4 *)in)[TID];
    ((int *)out)[TID] = c.x + c.y + c.z + c.w;
}
KERNEL(four_scalars_side_by_side)
{
    out[TID] = in[4 * TID] + in[4 * TID + 1] + in[4 * TID + 2] + in[4 * TID + 3];
}
KERNEL(read_only_cache) { out[TID] = __ldg(in + 3 * TID) + __ldg(in + 3 * TID + 1); }
KERNEL(volatile_twice)
{
    const volatile float *v = in;
    out[TID] = v[TID] + v[TID];
}

// Local memory, atomics, shuffles, arithmetic -------------------------------------------------------------------

KERNEL(local_array)
{
    float cell[16];
    for (int k = 0; k < 16; ++k)
        cell[k] = in[TID + 16 * k];
    int at = threadIdx.x * 7 % 16;
    cell[at] += 1.0f;
    float sum = 0.0f;
    for (int k = 0; k < 16; ++k)
        sum += cell[(at + k * threadIdx.x) % 16] * k;
    out[TID] = sum;
}
KERNEL(atomic_one_cell) { atomicAdd(out, in[TID]); }
KERNEL(atomic_each_its_own) { atomicAdd(out + TID, in[TID]); }
KERNEL(atomic_int_bins) { atomicAdd((int *)out + TID % 10, 1); }
KERNEL(atomic_max_returned) { out[TID + 1024] = (float)atomicMax((int *)out + TID / 4, (int)TID); }
KERNEL(atomic_cas) { out[TID + 1024] = (float)atomicCAS((int *)out + TID, 0, (int)TID); }
KERNEL(warp_sum)
{
    float sum = in[TID];
    for (int delta = 16; delta; delta /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, delta);
    if (threadIdx.x % 32 == 0)
        out[TID / 32] = sum;
}
KERNEL(butterfly)
{
    float sum = in[TID];
    for (int mask = 1; mask < 32; mask *= 2)
        sum = fmaf(0.5f, sum, __shfl_xor_sync(0xffffffffu, sum, mask));
    out[TID] = sum;
}
KERNEL(polynomial)
{
    float x = in[TID], y = 1.0f;
#pragma unroll
    for (int k = 0; k < 9; ++k)
        y = y * x + 0.25f * k;
    out[TID] = y;
}
KERNEL(quotients) { out[TID] = in[TID] / (in[TID + 1] + 2.0f) + sqrtf(in[TID] + 1.0f); }
KERNEL(predicated_fma)
{
    float x = in[TID];
    if (x > 0.0f)
        x = x * x + 1.0f;
    out[TID] = x;
}

// Shared memory: stores and loads that ptxas cannot fuse ----------------------------------------------------------

KERNEL(shared_copy)
{
    __shared__ float s[256];
    s[threadIdx.x] = in[TID];
    __syncthreads();
    out[TID] = s[255 - threadIdx.x];
}
template <int ROW>
__device__ void transpose(const float *in, float *out)
{
    __shared__ float s[32][ROW];
    int tx = threadIdx.x, ty = threadIdx.y;
    for (int row = ty; row < 32; row += 8)
        s[row][tx] = in[(row * 2 + blockIdx.x) * 32 + tx];
    __syncthreads();
    for (int row = ty; row < 32; row += 8)
        out[(row * 2 + blockIdx.x) * 32 + tx] = s[tx][row];
}
KERNEL(transpose_32) { transpose<32>(in, out); }
KERNEL(transpose_33) { transpose<33>(in, out); }
KERNEL(transpose_34) { transpose<34>(in, out); }
KERNEL(transpose_36) { transpose<36>(in, out); }
KERNEL(transpose_swizzled)
{
    __shared__ float s[32][32];
    int tx = threadIdx.x, ty = threadIdx.y;
    for (int row = ty; row < 32; row += 8)
        s[row][tx ^ row] = in[(row * 2 + blockIdx.x) * 32 + tx];
    __syncthreads();
    for (int row = ty; row < 32; row += 8)
        out[(row * 2 + blockIdx.x) * 32 + tx] = s[tx][row ^ tx];
}
KERNEL(transpose_at_the_store)
{
    __shared__ float s[32][32];
    int tx = threadIdx.x, ty = threadIdx.y;
    for (int row = ty; row < 32; row += 8)
        s[tx][row] = in[(row * 2 + blockIdx.x) * 32 + tx];
    __syncthreads();
    for (int row = ty; row < 32; row += 8)
        out[(row * 2 + blockIdx.x) * 32 + tx] = s[row][tx];
}
template <int STEP>
__device__ void shared_stride(const float *in, float *out)
{
    __shared__ float s[256 * STEP];
    s[STEP * threadIdx.x] = in[TID];
    __syncthreads();
    out[TID] = s[STEP * (threadIdx.x ^ 3)];
}
KERNEL(shared_stride_2) { shared_stride<2>(in, out); }
KERNEL(shared_stride_3) { shared_stride<3>(in, out); }
KERNEL(shared_stride_4) { shared_stride<4>(in, out); }
KERNEL(shared_stride_8) { shared_stride<8>(in, out); }
template <typename T>
__device__ void shared_vectors(const float *in, float *out)
{
    __shared__ T s[256];
    s[threadIdx.x * 5 % 256] = ((const T *)in)[TID];
    __syncthreads();
    ((T *)out)[TID] = s[threadIdx.x ^ 9];
}
KERNEL(shared_float2) { shared_vectors<float2>(in, out); }
KERNEL(shared_float4) { shared_vectors<float4>(in, out); }
KERNEL(shared_double) { shared_vectors<double>(in, out); }
KERNEL(shared_char) { shared_vectors<char>(in, out); }
KERNEL(shared_short) { shared_vectors<short>(in, out); }
KERNEL(shared_half)
{
    __shared__ __half s[32][33];
    int tx = threadIdx.x % 32, ty = threadIdx.x / 32;
    for (int row = ty; row < 32; row += 8)
        s[row][tx] = __float2half(in[row * 32 + tx]);
    __syncthreads();
    for (int row = ty; row < 32; row += 8)
        out[blockIdx.x * 1024 + row * 32 + tx] = __half2float(s[tx][row]);
}
KERNEL(shared_masked)
{
    __shared__ float s[512];
    s[threadIdx.x] = in[TID];
    s[threadIdx.x + 256] = 0.0f;
    __syncthreads();
    if (threadIdx.x % 5 < 2)
        out[TID] = s[2 * threadIdx.x];
}
KERNEL(shared_tree_sum)
{
    __shared__ float s[256];
    s[threadIdx.x] = in[TID];
    for (int half = 128; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            s[threadIdx.x] += s[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = s[0];
}
KERNEL(shared_tree_interleaved)
{
    __shared__ float s[256];
    s[threadIdx.x] = in[TID];
    for (int step = 1; step < 256; step *= 2) {
        __syncthreads();
        int at = 2 * step * threadIdx.x;
        if (at < 256)
            s[at] += s[at + step];
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = s[0];
}
KERNEL(shared_atomic_bins)
{
    __shared__ int bins[16];
    if (threadIdx.x < 16)
        bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(bins + threadIdx.x * 7 % 16, 1);
    __syncthreads();
    if (threadIdx.x < 16)
        ((int *)out)[blockIdx.x * 16 + threadIdx.x] = bins[threadIdx.x];
}
KERNEL(shared_atomic_float)
{
    __shared__ float sum;
    if (threadIdx.x == 0)
        sum = 0.0f;
    __syncthreads();
    atomicAdd(&sum, in[TID]);
    __syncthreads();
    out[TID] = sum;
}
KERNEL(shared_dynamic)
{
    extern __shared__ float dynamic[];
    dynamic[threadIdx.x ^ 5] = in[TID];
    __syncthreads();
    out[TID] = dynamic[threadIdx.x];
}
KERNEL(shared_one_lane_stores)
{
    __shared__ float s[8];
    if (threadIdx.x % 32 == 3)
        s[threadIdx.x / 32] = in[TID];
    __syncthreads();
    out[TID] = s[threadIdx.x % 8];
}

// cp.async ----------------------------------------------------------------------------------------------------------

template <int BYTES>
__device__ void copy_async(void *to, const void *from)
{
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(BYTES) : "memory");
}
template <int WORDS>
__device__ void async_copy(const float *in, float *out)
{
    __shared__ __align__(16) float s[256 * WORDS];
    copy_async<4 * WORDS>(s + WORDS * threadIdx.x, in + WORDS * TID);
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    out[TID] = s[threadIdx.x ^ 1];
}
KERNEL(async_4) { async_copy<1>(in, out); }
KERNEL(async_8) { async_copy<2>(in, out); }
KERNEL(async_16) { async_copy<4>(in, out); }
KERNEL(async_16_past_l1)
{
    __shared__ float4 s[256];
    unsigned at = (unsigned)__cvta_generic_to_shared(s + threadIdx.x);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(in + 4 * TID) : "memory");
    asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    out[TID] = s[threadIdx.x ^ 1].x;
}
KERNEL(async_4_transposed)
{
    __shared__ float s[32][32];
    int tx = threadIdx.x % 32, ty = threadIdx.x / 32;
    for (int row = ty; row < 32; row += 8)
        copy_async<4>(&s[tx][row], in + row * 32 + tx);
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    for (int row = ty; row < 32; row += 8)
        out[blockIdx.x * 1024 + row * 32 + tx] = s[row][tx];
}
KERNEL(async_4_masked)
{
    __shared__ float s[256];
    s[threadIdx.x] = 0.0f;
    if (threadIdx.x % 3 == 0)
        copy_async<4>(s + threadIdx.x, in + 2 * TID);
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    out[TID] = s[threadIdx.x];
}

// Shared loads that ptxas may fuse: a sum over N neighbours, each lane from its own row -------------------------------

// s[tx * ROW + FIRST + STEP * k], k = 0 ... N - 1, all unrolled.
template <int N, int ROW, int FIRST = 0, int STEP = 1>
__device__ void row_sum(const float *in, float *out)
{
    __shared__ float s[32 * ROW + FIRST + STEP * N];
    for (int i = threadIdx.x; i < 32 * ROW + FIRST + STEP * N; i += blockDim.x)
        s[i] = in[i];
    __syncthreads();
    float sum = 0.0f;
    int tx = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < N; ++k)
        sum += s[tx * ROW + FIRST + STEP * k] * (k + 0.5f);
    out[TID] = sum;
}
KERNEL(row_2_of_32) { row_sum<2, 32>(in, out); }
KERNEL(row_3_of_32) { row_sum<3, 32>(in, out); }
KERNEL(row_4_of_32) { row_sum<4, 32>(in, out); }
KERNEL(row_5_of_32) { row_sum<5, 32>(in, out); }
KERNEL(row_6_of_32) { row_sum<6, 32>(in, out); }
KERNEL(row_7_of_32) { row_sum<7, 32>(in, out); }
KERNEL(row_8_of_32) { row_sum<8, 32>(in, out); }
KERNEL(row_16_of_32) { row_sum<16, 32>(in, out); }
KERNEL(row_32_of_32) { row_sum<32, 32>(in, out); }
KERNEL(row_8_of_33) { row_sum<8, 33>(in, out); }
KERNEL(row_8_of_34) { row_sum<8, 34>(in, out); }
KERNEL(row_8_of_36) { row_sum<8, 36>(in, out); }
KERNEL(row_8_of_9) { row_sum<8, 9>(in, out); }
KERNEL(row_8_of_4) { row_sum<8, 4>(in, out); }
KERNEL(row_8_of_2) { row_sum<8, 2>(in, out); }
KERNEL(row_8_of_1) { row_sum<8, 1>(in, out); }
KERNEL(row_8_from_1) { row_sum<8, 32, 1>(in, out); }
KERNEL(row_8_from_2) { row_sum<8, 32, 2>(in, out); }
KERNEL(row_8_from_3) { row_sum<8, 32, 3>(in, out); }
KERNEL(row_8_steps_of_2) { row_sum<8, 32, 0, 2>(in, out); }
KERNEL(row_8_steps_of_4) { row_sum<8, 32, 0, 4>(in, out); }
KERNEL(row_8_downwards) { row_sum<8, 32, 7, -1>(in, out); }

// Two tiles as in matmul: a row of one by a column of the other.
template <int TILE, int ROW, int UNROLL>
__device__ void tile_product(const float *in, float *out)
{
    __shared__ float A[TILE][ROW], B[TILE][ROW];
    int tx = threadIdx.x, ty = threadIdx.y;
    A[ty][tx] = in[ty * TILE + tx];
    B[ty][tx] = in[ty * TILE + tx + 4096];
    __syncthreads();
    float sum = 0.0f;
#pragma unroll UNROLL
    for (int k = 0; k < TILE; ++k)
        sum += A[ty][k] * B[k][tx];
    out[blockIdx.x * TILE * TILE + ty * TILE + tx] = sum;
}
KERNEL(tile_8) { tile_product<8, 8, 8>(in, out); }
KERNEL(tile_16) { tile_product<16, 16, 16>(in, out); }
KERNEL(tile_32) { tile_product<32, 32, 32>(in, out); }
KERNEL(tile_16_of_17) { tile_product<16, 17, 16>(in, out); }
KERNEL(tile_16_of_18) { tile_product<16, 18, 16>(in, out); }
KERNEL(tile_16_of_20) { tile_product<16, 20, 16>(in, out); }
KERNEL(tile_16_unroll_1) { tile_product<16, 16, 1>(in, out); }
KERNEL(tile_16_unroll_2) { tile_product<16, 16, 2>(in, out); }
KERNEL(tile_16_unroll_3) { tile_product<16, 16, 3>(in, out); }
KERNEL(tile_16_unroll_4) { tile_product<16, 16, 4>(in, out); }
KERNEL(tile_16_unroll_8) { tile_product<16, 16, 8>(in, out); }

// Both operands along a row, as in Q times transpose(K).
template <int TILE, int ROW>
__device__ void row_by_row(const float *in, float *out)
{
    __shared__ float Q[TILE][ROW], K[TILE][ROW];
    int tx = threadIdx.x, ty = threadIdx.y;
    Q[ty][tx] = in[ty * TILE + tx];
    K[ty][tx] = in[ty * TILE + tx + 4096];
    __syncthreads();
    float sum = 0.0f;
    for (int k = 0; k < TILE; ++k)
        sum += Q[ty][k] * K[tx][k];
    out[blockIdx.x * TILE * TILE + ty * TILE + tx] = sum;
}
KERNEL(rows_16) { row_by_row<16, 16>(in, out); }
KERNEL(rows_16_of_17) { row_by_row<16, 17>(in, out); }
KERNEL(rows_16_of_18) { row_by_row<16, 18>(in, out); }
KERNEL(rows_16_of_20) { row_by_row<16, 20>(in, out); }
KERNEL(rows_32) { row_by_row<32, 32>(in, out); }

// Sums in registers: TM x TN of a thread, from shared memory.
template <int TM, int TN, int BK>
__device__ void outer_products(const float *in, float *out)
{
    __shared__ float A[BK][16 * TM], B[BK][16 * TN];
    for (int i = threadIdx.x; i < BK * 16 * TM; i += blockDim.x)
        A[i / (16 * TM)][i % (16 * TM)] = in[i];
    for (int i = threadIdx.x; i < BK * 16 * TN; i += blockDim.x)
        B[i / (16 * TN)][i % (16 * TN)] = in[i + 4096];
    __syncthreads();
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    float sums[TM][TN] = {};
#pragma unroll
    for (int k = 0; k < BK; ++k)
        for (int m = 0; m < TM; ++m)
            for (int j = 0; j < TN; ++j)
                sums[m][j] += A[k][ty * TM + m] * B[k][tx * TN + j];
    for (int m = 0; m < TM; ++m)
        for (int j = 0; j < TN; ++j)
            out[(ty * TM + m) * 16 * TN + tx * TN + j] = sums[m][j];
}
KERNEL(outer_2x2) { outer_products<2, 2, 4>(in, out); }
KERNEL(outer_4x4) { outer_products<4, 4, 4>(in, out); }
KERNEL(outer_8x8) { outer_products<8, 8, 2>(in, out); }
KERNEL(outer_3x5) { outer_products<3, 5, 4>(in, out); }
KERNEL(outer_4x1) { outer_products<4, 1, 8>(in, out); }

// What may stand in the way of fusing.
KERNEL(fuse_not_across_a_barrier)
{
    __shared__ float s[1024];
    for (int i = threadIdx.x; i < 1024; i += 256)
        s[i] = in[i];
    __syncthreads();
    float a = s[4 * threadIdx.x], b = s[4 * threadIdx.x + 1];
    __syncthreads();
    float c = s[4 * threadIdx.x + 2], d = s[4 * threadIdx.x + 3];
    out[TID] = a * b + c * d;
}
KERNEL(fuse_across_a_store)
{
    __shared__ float s[1024], t[256];
    for (int i = threadIdx.x; i < 1024; i += 256)
        s[i] = in[i];
    __syncthreads();
    float a = s[4 * threadIdx.x];
    t[threadIdx.x] = a;
    float b = s[4 * threadIdx.x + 1];
    t[threadIdx.x] += b;
    float c = s[4 * threadIdx.x + 2];
    out[TID] = a * b + c + t[threadIdx.x];
}
KERNEL(fuse_not_volatile)
{
    __shared__ float s[1024];
    for (int i = threadIdx.x; i < 1024; i += 256)
        s[i] = in[i];
    __syncthreads();
    volatile float *v = s + 4 * threadIdx.x;
    out[TID] = v[0] * v[1] + v[2] * v[3];
}
KERNEL(fuse_unknown_offset)
{
    __shared__ float s[1024];
    for (int i = threadIdx.x; i < 1024; i += 256)
        s[i] = in[i];
    __syncthreads();
    int at = (4 * threadIdx.x + n) % 1020;
    out[TID] = s[at] * s[at + 1] + s[at + 2] * s[at + 3];
}
KERNEL(fuse_unknown_offset_times_4)
{
    __shared__ float s[1024];
    for (int i = threadIdx.x; i < 1024; i += 256)
        s[i] = in[i];
    __syncthreads();
    int at = (threadIdx.x + n) % 255 * 4;
    out[TID] = s[at] * s[at + 1] + s[at + 2] * s[at + 3];
}
KERNEL(fuse_masked_index)
{
    __shared__ float s[1024];
    for (int i = threadIdx.x; i < 1024; i += 256)
        s[i] = in[i];
    __syncthreads();
    int at = (threadIdx.x * n + 12 * threadIdx.x) & 1020;
    out[TID] = s[at] * s[at + 1] + s[at + 2] * s[at + 3];
}
KERNEL(fuse_shifted_index)
{
    __shared__ float s[1024];
    for (int i = threadIdx.x; i < 1024; i += 256)
        s[i] = in[i];
    __syncthreads();
    int at = threadIdx.x << 2;
    out[TID] = s[at ^ 1] * s[at] + s[at | 2] * s[at + 3];
}
KERNEL(fuse_in_a_branch)
{
    __shared__ float s[1024];
    for (int i = threadIdx.x; i < 1024; i += 256)
        s[i] = in[i];
    __syncthreads();
    float sum = s[4 * threadIdx.x];
    if (in[TID] > 0.0f)
        sum += s[4 * threadIdx.x + 1] * s[4 * threadIdx.x + 2] + s[4 * threadIdx.x + 3];
    out[TID] = sum;
}
KERNEL(fuse_second_array)
{
    __shared__ float pad[3];
    __shared__ float s[1024];
    for (int i = threadIdx.x; i < 1024; i += 256)
        s[i] = in[i];
    if (threadIdx.x < 3)
        pad[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    int at = 4 * threadIdx.x;
    out[TID] = s[at] * s[at + 1] + s[at + 2] * s[at + 3] + pad[threadIdx.x % 3];
}
KERNEL(fuse_dynamic)
{
    extern __shared__ float dynamic[];
    for (int i = threadIdx.x; i < 1024; i += 256)
        dynamic[i] = in[i];
    __syncthreads();
    int at = 4 * threadIdx.x;
    out[TID] = dynamic[at] * dynamic[at + 1] + dynamic[at + 2] * dynamic[at + 3];
}
KERNEL(fuse_ints)
{
    __shared__ int s[1024];
    for (int i = threadIdx.x; i < 1024; i += 256)
        s[i] = ((const int *)in)[i];
    __syncthreads();
    int at = 4 * threadIdx.x;
    ((int *)out)[TID] = s[at] * s[at + 1] + s[at + 2] * s[at + 3];
}
KERNEL(fuse_chars)
{
    __shared__ signed char s[1024];
    for (int i = threadIdx.x; i < 1024; i += 256)
        s[i] = ((const signed char *)in)[i];
    __syncthreads();
    int at = 4 * threadIdx.x;
    ((int *)out)[TID] = (s[at] ^ s[at + 1]) + (s[at + 2] ^ s[at + 3]);
}
KERNEL(fuse_halves)
{
    __shared__ __half s[1024];
    for (int i = threadIdx.x; i < 1024; i += 256)
        s[i] = __float2half(in[i]);
    __syncthreads();
    int at = 4 * threadIdx.x;
    out[TID] = __half2float(s[at]) * __half2float(s[at + 1]) + __half2float(s[at + 2]) * __half2float(s[at + 3]);
}
KERNEL(fuse_doubles)
{
    __shared__ double s[1024];
    for (int i = threadIdx.x; i < 1024; i += 256)
        s[i] = (double)in[i];
    __syncthreads();
    int at = 4 * threadIdx.x;
    out[TID] = (float)(s[at] * s[at + 1] + s[at + 2] * s[at + 3]);
}
KERNEL(fuse_float2s)
{
    __shared__ float2 s[512];
    for (int i = threadIdx.x; i < 512; i += 256)
        s[i] = ((const float2 *)in)[i];
    __syncthreads();
    float2 a = s[2 * threadIdx.x], b = s[2 * threadIdx.x + 1];
    out[TID] = a.x * a.y + b.x * b.y;
}
KERNEL(fuse_members)
{
    struct Particle {
        float x, y, z, mass;
    };
    __shared__ Particle p[256];
    p[threadIdx.x] = ((const Particle *)in)[TID];
    __syncthreads();
    float x = 0.0f;
    for (int k = 0; k < 256; ++k)
        x += p[k].x * p[k].mass;
    out[TID] = x;
}
KERNEL(fuse_stencil)
{
    __shared__ float s[258];
    s[threadIdx.x + 1] = in[TID + 1];
    if (threadIdx.x < 2)
        s[threadIdx.x * 257] = in[TID];
    __syncthreads();
    out[TID] = s[threadIdx.x] + s[threadIdx.x + 1] + s[threadIdx.x + 2];
}
KERNEL(fuse_same_for_all)
{
    __shared__ float s[64];
    if (threadIdx.x < 64)
        s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    float sum = 0.0f, x = in[TID];
#pragma unroll
    for (int k = 0; k < 64; ++k)
        sum = sum * x + s[k];
    out[TID] = sum;
}
KERNEL(fuse_loop_of_unknown_length)
{
    __shared__ float s[1024];
    for (int i = threadIdx.x; i < 1024; i += 256)
        s[i] = in[i];
    __syncthreads();
    float sum = 0.0f;
    for (int k = 0; k < n / 1024; ++k)
        sum += s[threadIdx.x * 4 + k % 4] * s[k];
    out[TID] = sum;
}
