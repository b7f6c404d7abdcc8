// accepted: a block goes on to further tiles of P, so that any grid would do

constexpr int TILE_WIDTH = 16;

extern "C" __global__ void matmul_tiled(const float *M, const float *N, float *P, int Width)
{
    __shared__ float Mds[TILE_WIDTH][TILE_WIDTH];
    __shared__ float Nds[TILE_WIDTH][TILE_WIDTH];
    int tx = threadIdx.x, ty = threadIdx.y;
    int tiles = (Width + TILE_WIDTH - 1) / TILE_WIDTH;

    for (int by = blockIdx.y; by < tiles; by += gridDim.y)
        for (int bx = blockIdx.x; bx < tiles; bx += gridDim.x) {
            int Row = by * TILE_WIDTH + ty;
            int Col = bx * TILE_WIDTH + tx;
            float Pvalue = 0.0f;
            for (int ph = 0; ph < tiles; ++ph) {
                int m = ph * TILE_WIDTH + tx;
                int n = ph * TILE_WIDTH + ty;
                __syncthreads();
                Mds[ty][tx] = Row < Width && m < Width ? M[Row * Width + m] : 0.0f;
                Nds[ty][tx] = n < Width && Col < Width ? N[n * Width + Col] : 0.0f;
                __syncthreads();
                for (int k = 0; k < TILE_WIDTH; ++k)
                    Pvalue += Mds[ty][k] * Nds[k][tx];
            }
            if (Row < Width && Col < Width)
                P[Row * Width + Col] = Pvalue;
        }
}
