/** An image in memory, row by row: red, green and blue of each pixel. Transparency is dropped, as in llama.cpp. */
export interface RgbImage {
  readonly width: number;
  readonly height: number;
  readonly data: Uint8Array;
}
