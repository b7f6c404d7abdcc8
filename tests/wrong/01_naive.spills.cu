// refused: traffic: the launch bounds leave 32 registers for 48 partial sums, the others spill into local memory

constexpr int TILE_WIDTH = 16;

extern "C" __global__ void __launch_bounds__(TILE_WIDTH * TILE_WIDTH, 8)
matmul_naive(const float *M, const float *N, float *P, int Width)
{
    int Row = blockIdx.y * TILE_WIDTH + threadIdx.y;
    int Col = blockIdx.x * TILE_WIDTH + threadIdx.x;

    if (Row < Width && Col < Width) {
        float sums[48] = {};
        int k = 0;
        for (; k + 47 < Width; k += 48)
#pragma unroll
            for (int i = 0; i < 48; ++i)
                sums[i] += M[Row * Width + k + i] * N[(k + i) * Width + Col];
        for (; k < Width; ++k)
            sums[0] += M[Row * Width + k] * N[k * Width + Col];
        float Pvalue = 0.0f;
#pragma unroll
        for (int i = 0; i < 48; ++i)
            Pvalue += sums[i];
        P[Row * Width + Col] = Pvalue;
    }
}
