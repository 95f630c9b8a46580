/** 1 in the signed-dot build, 0 in the others; set on the compiler's command line (scripts/build.mjs). */
declare const SIGNED_DOT: bool;
