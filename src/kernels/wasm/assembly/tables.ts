// Tables of the file formats, written once by ../tables.ts from the same source as the reference pack's.
export const IQ2_GRID: usize = 57344; //        i8[256][8]
export const IQ4_VALUES: usize = 59392; //      i8[16], codebook of IQ4_NL and IQ4_XS
export const IQ2_VALUES: usize = 59408; //      i8[16], codebook of IQ2_XXS
export const IQ4_INDEX: usize = 59424; //       u8[256], index of a value (as a byte) in its codebook
export const IQ2_INDEX: usize = 59680; //       u8[256]
