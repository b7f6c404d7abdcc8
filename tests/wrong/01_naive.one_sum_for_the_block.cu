// refused: race, line 11 or 15 or 19: one shared Pvalue for all threads of the block

constexpr int TILE_WIDTH = 16;

extern "C" __global__ void matmul_naive(const float *M, const float *N, float *P, int Width)
{
    int Row = blockIdx.y * TILE_WIDTH + threadIdx.y;
    int Col = blockIdx.x * TILE_WIDTH + threadIdx.x;

    __shared__ float Pvalue;
    Pvalue = 0.0f;
    __syncthreads();
    if (Row < Width && Col < Width) {
        for (int k = 0; k < Width; ++k)
            Pvalue += M[Row * Width + k] * N[k * Width + Col];
    }
    __syncthreads();
    if (Row < Width && Col < Width)
        P[Row * Width + Col] = Pvalue;
}
