import { expect, test } from 'vitest';
import { createNodeWasmPlatform } from '../platform/node/wasm-platform.ts';
import { loadNativeBuilds } from '../platform/node/native-addon.ts';
import type { KernelPackFactory } from './contract.ts';
import { createNativePackFactory } from './native/native-pack.ts';
import { createReferencePackFactory } from './reference/reference-pack.ts';
import { findKernelFault } from './self-check.ts';
import { createWasmPackFactory } from './wasm/wasm-pack.ts';

const reference = createReferencePackFactory();

test('every pack that is here passes', async () => {
  const factories = [
    createWasmPackFactory(createNodeWasmPlatform()),
    ...loadNativeBuilds().map((build) => createNativePackFactory(build)),
  ];
  for (const factory of factories) expect(await findKernelFault(factory, reference, 2), factory.name).toBeNull();
});

/** A pack whose `operation` goes wrong after it ran. */
function sabotaged(operation: 'matmul' | 'attention' | 'rmsNorm'): KernelPackFactory {
  return {
    ...reference,
    async create(options) {
      const pack = await reference.create(options);
      return {
        ...pack,
        [operation](op: never): void {
          (pack[operation] as (op: unknown) => void)(op);
          const given = op as { out?: number; outputs?: { out: number }[] };
          pack.arena.f32(given.out ?? given.outputs![0]!.out, 4)[3]! *= 1.01;
        },
      };
    },
  };
}

test.each(['matmul', 'attention', 'rmsNorm'] as const)(
  'one wrong value in %s is found and named',
  async (operation) => {
    const fault = await findKernelFault(sabotaged(operation), reference, 1);
    expect(fault).toMatch(/^(matmul F32|attention|norm and activation): value 3 is .*, the reference says /);
  },
);
