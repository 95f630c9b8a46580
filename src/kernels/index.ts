export * from './contract.ts';
export { createReferencePackFactory } from './reference/reference-pack.ts';
export type { HelperStart, HelperThread, WasmModule, WasmPlatform } from './wasm/platform.ts';
export { createWasmPackFactory } from './wasm/wasm-pack.ts';
