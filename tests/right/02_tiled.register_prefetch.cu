// accepted: the next tiles are on their way in registers while these are multiplied

constexpr int TILE_WIDTH = 16;

extern "C" __global__ void matmul_tiled(const float *M, const float *N, float *P, int Width)
{
    __shared__ float Mds[TILE_WIDTH][TILE_WIDTH];
    __shared__ float Nds[TILE_WIDTH][TILE_WIDTH];
    int tx = threadIdx.x, ty = threadIdx.y;
    int Row = blockIdx.y * TILE_WIDTH + ty;
    int Col = blockIdx.x * TILE_WIDTH + tx;

    float next_m = Row < Width && tx < Width ? M[Row * Width + tx] : 0.0f;
    float next_n = ty < Width && Col < Width ? N[ty * Width + Col] : 0.0f;
    float Pvalue = 0.0f;
    for (int first = 0; first < Width; first += TILE_WIDTH) {
        Mds[ty][tx] = next_m;
        Nds[ty][tx] = next_n;
        __syncthreads();
        int m = first + TILE_WIDTH + tx, n = first + TILE_WIDTH + ty;
        next_m = Row < Width && m < Width ? M[Row * Width + m] : 0.0f;
        next_n = n < Width && Col < Width ? N[n * Width + Col] : 0.0f;
        for (int k = 0; k < TILE_WIDTH; ++k)
            Pvalue += Mds[ty][k] * Nds[k][tx];
        __syncthreads();
    }
    if (Row < Width && Col < Width)
        P[Row * Width + Col] = Pvalue;
}
