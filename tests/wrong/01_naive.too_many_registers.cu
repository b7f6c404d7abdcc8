// refused: launch: 96 partial sums want more than the 64 registers that each of 1024 threads can have

constexpr int TILE_WIDTH = 32;

extern "C" __global__ void matmul_naive(const float *M, const float *N, float *P, int Width)
{
    int Row = blockIdx.y * TILE_WIDTH + threadIdx.y;
    int Col = blockIdx.x * TILE_WIDTH + threadIdx.x;

    if (Row < Width && Col < Width) {
        float sums[96] = {};  // fully unrolled, so all of them are registers
        int k = 0;
        for (; k + 95 < Width; k += 96)
#pragma unroll
            for (int i = 0; i < 96; ++i)
                sums[i] += M[Row * Width + k + i] * N[(k + i) * Width + Col];
        for (; k < Width; ++k)
            sums[0] += M[Row * Width + k] * N[k * Width + Col];
        float Pvalue = 0.0f;
#pragma unroll
        for (int i = 0; i < 96; ++i)
            Pvalue += sums[i];
        P[Row * Width + Col] = Pvalue;
    }
}
