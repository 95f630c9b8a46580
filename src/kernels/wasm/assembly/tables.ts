// Tables of the file formats, written once by ../tables.ts from the same source as the reference pack's.
export const IQ2_GRID: usize = 57344; //        i8[256][8]
export const IQ4_VALUES: usize = 59392; //      i8[16], codebook of IQ4_NL and IQ4_XS
export const IQ2_VALUES: usize = 59408; //      i8[16], codebook of IQ2_XXS
export const IQ4_INDEX: usize = 59424; //       u8[256], index of a value (as a byte) in its codebook
export const IQ2_INDEX: usize = 59680; //       u8[256]
export const FP4_VALUES: usize = 59936; //      i8[16], codebook of MXFP4 and NVFP4; has -1, 0, 1 and 2 of the ternary formats
export const IQ3_VALUES: usize = 59952; //      i8[16], codebook of IQ3_XXS
export const ODD_VALUES: usize = 59968; //      i8[16], the odd numbers from -15 to 15: IQ3_S, IQ1_S and IQ1_M
export const FP4_INDEX: usize = 59984; //       u8[256]
export const IQ3_INDEX: usize = 60240; //       u8[256]
export const ODD_INDEX: usize = 60496; //       u8[256], up to 60752
