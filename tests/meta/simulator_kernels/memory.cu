// What nobody has set, and what lies outside. The marks and macros as in races.cu. x and o have 76,800 floats.
#define KERNEL(name) extern "C" __global__ void name(const float *x, float *o, int n)
#define T ((int)threadIdx.x)
#define I ((int)(blockIdx.x * blockDim.x + threadIdx.x))

// Variables.

KERNEL(a_sum_from_nothing) {
    float sum;
    for (int i = 0; i < n; i++) sum += x[T + i];  //! uninitialised
    o[T] = sum;
}

KERNEL(set_on_one_path) {
    float v;
    for (int i = 0; i < n; i++)
        if (x[T + i] > 0.5f) v = x[T + i] * 2 + i;
    o[T] = v;  //! uninitialised
}

KERNEL(chosen_only_if_set) {
    float v;
    int i;
    bool found = false;
    for (i = 0; i < n; i++)
        if (x[T + i] > 0.5f) {
            v = x[T + i] * 2;
            found = true;
            break;
        }
    o[T] = found ? v + i : -1;
}

KERNEL(decided_before_it_is_looked_at) {
    float best;
    bool have = false;
    for (int i = 0; i < n; i++)
        if (!have || x[T + i] > best) best = x[T + i], have = true;
    o[T] = have && best > 0.5f ? best : 0;
}

KERNEL(a_bool_of_both) {
    int v;
    bool have = false;
    for (int i = 0; i < n; i++)
        if (x[T + i] > 0) v = i, have = true;  // the last one stays
    o[T] = have && v == 2;
}

KERNEL(set_and_used_under_one_condition) {
    float v;
    if (T < n) v = x[T];
    __syncthreads();
    o[T] = T < n ? v * v : 0;
}

// Local arrays.

KERNEL(local_array) {
    float a[16];
    for (int i = 0; i < 16; i++) a[i] = x[T + i];
    o[T] = a[T * 7 & 15] + a[T & 15];
}

KERNEL(local_array_with_holes) {
    float a[16];
    for (int i = 0; i < n; i++) a[i * 3 & 15] = x[T];
    o[T] = a[T & 15];  //! uninitialised
}

KERNEL(local_array_too_short) {
    float a[4];
    for (int i = 0; i < n; i++) a[i] = x[i];  //! bounds
    o[T] = a[T & 3];
}

// Shared memory.

KERNEL(shared_with_a_hole) {
    __shared__ float s[64];
    if (T != 40) s[T] = x[T];
    __syncthreads();
    o[T] = s[63 - T];  //! uninitialised
}

KERNEL(shared_with_a_hole_in_some_blocks) {  // <<<300, 64>>>
    __shared__ float s[64];
    if (T != 40 || blockIdx.x != 250) s[T] = x[T];
    __syncthreads();
    o[I] = s[63 - T];  //! uninitialised
}

KERNEL(three_bytes_of_four) {
    __shared__ int s[64];
    for (int i = 0; i < 3; i++) ((char *)s)[4 * T + i] = 1;
    __syncthreads();
    o[T] = s[T];  //! uninitialised
}

KERNEL(half_of_a_float2) {
    __shared__ float2 s[64];
    s[T].x = x[T];
    __syncthreads();
    ((float2 *)o)[T] = s[T];  //! uninitialised
}

KERNEL(three_of_a_float4) {
    __shared__ float4 s[64];
    s[T].x = x[T], s[T].y = 1, s[T].z = 2;
    __syncthreads();
    float4 v = s[63 - T];
    o[T] = v.x + v.y + v.z;
}

struct Padded {
    char a;
    int b;
};

KERNEL(padding) {  // known: copying a struct copies the bytes between its members
    __shared__ Padded s[64];
    s[T].a = 1, s[T].b = T;
    __syncthreads();
    ((Padded *)o)[T + 64] = s[63 - T];
    o[T] = s[63 - T].b;
}

KERNEL(read_too_early_but_unused) {
    __shared__ float top;
    if (n > 7) {
        if (T == 0) top = x[0];
        __syncthreads();
    }
    o[T] = n > 7 && top > 0 ? 1 : x[T];
}

KERNEL(a_vote_about_nothing) {
    __shared__ int s[64];
    if (T < 40) s[T] = 1;
    __syncthreads();
    o[T] = __any_sync(0xffffffff, s[T] > 0);  //! uninitialised
}

KERNEL(an_atomic_on_nothing) {
    __shared__ int s;
    atomicAdd(&s, 1);  //! uninitialised
    __syncthreads();
    o[T] = s;
}

// Global memory; o counts as never written.

KERNEL(adds_to_its_output) {  // unset
    o[T] += x[T];  //! uninitialised
}

KERNEL(reads_its_output_in_vain) {  // unset
    float v = ((volatile float *)o)[T];
    o[T] = n == 0 ? v : x[T];
}

KERNEL(reads_what_it_wrote) {  // <<<2, 64>>> unset
    o[I] = x[I];
    __syncthreads();
    float v = o[I ^ 1];
    __syncthreads();
    o[I] = v;
}

KERNEL(copies_its_output) {  // unset
    __shared__ float s[64];
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4; cp.async.wait_all;" ::"r"(
                     (int)__cvta_generic_to_shared(&s[T])), "l"(o + T) : "memory");  //! uninitialised
    o[T + 64] = s[T];  //! uninitialised
}

// Bounds.

KERNEL(before_the_start) {
    o[T] = x[T - 1];  //! bounds
}

KERNEL(past_the_end) {  // <<<300, 256>>>
    o[I + 1] = x[I];  //! bounds
}

KERNEL(far_away) {
    o[T] = x[(long long)T << 40];  //! bounds
}

KERNEL(before_one_of_two_arrays) {
    const float *p = T % 2 ? o : x;
    o[T + 64] = p[(n - 5) * T - 1];  //! bounds
}

KERNEL(through_a_null_pointer_or_not) {
    const float *p = T > 1 ? x : T == 1 ? o : (const float *)(long long)(n - 5);
    o[T + 64] = p[T];  //! bounds
}

KERNEL(an_atomic_past_the_end) {
    atomicAdd(&o[76800 - 60 + T], 1.0f);  //! bounds
}

KERNEL(a_null_pointer) {
    const float *p = (const float *)(long long)(n - 5);
    o[T] = p[T];  //! bounds
}

KERNEL(crooked) {  // <<<1, 8>>>
    ((float4 *)o)[T] = *(const float4 *)(x + T);  //! bounds
}

KERNEL(crooked_in_shared_memory) {
    __shared__ __align__(16) float s[68];
    s[T] = x[T];
    __syncthreads();
    if (T < 8) ((float2 *)o)[T] = *(const float2 *)(s + T);  //! bounds
}

KERNEL(into_the_next_shared_array) {
    __shared__ float a[64], b[64];
    a[T] = b[T] = x[T];
    __syncthreads();
    o[T] = a[T + 1] + b[T];  //! bounds
}

KERNEL(past_the_next_row) {
    __shared__ float a[8][8];
    a[T / 8][T % 8] = x[T];
    __syncthreads();
    o[T] = a[T / 8][T % 8 + 1];  //! bounds
}

KERNEL(a_shared_atomic_past_the_end) {
    __shared__ int s[60];
    if (T < 60) s[T] = 0;
    __syncthreads();
    atomicAdd(&s[T], 1);  //! bounds
    __syncthreads();
    if (T < 60) o[T] = s[T];
}

__device__ double table[8];

KERNEL(past_a_variable) {  // <<<1, 10>>>
    o[T] = table[T];  //! bounds
}

KERNEL(dynamic) {  // shared=832
    extern __shared__ char raw[];
    float *a = (float *)raw;
    double *b = (double *)(raw + 256);
    unsigned char *c = (unsigned char *)(b + 64);
    a[T] = x[T], b[T] = 2 * x[T], c[T] = T;
    __syncthreads();
    o[T] = a[63 - T] + b[63 - T] + c[63 - T];
}

KERNEL(dynamic_too_short) {  // shared=800
    extern __shared__ char raw[];
    raw[13 * T] = 1;  //! bounds
    __syncthreads();
    o[T] = raw[13 * (T ^ 1)];  //! bounds
}

KERNEL(read_before_the_loop_by_the_compiler) {
    float sum = 0;
    int end = 76800 / 5 * n;
    for (int i = 0; i < n; i++)
        sum += x[i * 64 + T] * x[end + T];  //! bounds
    o[T] = sum;
}
