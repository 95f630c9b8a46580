import { expect, test } from 'vitest';
import { createNodeWasmPlatform } from '../platform/node/kernels/wasm-platform.ts';
import { loadNativeBuilds } from '../platform/node/kernels/native-addon.ts';
import type { KernelPackFactory } from './contract.ts';
import { createNativePackFactory } from './native/native-pack.ts';
import { createReferencePackFactory } from './reference/reference-pack.ts';
import { findKernelFault } from './self-check.ts';
import { createWasmPackFactory } from './wasm/wasm-pack.ts';

const reference = createReferencePackFactory();

test('every available pack passes', async () => {
  const factories = [
    createWasmPackFactory(createNodeWasmPlatform()),
    ...loadNativeBuilds().map((build) => createNativePackFactory(build)),
  ];
  for (const factory of factories) expect(await findKernelFault(factory, reference, 2), factory.name).toBeNull();
});

/** A pack with one wrong result of `operation` where `isHit` returns true. */
function sabotaged(
  operation:
    | 'matmul'
    | 'gatedMatmul'
    | 'gatherRows'
    | 'attention'
    | 'rope'
    | 'rmsNorm'
    | 'gatedActivation'
    | 'add'
    | 'layerNorm'
    | 'gelu',
  isHit: (op: { numTokens?: number }) => boolean = () => true,
): KernelPackFactory {
  return {
    ...reference,
    async create(options) {
      const pack = await reference.create(options);
      return {
        ...pack,
        [operation](op: never): void {
          (pack[operation] as (op: unknown) => void)(op);
          const args = op as { x?: number; out?: number; outputs?: { out: number }[]; numTokens?: number };
          const values = pack.arena.f32(args.out ?? args.outputs?.[0]!.out ?? args.x!, 16);
          if (isHit(args)) values[3]! += 0.01 * Math.max(...values.map(Math.abs));
        },
      };
    },
  };
}

test.each([
  ['matmul', 'matmul F32, 17 rows: value 3 of row 0'],
  ['gatedMatmul', 'norm, matmul F32 and gate, 1 rows: value 3 of row 6'], // the sample is row 6
  ['gatherRows', 'rows of F32, 1 rows: value 3 of row 0'],
  ['attention', 'attention, 1 rows: value 3 of row 16'], // row 0 of the 17 is not in the sample
  ['rope', 'attention, \\d+ rows: value'],
  ['rmsNorm', 'norm and activation, 17 rows: value 3 of row 0'],
  ['gatedActivation', 'norm and activation, 17 rows: value 3 of row 0'],
  ['add', 'norm and activation, 17 rows: value 3 of row 0'],
  ['layerNorm', 'norm and activation, 17 rows: value 3 of row 0'],
  ['gelu', 'norm and activation, 17 rows: value 3 of row 0'],
] as const)('finds and names one wrong value of %s', async (operation, fault) => {
  expect(await findKernelFault(sabotaged(operation), reference, 1)).toMatch(
    new RegExp(`^${fault}.* is .*, the reference has `),
  );
});

test('finds a kernel that is wrong only for single tokens', async () => {
  const decodes = sabotaged('matmul', ({ numTokens }) => numTokens === 1);
  expect(await findKernelFault(decodes, reference, 1, ['Q6_K'])).toMatch(/^matmul Q6_K, 1 rows: value 3 of row 6 /);
});

test('finds causal attention where bidirectional is required', async () => {
  const causal: KernelPackFactory = {
    ...reference,
    async create(options) {
      const pack = await reference.create(options);
      return { ...pack, attention: (op) => pack.attention({ ...op, seesAll: false }) };
    },
  };
  expect(await findKernelFault(causal, reference, 1)).toMatch(/^attention to all, 17 rows: value 0 of row 14 /);
});

test('checks only the requested types', async () => {
  const loaded: string[] = [];
  const counting: KernelPackFactory = {
    ...reference,
    async create(options) {
      const pack = await reference.create(options);
      return { ...pack, loadMatrix: (source) => (loaded.push(source.type), pack.loadMatrix(source)) };
    },
  };
  expect(await findKernelFault(counting, reference, 1, ['Q8_0', 'F16'])).toBeNull();
  expect(loaded).toEqual(['Q8_0', 'F16']);
});
