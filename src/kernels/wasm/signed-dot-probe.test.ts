import { expect, test } from 'vitest';
import { createNodeWasmPlatform } from '../../platform/node/wasm-platform.ts';
import { hasSignedDot } from './signed-dot-probe.ts';

const builds = ['signed-dot', 'relaxed-simd', 'simd128'] as const;

/** Relaxed SIMD is behind a flag in Node 20, which the platform sets. */
const loaded = await createNodeWasmPlatform().loadModule();

test('chooses signed-dot on arm64 with an exact dot product of signed bytes, and relaxed-simd elsewhere', () => {
  const isSigned = process.arch === 'arm64' && hasSignedDot();
  expect(loaded.build).toBe(isSigned ? 'signed-dot' : 'relaxed-simd');
});

test.runIf(process.arch === 'arm64')('finds the dot product of signed bytes on arm64', () => {
  expect(hasSignedDot()).toBe(true);
});

test('refuses signed-dot alone where it is not chosen', async () => {
  const alone = createNodeWasmPlatform(['signed-dot']).loadModule();
  if (loaded.build === 'signed-dot') await expect(alone).resolves.toMatchObject({ build: 'signed-dot' });
  else await expect(alone).rejects.toThrow(/signed bytes/);
});

test.each(builds.slice(1))('loads %s when it is the only build allowed', async (build) => {
  await expect(createNodeWasmPlatform([build]).loadModule()).resolves.toMatchObject({ build });
});
