// Barriers, warp functions and what lanes miss. The marks and macros as in races.cu.
#define KERNEL(name) extern "C" __global__ void name(const float *x, float *o, int n)
#define T ((int)threadIdx.x)
#define I ((int)(blockIdx.x * blockDim.x + threadIdx.x))
#define FULL 0xffffffffu

KERNEL(two_barriers) {
    if (T < 32) {
        __syncthreads();  //! barrier
        o[T] = 1;
    } else {
        __syncthreads();
        o[T] = 2;
    }
}

KERNEL(trip_counts_differ) {
    float sum = 0;
    for (int i = 0; i < 1 + T % 2; i++) {
        __syncthreads();  //! barrier
        sum += x[i];
    }
    __syncthreads();
    o[T] = sum;
}

KERNEL(one_block_is_stuck) {  // <<<600, 64>>>
    if (blockIdx.x == 517 && T < 10) {
        __syncwarp();  //! barrier
        o[0] = 1;
    } else
        __syncthreads();
    o[I] = x[I];
}

KERNEL(exited_threads_have_arrived) {  // <<<3, 128>>>
    __shared__ float s[100];
    if (T >= 100) return;
    s[T] = x[T];
    __syncthreads();
    o[blockIdx.x * 100 + T] = s[99 - T];
}

KERNEL(threads_leave_an_unrolled_loop) {
    __shared__ float s[64];
    int t = threadIdx.x;
    for (int i = 0; i < n; i++) {
        if (t >= 60 - i) return;
        __syncthreads();
        s[t] = x[i * 64 + t];
        __syncthreads();
        o[t] = s[0];
    }
}

KERNEL(whole_blocks_part) {  // <<<1500, 32>>>
    __shared__ float s[32];
    s[T] = x[T];
    for (int i = 0; i < blockIdx.x % 5; i++) {
        __syncthreads();
        float v = s[(T + 1) & 31];
        __syncthreads();
        s[T] = v;
    }
    if (blockIdx.x & 1) __syncthreads();
    o[I] = s[T];
}

KERNEL(a_block_without_its_barrier) {  // <<<1200, 64>>>
    __shared__ float s[64];
    s[T] = x[T];
    if (blockIdx.x != 1133) __syncthreads();
    o[I] = s[63 - T];  //! race
}

KERNEL(votes_at_a_barrier) {  // <<<2, 100>>>
    int *out = (int *)o;
    out[I] = __syncthreads_count(x[I] > 0);
    out[I + 200] = __syncthreads_or(x[I] > 0.999f) + 2 * __syncthreads_and(x[I] < 5);
}

KERNEL(votes_on_shared_values) {
    __shared__ float s[64];
    s[T] = x[T];
    __syncthreads();
    o[T] = __syncthreads_count(s[T ^ 1] > 0);
}

KERNEL(a_vote_of_some) {
    if (T < 10)
        ((unsigned *)o)[T] = __ballot_sync(FULL, x[T] > 0);  //! barrier
    else
        o[T] = 1;
}

KERNEL(votes_of_a_warp) {
    unsigned *out = (unsigned *)o;
    out[T] = __ballot_sync(FULL, x[T] > 0);
    out[T + 64] = __any_sync(FULL, x[T] > 0.9f) + 2 * __all_sync(FULL, x[T] < 5);
    out[T + 128] = __reduce_add_sync(FULL, T);
    out[T + 192] = __match_any_sync(FULL, T / 5);
    if (T % 3 == 0) out[T + 256] = __activemask();
}

KERNEL(match_all) {
    int same, differ;
    unsigned one = __match_all_sync(FULL, T / 32, &same), other = __match_all_sync(FULL, T, &differ);
    ((unsigned *)o)[T] = same && !differ ? one ^ other : 0;
}

KERNEL(lanes_that_have_left) {  // <<<1, 112>>>
    float v = x[T];
    if (T % 32 >= 16) return;
    for (int d = 8; d; d >>= 1) v += __shfl_down_sync(FULL, v, d, 16);
    if (T % 32 == 0) o[T / 32] = v;
}

KERNEL(rows_of_eight_lanes) {  // <<<1, 128>>>
    int row = I / 8;
    if (row >= 10) return;
    float sum = 0;
    for (int i = T % 8; i < 70; i += 8) sum += x[row * 70 + i];
    for (int d = 4; d; d /= 2) sum += __shfl_down_sync(FULL, sum, d, 8);
    if (T % 8 == 0) o[row] = sum;
}

KERNEL(a_lane_beyond_the_block) {  // <<<1, 7>>>
    o[T] = __shfl_down_sync(FULL, x[T], 1);  //! uninitialised
}

KERNEL(a_lane_beyond_the_block_unused) {  // <<<1, 7>>>
    float v = x[T], next = __shfl_down_sync(FULL, v, 1);
    o[T] = T + 1 < blockDim.x ? v + next : v;
}

KERNEL(block_sum) {  // <<<1, 100>>>
    __shared__ float s[32];
    float v = x[T];
    int count = min(32, blockDim.x - T / 32 * 32);
    for (int d = 16; d; d >>= 1) {
        float other = __shfl_down_sync(FULL, v, d);
        if (T % 32 + d < count) v += other;
    }
    if (T % 32 == 0) s[T / 32] = v;
    __syncthreads();
    if (T == 0) o[0] = s[0] + s[1] + s[2] + s[3];
}

KERNEL(a_source_outside_the_mask) {  // <<<1, 32>>>
    unsigned mask = T < 16 ? 0xffff : 0xffff0000;
    o[T] = __shfl_xor_sync(mask, x[T], 16);  //! uninitialised
}

KERNEL(a_mask_without_its_own_lane) {  // <<<1, 32>>>
    __syncwarp(0xfffffffe);  //! barrier
    o[T] = 1;
}

KERNEL(a_cold_branch_before_a_shuffle) {
    float v = x[T];
#pragma unroll 1
    for (int i = 0; i < 4; i++) {
        if (__builtin_expect(T >= 40 && T < 50 && i == 1, 0))
#pragma unroll 1
            for (int j = 0; j < n; j++) v = v * 0.5f + j;
        v += 0.25f * __shfl_xor_sync(FULL, v, 1);
    }
    o[T] = v;
}

KERNEL(a_lock_for_two_blocks) {  // <<<2, 32>>>
    if (T == 0) {
        while (atomicCAS((int *)o, 0, 1) != 0) {}
        __threadfence();
        ((volatile float *)o)[1] += blockIdx.x + 1;
        __threadfence();
        atomicExch((int *)o, 0);
    }
}

KERNEL(lanes_take_turns_at_a_lock) {  // <<<1, 4>>>
    for (bool done = false; !done;)
        if (atomicCAS((int *)o, 0, 1) == 0) {
            atomicAdd(&o[1], 1.0f);
            atomicExch((int *)o, 0);
            done = true;
        }
}

KERNEL(all_blocks_meet) {  // <<<16, 32>>>
    if (T == 0) {
        atomicAdd((int *)o, 1);
        while (atomicAdd((int *)o, 0) < gridDim.x) {}
        o[1 + blockIdx.x] = blockIdx.x;
    }
}

// One barrier or two: of a function, on one line, in a loop that the compiler copies.

__device__ __forceinline__ void wait() { __syncthreads(); }
__device__ __noinline__ void wait_far(float *s) { s[T] = 1; __syncthreads(); }

KERNEL(one_function_in_two_branches) {
    if (T < 40) {
        wait();  //! barrier
        o[T] = 1;
    } else {
        wait();
        o[T] = 2;
    }
}

KERNEL(one_function_in_two_branches_not_inlined) {
    __shared__ float s[64];
    if (T < 40)
        wait_far(s);  //! barrier
    else
        wait_far(s);
    o[T] = s[T];
}

KERNEL(one_function_for_some_then_for_all) {
    if (T < 40) {
        wait();  //! barrier
        o[T] = 1;
    }
    wait();
    o[T + 64] = 2;
}

KERNEL(two_barriers_on_one_line) {
    for (int i = 0; i < n; i++)
        if (T < 40) { __syncthreads(); o[T] = i; } else { __syncthreads(); o[T] = 2 * i; }  //! barrier
}

KERNEL(threads_leave_a_loop_of_calls) {
    __shared__ float s[64];
    auto meet = [] { wait(); };
    for (int i = 0; i < n; i++) {
        if (T >= 60 - i) return;
        meet();
        s[T] = x[i * 64 + T];
        meet();
        o[T] = s[0];
    }
}

KERNEL(threads_leave_copies_of_a_loop) {
    __shared__ float s[64];
    int turns = T < 32 ? 7 : 5;
    float sum = 0;
#pragma unroll 4
    for (int i = 0; i < turns; i++) {
        s[T] = x[i * 64 + T];
        wait();
        sum += s[T ^ 1];
        wait();
    }
    o[T] = sum;
}

template <int Turns> __device__ float turns(float *s, const float *x) {
    s[T] = x[Turns * 64 + T];
    __syncthreads();
    float sum = s[T ^ 1];
    __syncthreads();
    if constexpr (Turns > 0) sum += turns<Turns - 1>(s, x);
    return sum;
}

KERNEL(a_template_that_calls_itself) {
    __shared__ float s[64];
    float sum = 0;
    for (int i = 0; i < n; i++) sum += turns<2>(s, x + i);
    o[T] = sum;
}
