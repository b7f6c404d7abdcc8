// accepted: template functions load and multiply the tiles

constexpr int TILE_WIDTH = 4 * 4;

template <int Tile>
__device__ void load(float (&tile)[Tile][Tile], const float *from, int row, int col, int Width)
{
    tile[threadIdx.y][threadIdx.x] = row < Width && col < Width ? from[row * Width + col] : 0.0f;
}

template <int Tile>
__device__ float dot(const float (&Mds)[Tile][Tile], const float (&Nds)[Tile][Tile])
{
    float sum = 0.0f;
    for (int k = 0; k < Tile; ++k)
        sum += Mds[threadIdx.y][k] * Nds[k][threadIdx.x];
    return sum;
}

extern "C" __global__ void matmul_tiled(const float *M, const float *N, float *P, int Width)
{
    __shared__ float Mds[TILE_WIDTH][TILE_WIDTH], Nds[TILE_WIDTH][TILE_WIDTH];
    int Row = blockIdx.y * TILE_WIDTH + threadIdx.y;
    int Col = blockIdx.x * TILE_WIDTH + threadIdx.x;

    float Pvalue = 0.0f;
    for (int first = 0; first < Width; first += TILE_WIDTH) {
        load(Mds, M, Row, first + threadIdx.x, Width);
        load(Nds, N, first + threadIdx.y, Col, Width);
        __syncthreads();
        Pvalue += dot(Mds, Nds);
        __syncthreads();
    }
    if (Row < Width && Col < Width)
        P[Row * Width + Col] = Pvalue;
}
