// solutions/02_tiled.cu in OpenCL C, for Oclgrind. The launch is the same: work-groups of 16 x 16, and the
// same tiles, loops and barriers.

#define TILE_WIDTH 16

__kernel void matmul_tiled(__global const float *M, __global const float *N, __global float *P, int Width)
{
    __local float Mds[TILE_WIDTH][TILE_WIDTH];
    __local float Nds[TILE_WIDTH][TILE_WIDTH];

    int tx = get_local_id(0), ty = get_local_id(1);
    int Row = get_group_id(1) * TILE_WIDTH + ty;
    int Col = get_group_id(0) * TILE_WIDTH + tx;

    float Pvalue = 0.0f;
    for (int ph = 0; ph < (Width + TILE_WIDTH - 1) / TILE_WIDTH; ++ph) {
        int m = ph * TILE_WIDTH + tx;
        int n = ph * TILE_WIDTH + ty;
        Mds[ty][tx] = Row < Width && m < Width ? M[Row * Width + m] : 0.0f;
        Nds[ty][tx] = n < Width && Col < Width ? N[n * Width + Col] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);

        for (int k = 0; k < TILE_WIDTH; ++k)
            Pvalue += Mds[ty][k] * Nds[k][tx];
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    if (Row < Width && Col < Width)
        P[Row * Width + Col] = Pvalue;
}
