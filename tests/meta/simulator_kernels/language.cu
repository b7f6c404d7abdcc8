// What C++ compiles to: types, control flow, functions, structs, printf. The marks and macros as in races.cu.
#include <cassert>
#include <cstdio>
#include <cuda_fp16.h>
#define KERNEL(name) extern "C" __global__ void name(const float *x, float *o, int n)
#define T ((int)threadIdx.x)
#define I ((int)(blockIdx.x * blockDim.x + threadIdx.x))

KERNEL(chars) {
    __shared__ signed char s[64];
    s[T] = T * 3;
    __syncthreads();
    ((signed char *)o)[T] = s[63 - T];
}

KERNEL(shorts) {
    __shared__ short s[64];
    s[T] = T * 999;
    __syncthreads();
    ((short *)o)[T] = s[63 - T];
}

KERNEL(halves_of_floats) {
    __shared__ __half s[64];
    s[T] = __float2half(x[T]);
    __syncthreads();
    o[T] = __half2float(__hadd(s[63 - T], __float2half(1.0f)));
}

KERNEL(half2s) {
    __half2 v = __floats2half2_rn(T, 2 * T);
    ((__half2 *)o)[T] = __hfma2(v, v, __float2half2_rn(1.0f));
}

KERNEL(vectors) {
    __shared__ float4 s[64];
    s[T] = ((const float4 *)x)[T];
    __syncthreads();
    float4 v = s[63 - T];
    ((float4 *)o)[T] = make_float4(v.w, v.z, v.y, v.x);
}

struct Mixed {
    float a;
    char b;
    double c;
};

KERNEL(structs) {
    __shared__ Mixed s[64];
    s[T] = {x[T], (char)T, 2.0 * x[T]};
    __syncthreads();
    Mixed v = s[63 - T];
    o[T] = v.a + v.b + v.c;
}

KERNEL(a_switch) {
    int r, *out = (int *)o;
    switch (T % 9) {
        case 0: r = T; break;
        case 1: r = T * T; break;
        case 2: r = ~T; break;
        case 3: r = T ^ 0x55;
        case 4: r = T >> 1; break;
        case 5: r = T * 7 % 5; break;
        case 7: out[T] = -7; return;
        default: r = -1;
    }
    out[T] = r;
}

KERNEL(loops_in_loops) {  // <<<300, 256>>>
    int sum = 0;
    for (int i = 0; i < I % 7; i++) {
        if (i == 3 && I % 2) continue;
        for (int j = i; j < I % 5; j++) {
            if (j * i == 6) break;
            sum += i * j + 1;
            if (I % 4 == 2) goto out;
        }
        sum ^= i;
    }
out:
    ((int *)o)[I] = sum;
}

__device__ __noinline__ Mixed make(float v, int i) { return {v, (char)i, 2.0 * v}; }
__device__ __noinline__ float use(Mixed m, int *left) {
    *left = 5;
    return m.a + m.b + m.c;
}

KERNEL(functions) {  // <<<1, 100>>>
    int left = 1;
    float sum = use(make(x[T], T), &left);
    o[T] = sum + left;
}

__device__ __noinline__ int fibonacci(int i) { return i < 2 ? i : fibonacci(i - 1) + fibonacci(i - 2); }

KERNEL(recursion) { o[T] = fibonacci(T); }

__constant__ float weights[3] = {1, 2, 4};
__device__ int launches = 3;

KERNEL(variables) {
    o[T] = weights[T % 3] + launches;
    __syncthreads();
    if (T == 0) launches = 9;
}

KERNEL(prints) {  // <<<2, 32>>>
    if (T % 16 == 3) printf("%d %5.2f %s %c %llu %x %%\n", T, 1.5f, "word", 'q', 123456789012ull, 255u);
}

KERNEL(prints_a_lot) {  // <<<2, 128>>>
    printf("%d\n", T);
}

KERNEL(asserts) {
    assert(T < 20);  //! result
    o[T] = 1;
}

KERNEL(traps) {
    if (T == 5) __trap();  //! result
    o[T] = 1;
}

KERNEL(never_ends) {  // budget
    while (((volatile float *)o)[0] == 0) {}  //! timeout
}

KERNEL(one_thread_never_ends) {  // <<<300, 64>>> budget
    o[I] = 1;
    if (I == 12345)
        while (((volatile float *)x)[0] != 7) {}  //! timeout
}

KERNEL(three_dimensions) {  // <<<(4, 3, 2), (4, 4, 4)>>>
    int i = blockIdx.x * 4 + threadIdx.x, j = blockIdx.y * 4 + threadIdx.y, k = blockIdx.z * 4 + threadIdx.z;
    if (i < 14 && j < 10 && k < 6) o[(k * 10 + j) * 14 + i] = x[(i * 10 + j) * 6 + k] + (i == 0 ? k : 0);
}

KERNEL(ragged) {  // <<<11, 7>>>
    if (I < 75) o[I] = 2 * x[I];
}

KERNEL(either_space) {
    __shared__ float s[64];
    s[T] = 2 * x[T];
    __syncthreads();
    const float *p = n > 7 ? x : s;
    o[T] = p[63 - T];
}
