// A transform of the AssemblyScript compiler, which can compile for 64-bit addresses but has no option for it.
const WASM64 = 2;
/** 16 GiB: the limit of engines for a memory with 64-bit addresses. */
const MAX_PAGES = 262_144;

export default class Wasm64 {
  constructor() {
    // Before the sources are parsed: `usize` gets its size when the program is initialized.
    this.program.options.target = WASM64;
    this.program.module.sizeType = this.program.options.sizeTypeRef;
  }

  /** The compiler declares the memory with 32-bit addresses whatever the target is. */
  afterCompile(module) {
    const segments = Array.from({ length: module.getNumDataSegments() }, (_, i) => {
      const { offset, data, passive } = module.getDataSegmentInfo(module.getDataSegmentByIndex(i));
      return { data: new Uint8Array(data), offset: module.i64.const(BigInt(offset)), passive };
    });
    module.setFeatures(module.getFeatures() | this.binaryen.Features.Memory64);
    module.setMemory(1, MAX_PAGES, null, segments, true, true, '0');
    module.addMemoryImport('0', 'env', 'memory', true);
  }
}
