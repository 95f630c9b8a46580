import type { Arena, ArenaRange, KernelPack, KernelPackFactory, Offset } from '../contract.ts';

/** Methods that record an operation. */
const IMMEDIATE = new Set(['loadMatrix', 'sync', 'finish', 'prepare', 'dispose']);

/**
 * A pack that behaves like one on a device: operations run in `sync`, the host has a copy of the arena that is stale where
 * `sync` did not read, and operations of `missing` throw.
 */
export function createFakeDeviceFactory(
  factory: KernelPackFactory,
  missing: readonly string[] = [],
): KernelPackFactory {
  return {
    ...factory,
    name: `device ${factory.name}`,
    create: async (options) => createFakeDevice(await factory.create(options), missing),
  };
}

function createFakeDevice(pack: KernelPack, missing: readonly string[]): KernelPack {
  const host = new ArrayBuffer(pack.arena.sizeBytes);
  const allocated: ArenaRange[] = [];
  let viewed: ArenaRange[] = [];
  let recorded: (() => void)[] = [];
  const kept = new Map<string, readonly (() => void)[]>();

  const view = (offset: Offset, sizeBytes: number): Offset => {
    viewed.push({ offset, sizeBytes });
    return offset;
  };
  const arena: Arena = {
    get sizeBytes() {
      return pack.arena.sizeBytes;
    },
    get usedBytes() {
      return pack.arena.usedBytes;
    },
    allocate(sizeBytes, what) {
      const offset = pack.arena.allocate(sizeBytes, what);
      allocated.push({ offset, sizeBytes });
      return offset;
    },
    f32: (offset, length) => new Float32Array(host, view(offset, length * 4), length),
    i32: (offset, length) => new Int32Array(host, view(offset, length * 4), length),
    u16: (offset, length) => new Uint16Array(host, view(offset, length * 2), length),
    u8: (offset, length) => new Uint8Array(host, view(offset, length), length),
  };
  const refuse = (name: string) => (): never => {
    throw new Error(`the device has no operation ${name}`);
  };
  const own: Partial<KernelPack> = {
    arena,
    missing,
    async sync(reads) {
      for (const { offset, sizeBytes } of viewed) {
        pack.arena.u8(offset, sizeBytes).set(new Uint8Array(host, offset, sizeBytes));
      }
      viewed = [];
      const now = recorded;
      recorded = [];
      for (const run of now) run();
      pack.finish!();
      for (const { offset, sizeBytes } of reads ?? allocated) {
        new Uint8Array(host, offset, sizeBytes).set(pack.arena.u8(offset, sizeBytes));
      }
    },
    replay(key, record) {
      const before = recorded;
      recorded = [];
      if (!kept.has(key)) {
        record();
        kept.set(key, recorded);
      }
      recorded = [...before, ...kept.get(key)!];
    },
    copyBytes(from, to, sizeBytes) {
      recorded.push(() => {
        pack.finish!();
        pack.arena.u8(to, sizeBytes).set(pack.arena.u8(from, sizeBytes));
      });
    },
  };
  return new Proxy(pack, {
    get(target, name: keyof KernelPack & string) {
      if (name in own) return own[name as keyof typeof own];
      if (name === 'finish' || name === 'prepare' || name === 'images') return undefined;
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function' || IMMEDIATE.has(name)) return value;
      if (missing.includes(name)) return refuse(name);
      return (op: unknown) => void recorded.push(() => (value as (op: unknown) => void)(op));
    },
  });
}
