// Who may touch a word when: see ../test_simulator.py. `//! kind` marks each line that a
// finding must name; a kernel without a mark must have none. T: the thread in its block, I: in the grid.
#define KERNEL(name) extern "C" __global__ void name(const float *x, float *o, int n)
#define T ((int)threadIdx.x)
#define I ((int)(blockIdx.x * blockDim.x + threadIdx.x))
#define FULL 0xffffffffu

// Shared memory, between warps.

KERNEL(read_after_write) {
    __shared__ float s[64];
    s[T] = x[T];
    o[T] = s[63 - T];  //! race
}

KERNEL(write_after_read) {
    __shared__ float s[64];
    s[T] = x[T];
    __syncthreads();
    float v = s[63 - T];
    s[T] = v;  //! race
    __syncthreads();
    o[T] = s[T];
}

KERNEL(write_after_write) {
    __shared__ volatile float s[64];
    s[T] = x[T];
    s[63 - T] = 1;  //! race
    __syncthreads();
    o[T] = s[T];
}

KERNEL(write_together) {
    __shared__ float s;
    s = x[T];  //! race
    __syncthreads();
    o[T] = s;
}

KERNEL(equal_values_together) {
    __shared__ float s;
    s = n;
    __syncthreads();
    o[T] = s;
}

KERNEL(equal_values_in_turn) {
    __shared__ volatile float s;
    for (int i = 0; i < 3; i++)
        if (x[T + i] < 0.5f) s = 1;
    __syncthreads();
    o[T] = s;
}

KERNEL(the_first_thread_overwrites) {
    __shared__ volatile float s;
    s = 0;
    if (T == 0) s = 2;  //! race
    __syncthreads();
    o[T] = s;
}

KERNEL(the_last_thread_overwrites) {
    __shared__ volatile float s;
    s = 0;
    if (T == blockDim.x - 1) s = 2;  //! race
    __syncthreads();
    o[T] = s;
}

KERNEL(one_buffer_for_a_loop) {
    __shared__ float s[64];
    float sum = 0;
    for (int i = 0; i < n; i++) {
        s[T] = x[64 * i + T];  //! race
        __syncthreads();
        sum += s[63 - T];
    }
    o[T] = sum;
}

KERNEL(two_buffers_for_a_loop) {
    __shared__ float s[2][64];
    float sum = 0;
    for (int i = 0; i < n; i++) {
        s[i & 1][T] = x[64 * i + T];
        __syncthreads();
        sum += s[i & 1][63 - T];
    }
    o[T] = sum;
}

KERNEL(flag_of_a_loop) {
    __shared__ bool done;
    float sum = 0;
    for (int i = 0;; i++) {
        if (T == 0) done = i >= n;
        __syncthreads();
        if (done) break;
        sum += x[i];
        __syncthreads();
    }
    o[I] = sum;
}

KERNEL(flag_of_a_loop_without_the_second_barrier) {
    __shared__ bool done;
    float sum = 0;
    for (int i = 0;; i++) {
        if (T == 0) done = i >= n;  //! race
        __syncthreads();
        if (done) break;
        sum += x[i];
    }
    o[I] = sum;
}

KERNEL(bytes_of_one_word) {
    __shared__ unsigned char s[64];
    s[T] = T;
    ((unsigned *)o)[T] = s[T];
}

KERNEL(tree) {  // <<<4, 256>>>
    __shared__ float s[256];
    s[T] = x[I];
    __syncthreads();
    for (int d = 128; d > 0; d >>= 1) {
        if (T < d) s[T] += s[T + d];
        __syncthreads();
    }
    if (T == 0) o[blockIdx.x] = s[0];
}

KERNEL(scan_in_place) {  // <<<1, 256>>>
    __shared__ float s[256];
    s[T] = x[T];
    __syncthreads();
    for (int d = 1; d < 256; d *= 2) {
        float v = T >= d ? s[T - d] : 0;
        s[T] += v;  //! race
        __syncthreads();
    }
    o[T] = s[T];
}

// The lanes of one warp.

KERNEL(lanes_without_order) {  // <<<1, 32>>>
    __shared__ float s[32];
    s[T] = x[T];
    o[T] = s[31 - T];  //! race
}

KERNEL(a_shuffle_orders_no_memory) {  // <<<1, 32>>>
    __shared__ float s[32];
    s[T] = x[T];
    float v = __shfl_xor_sync(FULL, x[T], 1);
    o[T] = s[31 - T] + v;  //! race
}

KERNEL(syncwarp) {  // <<<2, 100>>>
    __shared__ float s[100];
    s[T] = x[T];
    __syncwarp();
    o[I] = s[T ^ 1];
    __syncwarp();
    s[T] = 0;
}

KERNEL(syncwarp_across_warps) {
    __shared__ float s[64];
    s[T] = x[T];
    __syncwarp();
    o[T] = s[T ^ 32];  //! race
}

KERNEL(halves) {  // <<<1, 32>>>
    __shared__ float s[32];
    s[T] = x[T];
    __syncwarp(T < 16 ? 0xffff : 0xffff0000);
    o[T] = s[T ^ 3];
}

KERNEL(halves_that_cross) {  // <<<1, 32>>>
    __shared__ float s[32];
    s[T] = x[T];
    __syncwarp(T < 16 ? 0xffff : 0xffff0000);
    o[T] = s[T ^ 16];  //! race
}

KERNEL(the_whole_then_halves) {  // <<<1, 32>>>
    __shared__ float s[32], h[32];
    s[T] = x[T];
    __syncwarp();
    h[T] = s[T] * 2;
    __syncwarp(T < 16 ? 0xffff : 0xffff0000);
    o[T] = h[T ^ 1] + s[31 - T];
}

KERNEL(by_way_of_a_third_lane) {  // <<<1, 32>>>
    __shared__ volatile float s;
    if (T == 0) s = 1;
    if (T < 16) __syncwarp(0x0000ffff);
    if (T >= 8) __syncwarp(0xffffff00);
    if (T == 20) o[0] = s;
}

KERNEL(no_third_lane) {  // <<<1, 32>>>
    __shared__ volatile float s;
    if (T == 0) s = 1;
    if (T < 8) __syncwarp(0x000000ff);
    if (T >= 8) __syncwarp(0xffffff00);
    if (T == 20) o[0] = s;  //! race
}

KERNEL(three_readers) {  // <<<1, 32>>>
    __shared__ volatile float s;
    if (T == 31) s = 1;
    __syncwarp();
    float v = T < 8 ? s : 0;
    if (T >= 2) __syncwarp(0xfffffffc);
    if (T == 2) s = 9;  //! race
    o[T] = v;
}

KERNEL(three_atomics) {  // <<<1, 32>>>
    __shared__ int s;
    if (T == 31) s = 1;
    __syncwarp();
    if (T < 8) atomicAdd(&s, 1);
    if (T >= 6) __syncwarp(0xffffffc0);
    if (T == 6) o[0] = s;  //! race
}

KERNEL(three_readers_of_a_global_word) {  // <<<2, 32>>>
    float v = T < 8 ? ((volatile float *)o)[blockIdx.x] : 0;
    if (T >= 2) __syncwarp(0xfffffffc);
    if (T == 2) o[blockIdx.x] = 9;  //! race
    o[64 + I] = v;
}

KERNEL(a_half_reads_and_waits) {  // <<<2, 32>>>
    __shared__ volatile float s;
    if (T == 0) s = x[blockIdx.x];
    __syncwarp();
    float v = T >= 16 ? s : 0;
    if (T >= 16) __syncwarp(0xffff0000);
    if (T == 16) s = 9;
    o[I] = v;
}

KERNEL(end_of_a_tree_without_syncwarp) {  // <<<1, 32>>>
    __shared__ volatile float s[64];
    s[T] = x[T], s[T + 32] = x[T + 32];
    __syncwarp();
    for (int d = 32; d > 0; d >>= 1)
        s[T] += s[T + d];  //! race
    if (T == 0) o[0] = s[0];
}

KERNEL(end_of_a_tree) {  // <<<1, 32>>>
    __shared__ float s[64];
    s[T] = x[T], s[T + 32] = x[T + 32];
    for (int d = 32; d > 0; d >>= 1) {
        __syncwarp();
        float v = s[T] + s[T + d];
        __syncwarp();
        s[T] = v;
    }
    if (T == 0) o[0] = s[0];
}

// Atomics.

KERNEL(histogram) {  // <<<3, 256>>>
    __shared__ int s[16];
    if (T < 16) s[T] = 0;
    __syncthreads();
    atomicAdd(&s[(int)(x[I] * 8 + 8)], 1);
    __syncthreads();
    if (T < 16) atomicAdd(&((int *)o)[T], s[T]);
}

KERNEL(histogram_without_a_barrier) {  // <<<1, 256>>>
    __shared__ int s[16];
    if (T < 16) s[T] = 0;
    atomicAdd(&s[(int)(x[I] * 8 + 8)], 1);  //! race
    __syncthreads();
    if (T < 16) o[T] = s[T];
}

KERNEL(a_plain_count) {  // <<<1, 256>>>
    o[(int)(x[I] * 8 + 8)] += 1;  //! race
}

KERNEL(a_store_beside_atomics) {
    __shared__ int s;
    if (T == 0) s = 0;
    __syncthreads();
    atomicAdd(&s, 1);
    if (T == 40) s = 5;  //! race
    __syncthreads();
    o[T] = s;
}

KERNEL(a_load_after_atomics) {
    __shared__ int s;
    if (T == 0) s = 0;
    __syncthreads();
    atomicAdd(&s, 1);
    o[T] = s;  //! race
}

KERNEL(a_load_before_atomics) {
    __shared__ int s;
    if (T == 0) s = 0;
    __syncthreads();
    o[T] = s;
    atomicAdd(&s, 1);  //! race
}

KERNEL(a_load_of_the_last_warp) {
    __shared__ int s;
    if (T == 0) s = 0;
    __syncthreads();
    atomicAdd(&s, 1);
    __syncwarp();
    if (T == 63) o[0] = s;  //! race
}

KERNEL(atomics_of_a_warp) {  // <<<2, 256>>>
    __shared__ int s[8];
    int w = T / 32;
    if (T % 32 == 0) s[w] = 0;
    __syncwarp();
    atomicAdd(&s[w], T);
    __syncwarp();
    o[I] = s[w];
}

KERNEL(compare_and_swap) {  // <<<4, 64>>>
    int *p = (int *)o, old = *p, seen;
    do {
        seen = old;
        old = atomicCAS(p, seen, __float_as_int(__int_as_float(seen) + (T & 3)));
    } while (old != seen);
}

KERNEL(ticket) {  // <<<10, 64>>>
    __shared__ int mine;
    for (;;) {
        __syncthreads();
        if (T == 0) mine = atomicAdd((int *)&o[1280], 1);
        __syncthreads();
        if (mine >= 20) break;
        o[mine * 64 + T] = mine;
    }
}

// Global memory.

KERNEL(in_global_memory) {
    o[T] = x[T];
    o[T + 64] = o[63 - T];  //! race
}

KERNEL(in_global_memory_with_a_barrier) {  // <<<3, 64>>>
    float *mine = o + blockIdx.x * 128;
    mine[T] = x[I];
    __syncthreads();
    mine[T + 64] = mine[63 - T];
}

KERNEL(a_global_word_for_two_warps) {  // <<<3, 64>>>
    float v = o[blockIdx.x];
    __syncwarp();
    if (T == 32) o[blockIdx.x] = v + 1;  //! race
}

KERNEL(a_global_word_for_two_warps_and_a_fence) {  // <<<3, 64>>>
    float v = o[blockIdx.x];
    __threadfence();
    __syncwarp();
    if (T == 32) o[blockIdx.x] = v + 1;  //! race
}

KERNEL(a_global_word_once_read_by_the_other_warp) {
    volatile float *p = o;
    if (T == 32) o[64] = p[0];
    __syncthreads();
    float v = T < 2 ? p[0] : 0;
    if (T == 1) p[0] = v + 1;  //! race
}

KERNEL(a_global_word_for_one_warp) {  // <<<3, 32>>>
    volatile float *p = o + blockIdx.x;
    for (int i = 0; i < n; i++) {
        float v = *p;
        __syncwarp();
        if (T == i) *p = v + 1;
        __syncwarp();
    }
}

KERNEL(a_barrier_orders_no_blocks) {  // <<<4, 64>>>
    o[I] = x[I];
    __syncthreads();
    o[I + 256] = o[255 - I];  //! race
}

KERNEL(blocks_shift_in_place) {  // <<<300, 256>>>
    float v = o[I + 1 < 76800 ? I + 1 : 0];  //! race
    o[I] = v + 1;  //! race
}

KERNEL(blocks_write_one_row) {  // <<<300, 256>>>
    o[T] = x[I];  //! race
}

KERNEL(only_the_last_block_overwrites) {  // <<<300, 256>>>
    o[I] = x[I];
    if (I == 76799) o[1] = 5;  //! race
}

KERNEL(blocks_raise_a_flag) {  // <<<300, 256>>>
    if (x[I] > -2) o[0] = 1;
}

KERNEL(the_last_block_overwrites) {  // <<<4, 64>>>
    volatile float *p = o;
    if (T == 0) p[0] = 0;
    if (I == 192) p[0] = 2;  //! race
}

KERNEL(the_last_block_sums_without_a_fence) {  // <<<64, 32>>>
    __shared__ bool last;
    if (T == 0) {
        o[blockIdx.x] = x[blockIdx.x];
        last = atomicAdd((int *)&o[100], 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && T == 0)
        for (int i = 0; i < gridDim.x; i++) o[101] += o[i];  //! race
}

KERNEL(the_last_block_sums) {  // <<<64, 32>>>
    __shared__ bool last;
    if (T == 0) {
        o[blockIdx.x] = x[blockIdx.x];
        __threadfence();
        last = atomicAdd((int *)&o[100], 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && T == 0) {
        float sum = 0;
        for (int i = 0; i < gridDim.x; i++) sum += ((volatile float *)o)[i];
        o[101] = sum;
    }
}

KERNEL(a_block_waits_for_another_at_its_barriers) {  // <<<2, 64>>>
    __shared__ float s[64];
    int *raised = (int *)&o[100];
    if (blockIdx.x == 0) {
        s[T] = x[T];
        __syncthreads();
        o[T] = s[63 - T];
        __syncthreads();
        __threadfence();
        if (T == 0) atomicExch(raised, 1);
    } else {
        while (T == 0 && atomicAdd(raised, 0) == 0) {}
        __syncthreads();
        o[T + 128] = ((volatile float *)o)[T];
    }
}

KERNEL(a_fence_is_no_barrier) {
    __shared__ float s[64];
    s[T] = x[T];
    __threadfence();
    o[T] = s[63 - T];  //! race
}

KERNEL(a_fence_of_the_block_orders_no_blocks) {  // <<<2, 64>>>
    o[I] = x[I];
    __threadfence_block();
    if (I == 100) o[0] = o[0] + 1;  //! race
}

KERNEL(a_lock_with_fences) {  // <<<3, 128>>>
    __shared__ float s;
    __shared__ int lock;
    if (T == 0) s = lock = 0;
    __syncthreads();
    if (T % 32 == 0) {
        while (atomicCAS(&lock, 0, 1) != 0) {}
        __threadfence_block();
        *(volatile float *)&s += T;
        __threadfence_block();
        atomicExch(&lock, 0);
    }
    __syncthreads();
    o[I] = s;
}

KERNEL(a_lock_with_fences_for_a_global_word) {  // <<<3, 128>>>
    int *lock = (int *)&o[blockIdx.x + 3];
    if (T % 32 == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        __threadfence_block();
        ((volatile float *)o)[blockIdx.x] += T;
        __threadfence_block();
        atomicExch(lock, 0);
    }
}

KERNEL(a_lock_without_fences) {  // <<<3, 128>>>
    __shared__ float s;
    __shared__ int lock;
    if (T == 0) s = lock = 0;
    __syncthreads();
    if (T % 32 == 0) {
        while (atomicCAS(&lock, 0, 1) != 0) {}
        *(volatile float *)&s += T;  //! race
        atomicExch(&lock, 0);
    }
    __syncthreads();
    o[I] = s;
}

KERNEL(handed_on_before_the_fence) {
    __shared__ volatile float s;
    __shared__ int flag;
    if (T == 0) flag = 0;
    __syncthreads();
    if (T == 32) {
        s = 1;
        atomicExch(&flag, 1);
        __threadfence_block();
    } else if (T == 0) {
        while (atomicAdd(&flag, 0) == 0) {}
        __threadfence_block();
        o[0] = s;  //! race
    }
}

KERNEL(fetched_before_the_fence) {
    __shared__ volatile float s;
    __shared__ int flag;
    if (T == 0) flag = 0;
    __syncthreads();
    if (T == 32) {
        s = 1;
        __threadfence_block();
        atomicExch(&flag, 1);
    } else if (T == 0) {
        while (atomicAdd(&flag, 0) == 0) {}
        o[0] = s;  //! race
    }
}

// The read-only cache.

KERNEL(ldg_of_what_it_wrote) {
    o[T] = x[T];
    o[T + 64] = __ldg(&o[T]);  //! race
}

KERNEL(ldg_of_what_is_written_later) {  // <<<2, 64>>>
    float v = __ldg(&o[(I + 1) % 128 + 64]);
    __syncthreads();
    if (I == 127) o[64 + 5] = v;  //! race
}

KERNEL(ldg_of_neighbours) {  // <<<2, 64>>>
    float4 v = __ldg((float4 *)o + I * 2);
    o[I * 8 + 4] = v.x + v.w + x[I];
}

// cp.async

#define COPY(to, from) \
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((int)__cvta_generic_to_shared(to)), "l"(from) : "memory")
#define COMMIT asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(groups) asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory")

KERNEL(copy) {  // <<<2, 64>>>
    __shared__ float s[64];
    COPY(&s[T], x + I);
    COMMIT;
    WAIT(0);
    __syncthreads();
    o[I] = s[63 - T];
}

KERNEL(copy_without_a_commit) {
    __shared__ float s[64];
    COPY(&s[T], x + T);
    WAIT(0);
    __syncthreads();
    o[T] = s[63 - T];  //! race
}

KERNEL(copy_without_a_wait) {
    __shared__ float s[64];
    COPY(&s[T], x + T);
    COMMIT;
    __syncthreads();
    o[T] = s[T];  //! race
}

KERNEL(copy_without_a_barrier) {
    __shared__ float s[64];
    COPY(&s[T], x + T);
    COMMIT;
    WAIT(0);
    o[T] = s[63 - T];  //! race
}

KERNEL(copy_with_a_wait_after_the_barrier) {
    __shared__ float s[64];
    COPY(&s[T], x + T);
    COMMIT;
    __syncthreads();
    WAIT(0);
    o[T] = s[T ^ 32];  //! race
}

KERNEL(copy_for_a_warp_without_syncwarp) {
    __shared__ float s[64];
    COPY(&s[T], x + T);
    COMMIT;
    WAIT(0);
    o[T] = s[T ^ 1];  //! race
}

KERNEL(store_over_a_copy) {
    __shared__ float s[64];
    COPY(&s[T], x + T);
    COMMIT;
    if (T >= n) s[T] = 0;  //! race
    WAIT(0);
    __syncthreads();
    o[T] = s[63 - T];
}

KERNEL(copies_in_two_buffers) {  // <<<2, 64>>>
    __shared__ float s[2][64];
    float sum = 0;
    COPY(&s[0][T], x + T);
    COMMIT;
    for (int i = 0; i < n; i++) {
        if (i + 1 < n) COPY(&s[(i + 1) & 1][T], x + 64 * (i + 1) + T);
        COMMIT;
        WAIT(1);
        __syncthreads();
        sum += s[i & 1][63 - T];
        __syncthreads();
    }
    o[I] = sum;
}

KERNEL(copies_that_overtake_the_readers) {
    __shared__ float s[2][64];
    float sum = 0;
    COPY(&s[0][T], x + T);
    COMMIT;
    for (int i = 0; i < n; i++) {
        if (i + 1 < n) COPY(&s[(i + 1) & 1][T], x + 64 * (i + 1) + T);  //! race
        COMMIT;
        WAIT(1);
        __syncthreads();
        sum += s[i & 1][63 - T];
    }
    o[T] = sum;
}

KERNEL(a_wait_for_too_few) {
    __shared__ float s[2][64];
    COPY(&s[0][T], x + T);
    COMMIT;
    WAIT(1);
    __syncthreads();
    o[T] = s[0][63 - T];  //! race
}

KERNEL(read_before_the_loop_by_the_compiler_too) {
    __shared__ float base;
    if (T == 0) base = x[0];
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i * 64 + T] - base;  //! race
    o[T] = sum;
}
