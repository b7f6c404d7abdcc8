// accepted: partial sums in an array that is indexed at run time, so it lives in local memory

constexpr int TILE_WIDTH = 16;

extern "C" __global__ void matmul_naive(const float *M, const float *N, float *P, int Width)
{
    int Row = blockIdx.y * TILE_WIDTH + threadIdx.y;
    int Col = blockIdx.x * TILE_WIDTH + threadIdx.x;

    if (Row < Width && Col < Width) {
        float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 1
        for (int k = 0; k < Width; ++k)
            sums[(k + Row) % 4] += M[Row * Width + k] * N[k * Width + Col];
        P[Row * Width + Col] = sums[0] + sums[1] + sums[2] + sums[3];
    }
}
