// The FMA probe: what the FP32 lanes of this card can do, beside which no memory is a limit.
//
// Each thread carries on SUMS sums side by side, so that no multiply-add waits for the one before it: a sum is
// needed again after SUMS - 1 others, and an FMA takes 4 clocks (6 before Volta).
//
// Launch   block THREADS, as many blocks as all multiprocessors hold at once; `steps` times 2 * FMAS floating-point
//          operations a thread; out holds a float a thread.
// Timed    by dojo/roofline.py, beside the read probe: the two roofs of `make kata=tiled compare`.

constexpr int THREADS = 256;
constexpr int SUMS = 8;
constexpr int FMAS = 64 * SUMS;  // of one step, unrolled: the loop around them costs nothing that shows

extern "C" __global__ void __launch_bounds__(THREADS) fma_probe(float *out, float a, float b, int steps)
{
    float sum[SUMS];
    for (int i = 0; i < SUMS; ++i)
        sum[i] = threadIdx.x + i;
    for (int step = 0; step < steps; ++step) {
#pragma unroll
        for (int n = 0; n < FMAS; ++n)
            sum[n % SUMS] = sum[n % SUMS] * a + b;
    }
    float total = 0.0f;
    for (int i = 0; i < SUMS; ++i)
        total += sum[i];
    out[blockIdx.x * THREADS + threadIdx.x] = total;
}
