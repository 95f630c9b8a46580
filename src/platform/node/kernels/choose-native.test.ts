import { expect, test } from 'vitest';
import { NATIVE_ABI, type NativeAddon } from '../../../kernels/native/addon.ts';
import { checkNativeBuild, chooseNative } from './choose-native.ts';
import { createKernelFactory, type KernelWarning } from './kernel-factory.ts';
import { loadNativeBuilds, type NativeBuildState } from './native-addon.ts';

const [real] = loadNativeBuilds({ limit: '' });
if (real === undefined) console.log('native kernels are not built here: what needs them is skipped');
const check = { numThreads: 2, types: ['Q4_0'] } as const;

/** An addon that has all functions and computes nothing. */
function createIdleAddon(): NativeAddon & { numArenas: number } {
  const addon = {
    numArenas: 0,
    createArena(sizeBytes: number) {
      addon.numArenas++;
      return new ArrayBuffer(sizeBytes);
    },
    mapFile: () => false,
    clearMemory: () => {},
    prepareMemory: () => {},
    abi: NATIVE_ABI,
    startPool: () => ({}),
    run: () => {},
    stopPool: () => {},
  };
  return addon;
}
const here = (build: string, addon: NativeAddon): NativeBuildState => ({ build, addon, problem: null });
const broken: NativeBuildState = {
  build: 'cut',
  addon: null,
  problem: { kind: 'broken', message: 'cannot be loaded: file too short' },
};
const missing: NativeBuildState = { build: 'best', addon: null, problem: { kind: 'missing', message: 'not built' } };

test('a build that computes wrong is refused by its name, with the numbers', async () => {
  const { native, refusals } = await chooseNative(check, [missing, broken, here('idle', createIdleAddon())]);
  expect(native).toBeNull();
  expect(refusals).toEqual([
    { build: 'cut', reason: 'cannot be loaded: file too short' },
    {
      build: 'idle',
      reason: expect.stringMatching(/^computes wrong: matmul Q4_0, 17 rows: value 0 of row 0 is 0, the reference has /),
    },
  ]);
});

test('an addon that throws is refused, not thrown', async () => {
  const throws = {
    ...createIdleAddon(),
    startPool(): object {
      throw new Error('no threads left');
    },
  };
  const { native, refusals } = await chooseNative(check, [here('throws', throws)]);
  expect({ native, refusals }).toEqual({
    native: null,
    refusals: [{ build: 'throws', reason: 'fails its self-check: no threads left' }],
  });
});

test.skipIf(real === undefined)('the next build that computes is taken; one slip of the best is enough', async () => {
  // The self-check's last operation is an addition: this one never gets to it.
  const { addon } = real!;
  const slips: NativeAddon = { ...addon, run: (pool, program, numOps) => addon.run(pool, program, numOps - 1) };
  const { native, refusals } = await chooseNative(check, [here('slips', slips), here(real!.build, addon)]);
  expect(native).toEqual(real);
  expect(refusals.map(({ build }) => build)).toEqual(['slips']);
});

test('a build is asked once', async () => {
  const addon = createIdleAddon();
  const answers = [
    await checkNativeBuild({ build: 'idle', addon }, check),
    await checkNativeBuild({ build: 'idle', addon }, check),
  ];
  expect(answers[0]).toBe(answers[1]);
  expect(addon.numArenas).toBe(1);
  await checkNativeBuild({ build: 'idle', addon }, { numThreads: 2, types: ['Q8_0'] });
  expect(addon.numArenas).toBe(2);
});

test('auto: WASM takes over from a wrong pack, and says so; native: refuses', async () => {
  const warnings: KernelWarning[] = [];
  const options = {
    ...check,
    warn: (warning: KernelWarning) => warnings.push(warning),
    choose: () => chooseNative(check, [here('idle', createIdleAddon())]),
  };
  expect((await createKernelFactory('auto', options)).name).toBe('wasm');
  expect(warnings).toEqual([
    {
      code: 'RUVLLM_NATIVE_REFUSED',
      message: expect.stringMatching(/^native idle kernels refused: computes wrong: matmul Q4_0/),
    },
  ]);
  await expect(createKernelFactory('native', options)).rejects.toMatchObject({
    code: 'kernel_failed',
    data: { builds: ['idle'] },
  });
  const nothing = { ...options, choose: () => chooseNative(check, [missing]) };
  await expect(createKernelFactory('native', nothing)).rejects.toMatchObject({ code: 'unsupported' });
  expect((await createKernelFactory('auto', nothing)).name).toBe('wasm');
});

test.skipIf(real === undefined)('auto is native where a build computes', async () => {
  const fail = (warning: KernelWarning): never => expect.fail(warning.message);
  expect((await createKernelFactory('auto', { ...check, warn: fail })).name).toBe('native');
});
